/**
 * An API server with the controllers of workloads, and nobody who runs pods: the test itself is the kubelet. The code under test is allowed what its rules say and no more.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { Operation, StatefulApp } from '../../../controller/app/kinds.ts'
import type { App, PodView } from '../../../controller/app/view.ts'
import { createConcerns } from '../../../controller/app/workload/concerns.ts'
import { podsOf, readWorkload, type Sources, type Workload } from '../../../controller/app/workload/gather.ts'
import { prepareCache } from '../../../controller/app/workload/places.ts'
import { workloadRules } from '../../../controller/app/workload/rbac.ts'
import { connect } from '../../../controller/kube/access.ts'
import { Cache } from '../../../controller/kube/cache.ts'
import { CachedClient } from '../../../controller/kube/cached.ts'
import type { Client } from '../../../controller/kube/client.ts'
import { createDiscovery } from '../../../controller/kube/discovery.ts'
import type { Applied } from '../../../controller/kube/kind.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  CustomResourceDefinition,
  DaemonSet,
  Deployment,
  Namespace,
  Node,
  Pod,
} from '../../../controller/kube/kinds.ts'
import { isTerminal } from '../../../shared/run.ts'
import { startApiServer } from '../../fixtures/apiserver.ts'
import {
  controllersMissing,
  type ManagedController,
  startControllerManager,
} from '../../fixtures/controller-manager.ts'
import { createKeeper } from '../../fixtures/keeper.ts'
import { kubectlMissing } from '../../fixtures/kubectl.ts'
import { skipFile } from '../../fixtures/skip-file.ts'

// Pods are sent to nodes with it.
skipFile(kubectlMissing)

/** The folder of an API server alone has none. */
export const hasControllers = controllersMissing === undefined

const patience = { timeout: 30_000, interval: 50 }
const controllers: readonly ManagedController[] = [
  'statefulset-controller',
  'deployment-controller',
  'replicaset-controller',
  'daemonset-controller',
  'disruption-controller',
  'garbage-collector-controller',
  'persistentvolumeclaim-protection-controller',
]

export type Cluster = Awaited<ReturnType<typeof startCluster>>
export type Eyes = Awaited<ReturnType<Cluster['open']>>

export async function startCluster() {
  const server = await startApiServer()
  const keeper = createKeeper()
  const admin = connect({ name: 'somebody', kubeconfig: { file: server.kubeconfig } })
  const { client } = admin
  await startControllerManager(keeper, server, controllers)
  for (const kind of [StatefulApp, Operation])
    await client.apply(CustomResourceDefinition, kind.crd() as Applied<object>)
  await vi.waitFor(() => Promise.all([client.list(StatefulApp), client.list(Operation)]), patience)
  const file = await server.kubeconfigFor({ name: 'shipmate' })
  const rules = [
    ...workloadRules,
    { apiGroups: ['shipmate.dev'], resources: ['statefulapps', 'operations'], verbs: ['get', 'list', 'watch'] },
    // As a person adds it for a kind of their own.
    { apiGroups: ['workload.test'], resources: ['gadgets', 'gadgets/scale'], verbs: ['get', 'patch', 'delete'] },
  ]
  await client.create(ClusterRole, { metadata: { name: 'shipmate' }, rules: rules as never })
  await client.create(ClusterRoleBinding, {
    metadata: { name: 'shipmate' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'shipmate' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'shipmate' }],
  })
  let count = 0

  return {
    client,
    kubectl: server.kubectl,
    async namespace(): Promise<string> {
      const name = `workload-${++count}`
      await client.create(Namespace, { metadata: { name } })
      return name
    },
    /** A controller's eyes and hands, with a cache of its own. */
    open: () => open(file),
    async node(name: string): Promise<void> {
      await client.create(Node, { metadata: { name } })
      const status = { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { bootID: `boot-${name}` } }
      await client.patch(Node, { name }, { merge: { status } }, { subresource: 'status' })
      // Nobody else takes away the taint that a node begins with.
      await client.patch(Node, { name }, { merge: { spec: { taints: null } } })
    },
    /** Sends a pod to a node, and lets it run there. */
    async run(pod: { namespace: string; name: string }, node: string): Promise<void> {
      const path = `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}/binding`
      const binding = { apiVersion: 'v1', kind: 'Binding', metadata: pod, target: { kind: 'Node', name: node } }
      const text = join(server.dir, `binding-${pod.name}.json`)
      await writeFile(text, JSON.stringify(binding))
      await server.kubectl('create', '--raw', path, '-f', text)
      const status = { phase: 'Running', podIP: '10.0.0.9', conditions: [{ type: 'Ready', status: 'True' }] }
      await client.patch(Pod, pod, { merge: { status } }, { subresource: 'status' })
    },
    /** Ends a pod that is being deleted, as its kubelet does. */
    async end(pod: { namespace: string; name: string }): Promise<void> {
      await client.delete(Pod, pod, { gracePeriodSeconds: 0 })
    },
    async stop(): Promise<void> {
      await admin.close()
      await keeper.stop()
      await server.stop()
    },
  }
}

async function open(file: string) {
  const sent: string[] = []
  const access = connect({
    name: 'shipmate',
    kubeconfig: { file },
    interceptors: [
      next => request => {
        const { verb, resource, subresource, name } = request.target
        if (verb !== 'watch' && verb !== 'list')
          sent.push(`${verb} ${resource}${subresource ? `/${subresource}` : ''} ${name}`)
        return next(request)
      },
    ],
  })
  const cache = new Cache(access.client)
  prepareCache(cache, { manager: 'shipmate', isUnsettled: ({ phase }) => !isTerminal(phase as never) })
  for (const kind of [Deployment, DaemonSet, Node]) cache.informer<object>(kind)
  const stopping = new AbortController()
  const running = cache.run(stopping.signal)
  await Promise.all([...cache.informers()].map(({ synced }) => synced))
  const client = new CachedClient(access.client, cache)
  const concerns = createConcerns(cache)
  const sources: Sources = { discovery: createDiscovery(access.client), concerns }
  const read = (app: App) => readWorkload(client, app, sources)
  const look = async (app: App) => {
    const workload = await read(app)
    return { workload, pods: await podsOf(client, workload) }
  }
  return {
    client,
    cache,
    concerns,
    read,
    look,
    /** What was asked of the server since this was last called, but for what is watched and listed. */
    asked: () => sent.splice(0).sort(),
    /** The app as the cache shows it. */
    async app(admin: Client, object: { metadata: { name: string; namespace: string }; spec: object }): Promise<App> {
      const made = await admin.create(StatefulApp, object as never)
      return vi.waitFor(async () => {
        const found = cache.informer(StatefulApp).get(made.metadata)
        expect(found?.metadata.uid).toBe(made.metadata.uid)
        return found as App
      }, patience)
    },
    /** Waits until what is seen of an app is as expected. */
    until<T>(
      app: App,
      isSo: (seen: { workload: Workload | undefined; pods: PodView[] }) => T | Promise<T>,
    ): Promise<T> {
      return vi.waitFor(async () => isSo(await look(app)), patience)
    },
    async close(): Promise<void> {
      stopping.abort()
      await running
      await access.close()
    },
  }
}
