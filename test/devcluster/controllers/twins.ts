/**
 * Two clusters side by side: a real API server with the real kube-controller-manager, and one with the controllers of devcluster. A test does the same to
 * both and looks whether they come to the same.
 */
import { openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { type Access, connect } from '../../../controller/kube/access.ts'
import type { Client } from '../../../controller/kube/client.ts'
import type { Kind } from '../../../controller/kube/kind.ts'
import { ControllerRevision, Namespace, Pod, ReplicaSet } from '../../../controller/kube/kinds.ts'
import { startControllers } from '../../../devcluster/controllers/start.ts'
import { type ApiServer, startApiServer } from '../../fixtures/apiserver.ts'
import { now } from '../../fixtures/controllers.ts'
import { createKeeper } from '../../fixtures/keeper.ts'

const assets = process.env['KUBEBUILDER_ASSETS'] ?? ''

const controllers = [
  ...['statefulset', 'deployment', 'replicaset', 'daemonset', 'disruption', 'namespace', 'garbage-collector'],
  ...['persistentvolumeclaim-protection', 'job', 'cronjob', 'endpointslice', 'ttl-after-finished', 'serviceaccount'],
  ...['clusterrole-aggregation', 'root-ca-certificate-publisher'],
].map(name => `${name}-controller`)

export interface Side {
  readonly name: 'real' | 'ours'
  readonly client: Client
  readonly server: ApiServer
}

export interface Twins {
  readonly sides: readonly [Side, Side]
  /** Does something to both at once; answers what each came to. */
  both<T>(act: (side: Side) => Promise<T>): Promise<[T, T]>
  /** A namespace in both. */
  namespace(name: string): Promise<string>
  /** Waits until the real one is as `reached` says, and ours looks the same. */
  agree<T>(look: (side: Side) => Promise<T>, reached: (real: T) => boolean): Promise<T>
  stop(): Promise<void>
}

export async function startTwins(prepare: (side: Side) => Promise<void> = async () => undefined): Promise<Twins> {
  const servers = await Promise.all([startApiServer(), startApiServer()])
  const accesses: Access[] = servers.map(({ kubeconfig }) => connect({ kubeconfig: { file: kubeconfig } }))
  const sides = servers.map((server, at) => ({
    name: at === 0 ? ('real' as const) : ('ours' as const),
    client: (accesses[at] as Access).client,
    server,
  })) as [Side, Side] & Side[]
  await Promise.all(sides.map(prepare))
  const [real, ours] = servers as [ApiServer, ApiServer]
  const keeper = createKeeper()
  const file = openSync(join(real.dir, 'kube-controller-manager.log'), 'w')
  const flags = {
    kubeconfig: real.kubeconfig,
    controllers: controllers.join(','),
    'leader-elect': 'false',
    'secure-port': '0',
    profiling: 'false',
    'controller-start-interval': '0s',
    'kube-api-qps': '500',
    'kube-api-burst': '1000',
    'root-ca-file': real.caFile,
  }
  keeper.spawn(
    join(assets, 'kube-controller-manager'),
    Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
    { cwd: real.dir, stdio: ['ignore', file, file] },
  )
  const running = await startControllers({
    kubeconfig: { file: ours.kubeconfig },
    ca: await readFile(ours.caFile, 'utf8'),
    log: { level: 'warn' },
  })
  await running.ready
  return {
    sides,
    both: async act => (await Promise.all(sides.map(act))) as Awaited<ReturnType<typeof act>>[] as never,
    async namespace(name) {
      await Promise.all(sides.map(({ client }) => client.create(Namespace, { metadata: { name } })))
      return name
    },
    async agree(look, reached) {
      const [left, right] = sides
      return vi.waitFor(
        async () => {
          const [theirs, own] = await Promise.all([look(left), look(right)])
          expect(own).toEqual(theirs)
          if (!reached(theirs)) throw new Error(`not there yet: ${JSON.stringify(theirs, undefined, 1)}`)
          return theirs
        },
        { timeout: 30_000, interval: 200 },
      )
    },
    async stop() {
      await running.stop()
      await keeper.stop()
      await Promise.all(accesses.map(access => access.close()))
      await Promise.all(servers.map(server => server.stop()))
    },
  }
}

/** What is left of an object when all that differs between any two clusters is taken out. */
export async function facts<T extends object>(side: Side, kind: Kind<T>, namespace: string): Promise<unknown[]> {
  const objects = await side.client.list(kind, { namespace })
  const names = await generated(side, namespace)
  const texts = objects.map(object => {
    const { uid: _, resourceVersion: _r, managedFields: _m, creationTimestamp: _c, ...metadata } = object.metadata
    let text = JSON.stringify({ ...object, metadata })
    // How many steps it took is a matter of who was how fast; that the last one was seen is not.
    text = text.replaceAll(`"observedGeneration":${metadata.generation}`, '"observedGeneration":"NEWEST"')
    text = text.replace(`"generation":${metadata.generation}`, '"generation":"NEWEST"')
    for (const [name, word] of names) text = text.replaceAll(name, word)
    return (
      text
        .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UID')
        .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME')
        .replaceAll(/"resourceVersion":"\d+"/g, '"resourceVersion":"N"')
        // Which node is first is left to chance.
        .replaceAll(/"values":\["n\d"\]/g, '"values":["NODE"]')
        .replaceAll(/-[bcdfghjklmnpqrstvwxz2456789]{5}(?=")/g, '-XXXXX')
    )
  })
  return texts.sort().map(text => sorted(JSON.parse(text)))
}

/** Hashes, in the order of their revisions. */
async function generated({ client }: Side, namespace: string): Promise<[string, string][]> {
  const sets = await client.list(ReplicaSet, { namespace })
  const revisions = await client.list(ControllerRevision, { namespace })
  const hashes = [
    ...sets.map(({ metadata }) => ({
      hash: metadata.labels?.['pod-template-hash'] ?? '',
      at: Number(metadata.annotations?.['deployment.kubernetes.io/revision'] ?? 0),
    })),
    ...revisions.map(({ metadata, revision }) => ({
      hash: metadata.labels?.['controller.kubernetes.io/hash'] ?? metadata.labels?.['controller-revision-hash'] ?? '',
      at: revision,
    })),
  ]
  return hashes.filter(({ hash }) => hash !== '').map(({ hash, at }) => [hash, `HASH-${at}`])
}

/** Lists whose order says nothing, in one order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(sorted)
    const isKeyed = items.every(one => typeof one === 'object' && one !== null && ('type' in one || 'key' in one))
    return isKeyed ? items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : items
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, sorted(one)]))
}

const status = { subresource: 'status' } as const

/** What a kubelet would write of a pod. */
export async function report(
  { client }: Side,
  namespace: string,
  name: string,
  phase: 'Running' | 'Failed' | 'Succeeded' | 'Pending',
  more: object = {},
): Promise<void> {
  const at = now()
  const ready = { type: 'Ready', status: phase === 'Running' ? 'True' : 'False', lastTransitionTime: at }
  const merge = { status: { phase, conditions: [ready], ...more } }
  await client.patch(Pod, { name, namespace }, { merge }, status)
}

/** All pods there are run and are ready, but those that match. Answers how many there are. */
export async function runAll(side: Side, namespace: string, but = /^$/): Promise<number> {
  const pods = await side.client.list(Pod, { namespace })
  for (const { metadata, status } of pods) {
    if (metadata.deletionTimestamp || but.test(metadata.name) || status?.phase !== 'Pending') continue
    await report(side, namespace, metadata.name, 'Running').catch(() => undefined)
  }
  return pods.length
}
