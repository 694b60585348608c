/**
 * Nodes and a scheduler on the API server under test, and a namespace for each file: what a test of pods needs.
 */
import { randomBytes } from 'node:crypto'
import type { V1Pod } from '@kubernetes/client-node'
import { inject, vi } from 'vitest'
import { type Access, connect } from '../../../controller/kube/access.ts'
import type { Draft, Live } from '../../../controller/kube/kind.ts'
import { Event, Namespace, Node, Pod, ServiceAccount } from '../../../controller/kube/kinds.ts'
import { startScheduler } from '../../../devcluster/controllers/scheduler.ts'
import { type Nodes, type NodesOptions, startNodes } from '../../../devcluster/node/nodes.ts'

export interface World extends AsyncDisposable {
  readonly access: Access
  readonly nodes: Nodes
  readonly namespace: string
  /** Creates a pod; with one container `main` if only a command is given. */
  pod(name: string, spec: Partial<PodSpec> | string[], metadata?: object): Promise<Live<V1Pod>>
  get(name: string): Promise<Live<V1Pod> | undefined>
  /** Resolves with the pod when it is so. */
  until(name: string, is: (pod: Live<V1Pod>) => boolean): Promise<Live<V1Pod>>
  gone(name: string): Promise<void>
  log(name: string, container?: string, options?: object): Promise<string>
  events(name: string): Promise<string[]>
}

type PodSpec = NonNullable<Draft<V1Pod>['spec']>

const worldLabel = 'shipmate.dev/world'
export const patience = { timeout: 40_000, interval: 30 }

export async function startWorld(options: Partial<NodesOptions> = {}): Promise<World> {
  const access = connect({ kubeconfig: { file: inject('kubeconfig') } })
  const { client } = access
  const namespace = `node-${randomBytes(4).toString('hex')}`
  await client.create(Namespace, { metadata: { name: namespace } })
  if (!(await client.find(ServiceAccount, { namespace, name: 'default' })))
    await client.create(ServiceAccount, { metadata: { namespace, name: 'default' } }).catch(() => undefined)
  const labels = (number: number) => ({ [worldLabel]: namespace, ...options.labels?.(number) })
  const nodes = await startNodes({ client, name: namespace, ...options, labels })
  const scheduler = await startScheduler(client)
  const get = (name: string) => client.find(Pod, { namespace, name })
  const world: World = {
    access,
    nodes,
    namespace,
    get,
    pod(name, given, metadata = {}) {
      const spec = Array.isArray(given) ? { containers: [{ name: 'main', image: 'none', command: given }] } : given
      // Other tests' nodes are on the same server.
      const nodeSelector = { [worldLabel]: namespace, ...spec.nodeSelector }
      const whole = { terminationGracePeriodSeconds: 5, ...spec, containers: spec.containers ?? [], nodeSelector }
      return client.create(Pod, { metadata: { namespace, name, ...metadata }, spec: whole as PodSpec })
    },
    until(name, is) {
      return vi.waitFor(async () => {
        const pod = await get(name)
        if (!pod || !is(pod))
          throw new Error(`${name} is ${JSON.stringify(pod?.status ?? null)}; ${nodes.problems.join('; ')}`)
        return pod
      }, patience)
    },
    gone(name) {
      return vi.waitFor(async () => {
        if (await get(name)) throw new Error(`${name} is still there`)
      }, patience)
    },
    async log(name, container = 'main', more = {}) {
      const pod = await get(name)
      const place = { namespace, name, uid: pod?.metadata.uid ?? '' }
      const wish = { container, follow: false, previous: false, timestamps: false, ...more }
      let text = ''
      for await (const piece of nodes.runtime.logs(place, wish, new AbortController().signal))
        text += Buffer.from(piece).toString()
      return text
    },
    async events(name) {
      const all = await client.list(Event, { namespace })
      return all.filter(({ regarding }) => regarding?.name === name).map(({ reason, note }) => `${reason}: ${note}`)
    },
    async [Symbol.asyncDispose]() {
      await scheduler.stop()
      await nodes.stop()
      for (const { metadata } of await client.list(Pod, { namespace }))
        await client.delete(Pod, metadata, { gracePeriodSeconds: 0 }).catch(() => undefined)
      for (const { name } of nodes.all) await client.delete(Node, { name })
      await access.close()
    },
  }
  return world
}
