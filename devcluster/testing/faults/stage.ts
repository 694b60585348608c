/**
 * A run of a scenario on a cluster of its own, in fast time: applied, looked at, deleted, looked at. What goes wrong on the way is the weather's.
 *
 * Guarantee: an operator that asks without end is stopped, and said to do so.
 */
import { NotFound } from '../../../controller/kube/errors.ts'
import type { Live } from '../../../controller/kube/kind.ts'
import { describeTarget } from '../../../controller/kube/transport.ts'
import { shelfOf } from '../../api/requests/context.ts'
import { clusterOn, type TestCluster, type TestClusterOptions } from '../cluster.ts'
import { createHost, type Host } from '../host.ts'
import type { Asked, Weather } from '../line.ts'
import type { Manifests } from '../manifests.ts'
import { merged, refusalText } from '../rule.ts'
import { type Compare, type Picture, pictureOf } from './judge.ts'

/** What a person does: objects to apply, a file of them, or a function. What is applied is deleted in the end. */
export type Scenario = Manifests | ((cluster: TestCluster) => Promise<unknown>)

export interface StageOptions extends Pick<TestClusterOptions, 'operator' | 'controllers'> {
  readonly scenario: Scenario
  /** What of an object counts when two runs are compared; undefined leaves it out. Default: all of it. */
  readonly compare?: Compare | undefined
  /** Which objects may stay when all is deleted. Default: none. */
  readonly leaves?: ((object: Live) => boolean) | undefined
}

export interface Stage {
  readonly host: Host
  readonly cluster: TestCluster
  /** What the operator has written so far, each with the revision that came of it. */
  readonly writes: { readonly text: string; readonly revision: number }[]
  /** Plays the scenario. */
  play(): Promise<void>
  /** The same, and waits until all is at rest. */
  apply(): Promise<void>
  /** Deletes what was applied, the last first, and waits until all is at rest. */
  delete(): Promise<void>
  /** The same without waiting. */
  deleteNow(): Promise<void>
  settled(): Promise<void>
  /** All that is there and was not before the scenario. */
  objects(): Live[]
  picture(): Picture
  /** What is left though all was deleted. */
  left(): string[]
  /** What the operator writes when each custom resource is touched. */
  idleWrites(): Promise<string[]>
  asked(): readonly Asked[]
  stop(): Promise<void>
}

/** Requests of one run: more is no progress. */
const most = 1000

export async function setStage(options: StageOptions, weather: Weather, random: () => number): Promise<Stage> {
  let isEndless = false
  const writes: Stage['writes'] = []
  let started: Host | undefined
  const watched: Weather = {
    diesBefore(number, request) {
      isEndless ||= number > most
      return isEndless || (weather.diesBefore?.(number, request) ?? false)
    },
    diesAfter: (number, request) => weather.diesAfter?.(number, request) ?? false,
    async onAnswer(number, request, response) {
      const { verb, resource } = request.target
      const isWrite = !['get', 'list', 'watch'].includes(verb) && resource !== 'events' && resource !== 'leases'
      if (isWrite && response.status < 300 && started)
        writes.push({ text: describeTarget(request.target), revision: revisionOf(started) })
      await weather.onAnswer?.(number, request, response)
    },
    isDeaf: number => weather.isDeaf?.(number) ?? false,
    // What the weather says may change while it is asked.
    get instead() {
      return weather.instead
    },
    get held() {
      return weather.held
    },
    get expired() {
      return weather.expired
    },
  }
  const host = await createHost(
    { ...options, real: false },
    { isFast: true, weather: watched, random, isOver: () => isEndless },
  )
  started = host
  const cluster = clusterOn(host, { refusals: 'allow' })
  const before = new Set(everything(host).map(({ metadata }) => metadata.uid))

  async function settled(): Promise<void> {
    const isSettled = await host.settled(host.patience)
    if (isEndless) throw new Error(`the operator asks without end: ${last(host)}`)
    if (host.ledger.refusals.size > 0)
      throw new Error(
        `a rule is missing: ${merged([...host.ledger.refusals.values()])
          .map(refusalText)
          .join('\n')}`,
      )
    if (!isSettled) throw new Error(`the operator does not come to rest: ${last(host)}`)
  }

  async function play(): Promise<void> {
    const { scenario } = options
    if (typeof scenario === 'function') await scenario(cluster)
    else await cluster.apply(scenario)
  }

  async function deleteNow(): Promise<void> {
    for (const { kind, object } of host.applied.toReversed()) {
      const { name = '', namespace = 'default' } = object.metadata ?? {}
      await host.client.delete(kind, kind.namespaced ? { name, namespace } : { name }).catch(unlessGone)
    }
  }

  const objects = () => everything(host).filter(({ metadata }) => !before.has(metadata.uid))

  return {
    ...{ host, cluster, writes, deleteNow, settled, objects },
    play,
    async apply() {
      await play()
      await settled()
    },
    async delete() {
      await deleteNow()
      await settled()
    },
    picture: () => pictureOf(objects(), options.compare),
    left: () =>
      objects()
        .filter(object => !options.leaves?.(object))
        .map(({ kind, metadata }) => {
          const why = metadata.deletionTimestamp ? `, held by ${metadata.finalizers?.join(', ')}` : ''
          return `${kind} ${metadata.namespace ? `${metadata.namespace}/` : ''}${metadata.name} is left${why}`
        }),
    async idleWrites() {
      const from = host.ledger.asked.length
      for (const value of ['once', null]) {
        await host.touch(value)
        await settled()
      }
      return host.ledger.asked.slice(from).flatMap(({ isWrite, isAside, text }) => (isWrite && !isAside ? [text] : []))
    },
    asked: () => host.ledger.asked,
    stop: () => host.stop(),
  }
}

const aside = new Set(['/events', 'coordination.k8s.io/leases', 'apiextensions.k8s.io/customresourcedefinitions'])

function everything(host: Host): Live[] {
  const api = host.server.embedded?.api
  if (!api) return []
  const shelves = new Set(api.resources.all().map(shelfOf))
  return [...shelves]
    .filter(shelf => !aside.has(shelf))
    .flatMap(shelf => [...api.store.page(shelf).items]) as unknown as Live[]
}

export function revisionOf(host: Host): number {
  return host.server.embedded?.api.store.revision ?? 0
}

function last({ ledger }: Host): string {
  return `last it asked ${ledger.asked
    .slice(-4)
    .map(({ text }) => text)
    .join('; ')}`
}

function unlessGone(error: unknown): void {
  if (!(error instanceof NotFound)) throw error
}
