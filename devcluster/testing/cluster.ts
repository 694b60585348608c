/**
 * A cluster for one test, in the test's own process, with the operator that is tested: it runs as its own service account with the roles that follow from what it
 * declares.
 *
 * Guarantees: a request that is refused fails the test, with the rule to declare. When it is stopped nothing is left. With `KUBEBUILDER_ASSETS` the API server is a
 * real one.
 */
import type { Client, DeleteOptions, Selection } from '../../controller/kube/client.ts'
import type { Kind, Live, Ref } from '../../controller/kube/kind.ts'
import type { User } from '../api/types.ts'
import type { ClusterOptions } from '../cluster.ts'
import type { ControllerName } from '../controllers/start.ts'
import { createHost, type Host } from './host.ts'
import type { Manifests } from './manifests.ts'
import type { Operators } from './operator.ts'
import { merged, refusalText } from './rule.ts'
import { lookOf, sayTimeout } from './sayings.ts'

export interface TestClusterOptions extends Pick<ClusterOptions, 'nodes' | 'images' | 'labels'> {
  /** What is tested: what `advancedReconciler` answers, several of these, or a function that makes them anew for each start. Default: no operator. */
  readonly operator?: Operators | undefined
  /** Those of a control plane. Default: garbage collection and the deletion of namespaces; with nodes, or with `true`, all. */
  readonly controllers?: boolean | readonly ControllerName[] | undefined
  /** A real API server, started from `KUBEBUILDER_ASSETS`. Default: where that is set. */
  readonly real?: boolean | undefined
  /** Milliseconds that `until` and `settled` wait at most. Default 5,000; 30,000 on a real server. */
  readonly timeout?: number | undefined
  /** What a refused request of the operator does: `fail` the test, or nothing. Default `fail`. */
  readonly refusals?: 'fail' | 'allow' | undefined
}

export interface WaitOptions {
  /** Milliseconds. Default: the cluster's. */
  readonly timeout?: number | undefined
  /** What is waited for, in words, for the message. Default: the predicate as it is written. */
  readonly what?: string | undefined
}

/** An object by its name, `NAMESPACE/NAME`, or anything that has a name. The namespace is `default` unless it is said. */
export type Named = string | Ref

export interface TestCluster extends AsyncDisposable {
  /** May everything. */
  readonly client: Client
  /** A client for somebody else: `jane`, or one with groups. */
  clientFor(user: string | User): Client
  /** Creates or changes objects, as `kubectl apply --server-side` does; answers them as they are then. */
  apply(manifests: Manifests): Promise<Live[]>
  get<T extends object>(kind: Kind<T>, name: Named): Promise<Live<T>>
  /** Undefined where it is not there. */
  find<T extends object>(kind: Kind<T>, name: Named): Promise<Live<T> | undefined>
  list<T extends object>(kind: Kind<T>, options?: Selection): Promise<Live<T>[]>
  delete(kind: Kind, name: Named, options?: DeleteOptions): Promise<void>
  /** Waits until an object is there and the predicate holds; a message says how it looks instead, and what went wrong in the operator. */
  until<T extends object>(
    kind: Kind<T>,
    name: Named,
    predicate?: (object: Live<T>) => unknown,
    options?: WaitOptions,
  ): Promise<Live<T>>
  /** Waits until it is gone. */
  untilGone(kind: Kind, name: Named, options?: WaitOptions): Promise<void>
  /** Waits until the operator asks for nothing any more. */
  settled(options?: WaitOptions): Promise<void>
  /** Kills the operator and starts it again. */
  restart(): Promise<void>
  /** What the operator writes although nothing has changed: each of its custom resources is touched, then it is restarted. As `patch configmaps sample in namespace default`. */
  writesWhileIdle(): Promise<string[]>
  /** What the operator has asked so far, its lease, its events and its watches left out. */
  requests(): string[]
  /** What the operator has logged, newest last. */
  log(): string[]
  /** The text of a kubeconfig, for kubectl or any other program. Default: for one who may everything. */
  kubeconfig(user?: string | User): Promise<string>
  stop(): Promise<void>
}

export async function startCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  return clusterOn(await createHost(options), options)
}

/** The same on a host that somebody else has started. */
export function clusterOn(host: Host, options: TestClusterOptions = {}): TestCluster {
  const { client } = host
  const told = new Set<string>()
  const limitOf = ({ timeout }: WaitOptions) => timeout ?? options.timeout ?? host.patience

  /** What was refused since somebody was last told. */
  function refused(): string | undefined {
    if (options.refusals === 'allow') return undefined
    const news = merged([...host.ledger.refusals].flatMap(([key, one]) => (told.has(key) ? [] : one)))
    for (const key of host.ledger.refusals.keys()) told.add(key)
    return news.length > 0 ? news.map(refusalText).join('\n') : undefined
  }

  async function wait(look: () => Promise<boolean>, limit: number): Promise<'met' | 'late' | { refused: string }> {
    const end = host.monotonic() + limit
    for (let tries = 0; ; tries++) {
      if (await look()) return 'met'
      // What it could do without the missing rule it may still do: what is waited for may come all the same.
      if (tries > 20 && host.ledger.refusals.size > told.size) {
        const text = refused()
        if (text) return { refused: text }
      }
      if (host.failure) throw new Error('the operator has ended', { cause: host.failure })
      if (host.monotonic() >= end) return 'late'
      await host.pause()
    }
  }

  async function until<T extends object>(
    kind: Kind<T>,
    name: Named,
    predicate: (object: Live<T>) => unknown = () => true,
    wish: WaitOptions = {},
  ): Promise<Live<T>> {
    const ref = refOf(kind, name)
    let last: Live<T> | undefined
    let thrown: unknown
    const limit = limitOf(wish)
    const ended = await wait(async () => {
      last = await client.find(kind, ref)
      try {
        thrown = undefined
        return last !== undefined && Boolean(predicate(last))
      } catch (error) {
        thrown = error
        return false
      }
    }, limit)
    if (ended === 'met' && last) return last
    throw new Error(
      sayTimeout({
        limit,
        ref,
        kind,
        what: wish.what ?? String(predicate),
        look: lookOf(last),
        thrown,
        refused: typeof ended === 'object' ? ended.refused : refused(),
        troubles: host.troubles(),
      }),
    )
  }

  async function settled(wish: WaitOptions = {}): Promise<void> {
    if (await host.settled(limitOf(wish))) return
    const last = host.ledger.asked.slice(-5).map(({ text }) => text)
    throw new Error(
      `the operator does not come to rest: it has asked ${host.ledger.asked.length} times, last\n  ${last.join('\n  ')}`,
    )
  }

  const writes = (from: number) =>
    host.ledger.asked.slice(from).flatMap(({ isWrite, isAside, text }) => (isWrite && !isAside ? [text] : []))

  return {
    client,
    clientFor: user => host.clientFor(personOf(user)),
    apply: manifests => host.apply(manifests),
    get: (kind, name) => client.get(kind, refOf(kind, name)),
    find: (kind, name) => client.find(kind, refOf(kind, name)),
    list: (kind, selection) => client.list(kind, selection),
    async delete(kind, name, deletion) {
      await client.delete(kind, refOf(kind, name), deletion)
    },
    until,
    async untilGone(kind, name, wish = {}) {
      const ref = refOf(kind, name)
      let last: Live | undefined
      const limit = limitOf(wish)
      const ended = await wait(async () => {
        last = await client.find(kind, ref)
        return last === undefined
      }, limit)
      if (ended === 'met') return
      const [what, look] = [wish.what ?? 'that it is gone', lookOf(last)]
      const why = typeof ended === 'object' ? ended.refused : refused()
      throw new Error(sayTimeout({ limit, ref, kind, what, look, refused: why, troubles: host.troubles() }))
    },
    settled,
    async restart() {
      await host.restart()
    },
    async writesWhileIdle() {
      await settled()
      const from = host.ledger.asked.length
      for (const value of ['once', null]) {
        await host.touch(value)
        await settled()
      }
      await host.restart()
      await settled()
      return writes(from)
    },
    requests: () =>
      host.ledger.asked.flatMap(({ isAside, text }) => (isAside || text.startsWith('watch ') ? [] : [text])),
    log: () => [...host.log],
    kubeconfig: user => host.kubeconfig(user === undefined ? undefined : personOf(user)),
    stop,
    [Symbol.asyncDispose]: stop,
  }

  async function stop(): Promise<void> {
    await host.stop()
    const text = refused()
    if (text) throw new Error(`the operator was refused what it asked for:\n  ${text}`)
  }
}

function refOf(kind: Kind, name: Named): Ref {
  const [first = '', second] = typeof name === 'string' ? name.split('/') : []
  const ref = typeof name === 'string' ? (second ? { namespace: first, name: second } : { name: first }) : name
  return kind.namespaced ? { namespace: 'default', ...ref } : { name: ref.name }
}

function personOf(user: string | User): User {
  return typeof user === 'string' ? { name: user, groups: ['system:authenticated'] } : user
}
