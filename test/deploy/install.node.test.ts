/**
 * deploy/install.yaml on a real node, with the images as they are built: two replicas under restricted pod security, of which one leads; an app with a sidecar of the shipped
 * image is looked after, also when the leader goes; metrics are for who may read them.
 */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { parse, stringify } from 'yaml'
import { injectTexts } from '../../cli/inject/text.ts'
import { Lifecycle, Operation, StatefulApp } from '../../controller/app/kinds.ts'
import { exec } from '../../controller/kube/exec.ts'
import type { Live } from '../../controller/kube/kind.ts'
import {
  ClusterRoleBinding,
  ConfigMap,
  Deployment,
  Lease,
  Namespace,
  Pod,
  Secret,
  ServiceAccount,
  StatefulSet,
  SubjectAccessReview,
} from '../../controller/kube/kinds.ts'
import { logLines } from '../../controller/kube/logs.ts'
import { forwardPort } from '../../controller/kube/portforward.ts'
import manifest from '../../package.json' with { type: 'json' }
import { defaultRegistry } from '../../shared/images.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import { kubectl } from '../fixtures/kubectl.ts'
import { type Cluster, useCluster } from '../fixtures/pods.ts'
import {
  controllerImage,
  describeOnNode,
  images,
  longest,
  noControllerImage,
  restricted,
} from '../sidecar/image/pod.ts'
import { folder } from './rendered.ts'

const system = 'shipmate-system'
const controller = 'shipmate-controller'
const app = 'orders'
const patience = { timeout: 150_000, interval: 200 }
type RunningPod = Live<NonNullable<(typeof Pod)['shape']>>

const lifecycle: LifecycleSpec = {
  states: [
    { name: 'Start', verb: 'Create', next: ['Running', 'Stopping'] },
    { name: 'Running', when: 'probes.accepting.ok', next: ['Servicing', 'Stopping'] },
    { name: 'Servicing', actions: ['backup'], next: ['Running'] },
    { name: 'Stopping', actions: ['stop'], next: ['End'] },
    { name: 'End', verb: 'Delete', next: ['Start'] },
  ],
  probes: [{ name: 'accepting', exec: { command: ['true'] }, every: '1s' }],
  actions: [
    { name: 'backup', exec: { command: ['sh', '-c', 'echo once >>/work/effects'] }, timeout: '1m' },
    { name: 'stop', exec: { command: ['true'] }, timeout: '10s' },
  ],
}

describeOnNode(
  'install.yaml on a node',
  kubeconfig => {
    let cluster: Cluster
    let home: string
    let file: string

    beforeAll(async () => {
      cluster = await useCluster(kubeconfig)
      const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
      await cluster.client.patch(Namespace, { name: cluster.namespace }, { merge: { metadata: { labels } } })
      home = mkdtempSync(join(tmpdir(), 'shipmate-install-'))
      file = join(home, 'install.yaml')
      writeFileSync(file, onThisNode(readFileSync(join(folder, 'install.yaml'), 'utf8')))
      await kubectl(kubeconfig, 'apply', '--server-side', '--force-conflicts', '-f', file)
    }, longest)
    afterAll(async () => {
      if (!cluster) return
      const { client, namespace } = cluster
      // While somebody looks after it: its finalizer has to go.
      if (await client.find(StatefulApp, { name: app, namespace }))
        await client.delete(StatefulApp, { name: app, namespace })
      await vi.waitFor(async () => expect(await client.list(StatefulApp, { namespace })).toEqual([]), patience)
      // Other tests on this cluster need the CRDs.
      const all = [
        'deployment,service,poddisruptionbudget,networkpolicy,serviceaccount,role,rolebinding,lease,secret',
        '--all',
      ]
      await kubectl(kubeconfig, 'delete', '-n', system, ...all)
      await kubectl(kubeconfig, 'delete', 'clusterrole,clusterrolebinding', '-l', 'app.kubernetes.io/part-of=shipmate')
      await client.delete(Namespace, { name: system })
      await cluster[Symbol.asyncDispose]()
      rmSync(home, { recursive: true })
    }, longest)

    /** The images are called otherwise here; and it leaves alone what other tests on this cluster have made. */
    function onThisNode(installed: string): string {
      const named = installed
        .replaceAll(`${defaultRegistry}/shipmate-controller:${manifest.version}`, controllerImage)
        .replaceAll(`${defaultRegistry}/shipmate-sidecar:${manifest.version}`, images.sidecar)
        .replaceAll('IfNotPresent', 'Never')
        .replace(/^( *)- --port=8081$/m, `$&\n$1- --watch-namespace=${cluster.namespace}`)
      expect(named).not.toContain(defaultRegistry)
      return named
    }

    const pods = async (): Promise<RunningPod[]> => {
      const all = await cluster.client.list(Pod, {
        namespace: system,
        labels: { 'app.kubernetes.io/name': controller },
      })
      return all.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    }
    const leader = async () => {
      const lease = await cluster.client.find(Lease, { name: controller, namespace: system })
      const holder = lease?.spec?.holderIdentity ?? ''
      return (await pods()).find(({ metadata }) => holder !== '' && holder.startsWith(metadata.name))
    }
    const run = async ({ metadata }: RunningPod, command: string[]) => {
      const ref = { name: metadata.name, namespace: system }
      return exec(cluster.source, ref, { container: 'controller', command })
    }
    const anyOf = async () => (await pods())[0] as RunningPod

    it('has two replicas that are ready, and one of them leads', async () => {
      await vi.waitFor(async () => {
        const { status } = await cluster.client.get(Deployment, { name: controller, namespace: system })
        expect(status?.readyReplicas, JSON.stringify(status)).toBe(2)
        expect(await leader()).toBeDefined()
      }, patience)
      expect(await pods()).toHaveLength(2)
      for (const { status } of await pods())
        expect(status?.containerStatuses?.map(({ restartCount }) => restartCount)).toEqual([0])
    })

    it('runs as nobody, on a read-only root, without capabilities, in an image without a shell', async () => {
      const script = `
        const fs = require('node:fs')
        const attempt = path => { try { fs.writeFileSync(path, ''); return 'written' } catch (error) { return error.code } }
        const status = fs.readFileSync('/proc/1/status', 'utf8')
        const of = name => status.match(new RegExp('^' + name + ':\\\\s*(\\\\S+)', 'm'))?.[1]
        console.log(JSON.stringify({
          uid: process.getuid(), root: attempt('/x'), own: attempt('/opt/shipmate/x'), tmp: attempt('/tmp/x'),
          capabilities: of('CapEff'), privileges: of('NoNewPrivs'), seccomp: of('Seccomp'),
          sbom: JSON.parse(fs.readFileSync('/opt/shipmate/sbom.cdx.json')).metadata.component.name,
        }))`
      const { stdout } = await run(await anyOf(), ['node', '-e', script])
      expect(JSON.parse(stdout)).toEqual({
        ...{ uid: 65532, root: 'EROFS', own: 'EROFS', tmp: expect.stringMatching(/^(EROFS|ENOENT)$/) },
        ...{ capabilities: '0000000000000000', privileges: '1', seccomp: '2' },
        sbom: 'shipmate-controller',
      })
      await expect(run(await anyOf(), ['sh', '-c', 'true'])).rejects.toThrow(/"sh"|sh: |not found/)
    })

    it('runs under any uid with group 0', async () => {
      const securityContext = { ...restricted, runAsUser: 1000720000, runAsGroup: 0, runAsNonRoot: true }
      const args = ['node', '/opt/shipmate/controller.cjs', 'controller', '--help']
      await cluster.create(
        'anybody',
        { main: { image: controllerImage, command: args, securityContext } },
        { restartPolicy: 'Never' },
      )
      await cluster.until('anybody', ({ status }) => status?.phase === 'Succeeded' || status?.phase === 'Failed')
      const ref = { name: 'anybody', namespace: cluster.namespace }
      const lines: string[] = []
      for await (const line of logLines(cluster.client, ref)) lines.push(line)
      expect(lines[0]).toBe('Usage: shipmate controller [options]')
      expect((await cluster.client.get(Pod, ref)).status?.phase).toBe('Succeeded')
    })

    it('looks after an app whose pods have the shipped sidecar', async () => {
      const { client, namespace } = cluster
      await client.create(Lifecycle, { metadata: { name: app, namespace }, spec: lifecycle as never })
      await client.create(StatefulApp, {
        metadata: { name: app, namespace },
        spec: {
          lifecycle: app,
          workload: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: app },
          desired: { state: 'Servicing', action: 'backup', request: 'first' },
        },
      } as never)
      // A kubelet looks again about once a minute at what was not there to mount.
      await vi.waitFor(async () => {
        expect(await client.find(ConfigMap, { name: `shipmate-lifecycle-${app}`, namespace })).toBeDefined()
        expect(await client.find(Secret, { name: `shipmate-tls-${app}`, namespace })).toBeDefined()
      }, patience)
      await client.create(StatefulSet, workload(namespace) as never)
      await backedUp(1)
    })

    it('goes on with it when the leader goes, by the other one', async () => {
      const { client, namespace } = cluster
      const first = (await leader()) as RunningPod
      await client.delete(Pod, { name: first.metadata.name, namespace: system })
      const desired = { state: 'Servicing', action: 'backup', request: 'second' }
      await client.patch(StatefulApp, { name: app, namespace }, { merge: { spec: { desired } } })
      await backedUp(2)
      const next = await leader()
      expect(next).toBeDefined()
      expect(next?.metadata.name).not.toBe(first.metadata.name)
    })

    it('shows its metrics to who may get them, and to nobody else', async () => {
      const { client, namespace, source } = cluster
      await client.create(ServiceAccount, { metadata: { name: 'prometheus', namespace } })
      const { token } = await client.token({ name: 'prometheus', namespace })
      const pod = (await leader()) as RunningPod
      await using local = await forwardPort(source, { name: pod.metadata.name, namespace: system }, 8443)
      const ask = async (headers: Record<string, string>) => {
        const tls = { host: local.host, port: local.port, rejectUnauthorized: false, agent: false }
        const [answer] = await once(request({ ...tls, path: '/metrics', headers }).end(), 'response')
        return [answer.statusCode, await text(answer)]
      }
      expect(await ask({})).toEqual([401, 'a bearer token is needed\n'])
      const authorization = `Bearer ${token}`
      expect(await ask({ authorization })).toEqual([403, expect.stringContaining('may not get /metrics')])
      const name = `metrics-${namespace}`
      await client.create(ClusterRoleBinding, {
        metadata: { name, labels: { 'app.kubernetes.io/part-of': 'shipmate' } },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'shipmate-metrics-reader' },
        subjects: [{ kind: 'ServiceAccount', name: 'prometheus', namespace }],
      })
      // What was refused is remembered for ten seconds.
      const metrics = await vi.waitFor(async () => {
        const [status, body] = await ask({ authorization })
        expect(status).toBe(200)
        return body as string
      }, patience)
      expect(metrics).toMatch(/^leader_election_master_status\{name="shipmate-controller"\} 1$/m)
      expect(metrics).toMatch(/^shipmate_app_operations_total\{action="backup",outcome="Succeeded"\} \d+$/m)
    })

    it("adds its kinds to Kubernetes' own roles", async () => {
      const { client, namespace } = cluster
      const granted = async (role: string, verb: string, resource: string) => {
        const user = `${role}-of-${namespace}`
        if (!(await client.find(ClusterRoleBinding, { name: user })))
          await client.create(ClusterRoleBinding, {
            metadata: { name: user, labels: { 'app.kubernetes.io/part-of': 'shipmate' } },
            roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
            subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
          })
        const resourceAttributes = { verb, resource, group: 'shipmate.dev', namespace }
        const { status } = await client.create(SubjectAccessReview, {
          metadata: {},
          spec: { user, resourceAttributes },
        } as never)
        return status?.allowed ?? false
      }
      const table: [string, string, string, boolean][] = [
        ['view', 'get', 'statefulapps', true],
        ['view', 'list', 'lifecycles', true],
        ['view', 'create', 'operations', false],
        ['edit', 'get', 'lifecycles', true],
        ['edit', 'create', 'operations', true],
        ['edit', 'patch', 'statefulapps', true],
        ['edit', 'create', 'lifecycles', false],
        ['edit', 'settle', 'operations', false],
        ['admin', 'create', 'lifecycles', true],
        ['admin', 'settle', 'operations', true],
        ['admin', 'patch', 'statefulapps/status', false],
      ]
      for (const [role, verb, resource, expected] of table)
        await vi.waitFor(
          async () => expect(await granted(role, verb, resource), `${role}: ${verb} ${resource}`).toBe(expected),
          patience,
        )
    })

    /** So many backups were made, each once. */
    async function backedUp(times: number): Promise<void> {
      const { client, namespace, source } = cluster
      await vi.waitFor(async () => {
        const { status } = await client.get(StatefulApp, { name: app, namespace })
        expect({ state: status?.state, outcome: status?.wish?.outcome }, JSON.stringify(status)).toEqual({
          state: 'Running',
          outcome: 'Succeeded',
        })
        const operations = await client.list(Operation, { namespace })
        expect(operations.filter(({ status }) => status?.phase === 'Succeeded')).toHaveLength(times)
      }, patience)
      for (const index of [0, 1]) {
        const { stdout } = await exec(
          source,
          { name: `${app}-${index}`, namespace },
          { container: 'application', command: ['cat', '/work/effects'] },
        )
        expect(stdout).toBe('once\n'.repeat(times))
      }
    }
  },
  noControllerImage,
)

/** With the sidecar as `shipmate inject` adds it, under a number and a group as OpenShift gives them. */
function workload(namespace: string): object {
  const set = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: app },
    spec: {
      ...{ serviceName: app, replicas: 2, podManagementPolicy: 'Parallel', selector: { matchLabels: { app } } },
      template: {
        metadata: {
          labels: { app, 'shipmate.dev/lifecycle': app },
          annotations: { 'shipmate.dev/app': app, 'shipmate.dev/volumes': 'work' },
        },
        spec: {
          securityContext: { runAsNonRoot: true, runAsUser: 1000720000, runAsGroup: 0 },
          containers: [
            {
              ...{ name: 'application', image: images.busybox, imagePullPolicy: 'Never' },
              command: ['sh', '-c', 'trap exit TERM; sleep 1000000 & wait'],
              securityContext: restricted,
              volumeMounts: [{ name: 'work', mountPath: '/work' }],
            },
          ],
          volumes: [{ name: 'work', emptyDir: {} }],
        },
      },
    },
  }
  const settings = { version: manifest.version, image: images.sidecar }
  const { texts, problems } = injectTexts([{ file: 'set.yaml', text: stringify(set) }], [], settings)
  expect(problems).toEqual([])
  const { metadata, ...rest } = parse(texts[0] ?? '')
  return { ...rest, metadata: { ...metadata, namespace } }
}
