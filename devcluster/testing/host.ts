/**
 * What is under a cluster of a test: the server, the operator's processes one after another, and time, which is the machine's or passes when nothing else happens.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from '../../controller/kube/client.ts'
import { NotFound } from '../../controller/kube/errors.ts'
import type { Kind, Live } from '../../controller/kube/kind.ts'
import { systemClock } from '../../shared/clock.ts'
import type { User } from '../api/types.ts'
import { accountOf, userOf } from './account.ts'
import type { TestClusterOptions } from './cluster.ts'
import { type Ledger, newLedger, type Weather } from './line.ts'
import { applying, inOrder, type Manifest, type Manifests, readManifests } from './manifests.ts'
import { operatorsOf } from './operator.ts'
import { type OperatorProcess, startProcess } from './process.ts'
import { troubleOf } from './sayings.ts'
import { type Access, type Server, startEmbedded } from './server.ts'
import { createTime, type Time } from './time.ts'

export interface Host {
  readonly client: Client
  readonly server: Server
  readonly ledger: Ledger
  readonly log: readonly string[]
  /** How long is waited at most, unless somebody says. */
  readonly patience: number
  /** What was applied, in order. */
  readonly applied: readonly { readonly kind: Kind; readonly object: Manifest }[]
  /** What has ended the operator, if it ended by itself. */
  readonly failure: unknown
  clientFor(user: User): Client
  apply(manifests: Manifests): Promise<Live[]>
  kubeconfig(user?: User): Promise<string>
  /** The latest warnings and errors of its log. */
  troubles(): string[]
  monotonic(): number
  /** Calls back after so many milliseconds of its time. */
  after(ms: number, run: () => void): void
  /** A little while. */
  pause(): Promise<void>
  /** Whether it came to rest within so many milliseconds. */
  settled(limit: number): Promise<boolean>
  /** Changes an annotation of each custom resource of the operator's. */
  touch(value: string | null): Promise<void>
  kill(): void
  /** Kills it, if it lives, and starts it again, perhaps in other weather. */
  restart(weather?: Weather): Promise<void>
  stop(): Promise<void>
}

export interface Inner {
  /** Time passes when nothing else happens. Default: it is the machine's. */
  readonly isFast?: boolean | undefined
  readonly weather?: Weather | undefined
  readonly random?: (() => number) | undefined
  /** Whether an operator that the weather has killed is not started again. Default: it is. */
  readonly isOver?: (() => boolean) | undefined
}

/** Where the operator's account and lease are. */
const home = 'default'
const keptLines = 1000
const touched = 'testing.shipmate.dev/touched'
/** Of fast time, without a write: then it is at rest. Longer than what is tried again after a first failure. */
const restAfter = 45_000
/** The same of the machine's. */
const quietFor = 150

export async function createHost(options: TestClusterOptions = {}, inner: Inner = {}): Promise<Host> {
  const { controllers = ['garbage', 'namespaces'], real = Boolean(process.env.KUBEBUILDER_ASSETS) } = options
  const isReal = real && !inner.isFast
  const ledger = newLedger()
  const log: string[] = []
  let current: OperatorProcess | undefined
  let lastWrite = 0
  const time: Time | undefined = inner.isFast
    ? createTime(
        () => ledger.busy,
        async () => (await current?.working()) ?? 0,
      )
    : undefined
  const monotonic = () => time?.monotonic() ?? performance.now()
  const server = isReal
    ? await (await import('./real.ts')).startReal({ controllers })
    : await startEmbedded({
        ...{ nodes: options.nodes, images: options.images, labels: options.labels },
        ...{ controllers, clock: time },
      })
  server.embedded?.api.onRequest(({ verb, resource, code }) => {
    if (['get', 'list', 'watch'].includes(verb) || code >= 300 || resource === 'events' || resource === 'leases') return
    lastWrite = monotonic()
  })
  const { client } = server
  const pause = async () => {
    if (time) await time.pass(() => false, 200)
    else await wait(5)
  }
  const { apply, kindOf } = applying(client, pause)
  const applied: { kind: Kind; object: Manifest }[] = []
  let access: Access = server.access
  let user = 'kubernetes-admin'
  let weather: Weather = inner.weather ?? {}
  let kinds: Kind[] = []

  function start(): void {
    current = startProcess({
      operators: operatorsOf(options.operator),
      ...{ user, access, ledger, weather, random: inner.random },
      clock: time?.process(),
      onLog(line) {
        log.push(line)
        if (log.length > keptLines) log.shift()
      },
      onDeath() {
        current = undefined
        if (!inner.isOver?.()) queueMicrotask(start)
      },
    })
  }

  async function prepare(): Promise<void> {
    const operators = operatorsOf(options.operator)
    if (operators.length === 0) return
    const crds = operators.flatMap(operator => [...(operator.crds?.() ?? [])]) as Manifest[]
    const account = accountOf(operators, home)
    for (const manifest of [...crds, ...(account?.objects ?? [])]) await apply(manifest)
    kinds = await Promise.all(crds.map(crd => kindOf(sampleOf(crd))))
    if (account) {
      access = await server.accessFor(account)
      user = userOf(account).name
    }
    start()
    await ready()
  }

  async function ready(): Promise<void> {
    // What it waits for may be what the test applies next: nobody waits for it longer than this.
    const limit = monotonic() + (isReal ? 5000 : 500)
    let isReady = false
    current?.manager.ready.then(
      () => {
        isReady = true
      },
      () => undefined,
    )
    await new Promise(setImmediate)
    while (!isReady && current && monotonic() < limit && !current.failure && ledger.refusals.size === 0) {
      if (time) await time.pass(() => isReady, 10)
      else await wait(1)
    }
  }

  async function stop(): Promise<void> {
    if (time) current?.kill()
    else await current?.stop()
    current = undefined
    await server.stop()
  }

  try {
    await prepare()
  } catch (error) {
    await stop()
    throw error
  }

  return {
    ...{ client, server, ledger, log, applied, monotonic, pause },
    after: (ms, run) => void (time ?? systemClock).after(ms, run),
    patience: time ? 600_000 : isReal ? 30_000 : 5000,
    get failure() {
      return current?.failure
    },
    clientFor: one => server.clientFor(one),
    kubeconfig: one => server.kubeconfig(one),
    async apply(manifests) {
      const made: Live[] = []
      for (const manifest of inOrder(await readManifests(manifests))) {
        const one = await apply(manifest)
        applied.push({ kind: one.kind, object: manifest })
        made.push(one.object as Live)
      }
      return made
    },
    troubles: () => [...new Set(log.flatMap(line => troubleOf(line) ?? []))].slice(-8),
    async settled(limit) {
      if (time) return time.pass(() => time.monotonic() - lastWrite >= restAfter, limit)
      const end = performance.now() + limit
      for (let [seen, since] = [ledger.requests, performance.now()]; performance.now() < end; await wait(5)) {
        const isAtWork = ledger.busy > 0 || ledger.requests !== seen || ((await current?.working()) ?? 0) > 0
        if (isAtWork) [seen, since] = [ledger.requests, performance.now()]
        else if (performance.now() - since >= quietFor) return true
      }
      return false
    },
    async touch(value) {
      for (const kind of kinds)
        for (const { metadata } of await client.list(kind))
          await client
            .patch(kind, metadata, { merge: { metadata: { annotations: { [touched]: value } } } })
            .catch(unlessGone)
    },
    kill() {
      current?.kill()
      current = undefined
    },
    async restart(next) {
      weather = next ?? weather
      current?.kill()
      if (operatorsOf(options.operator).length === 0) return
      start()
      await ready()
    },
    stop,
  }
}

/** Something of the kind that a definition defines. */
function sampleOf(crd: Manifest): Manifest {
  const { spec } = crd as unknown as {
    spec: { group: string; names: { kind: string }; versions: { name: string; served: boolean }[] }
  }
  const version = spec.versions.find(({ served }) => served)?.name
  return { apiVersion: `${spec.group}/${version}`, kind: spec.names.kind }
}

function unlessGone(error: unknown): void {
  if (!(error instanceof NotFound)) throw error
}
