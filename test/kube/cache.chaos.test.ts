/**
 * Random schedules of a cache behind a network that loses, cuts, freezes and garbles, while others and ourselves write: in virtual time, on a
 * model of the server.
 *
 * What must hold: nothing is ever shown older than it was seen; what we wrote is there when our call returns; every change is heard once; and when
 * the weather calms down, the cache is what the server has.
 */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { expect, it } from 'vitest'
import { connectThrough } from '../../controller/kube/access.ts'
import { Cache } from '../../controller/kube/cache.ts'
import { CachedClient } from '../../controller/kube/cached.ts'
import { Client } from '../../controller/kube/client.ts'
import type { Informer, InformerOptions } from '../../controller/kube/informer.ts'
import { type Kind, keyOf, type Live, resourceOf, type Snapshot } from '../../controller/kube/kind.ts'
import { ConfigMap, Secret } from '../../controller/kube/kinds.ts'
import { createPresence } from '../../controller/kube/presence.ts'
import { sleep } from '../../shared/clock.ts'
import { ShipmateError } from '../../shared/errors.ts'
import { calm, FaultyNetwork, type Weather } from '../fixtures/faulty-network.ts'
import { ModelServer } from '../fixtures/model-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'
import { type Widget, widgetKind } from '../fixtures/widget.ts'

const first = Number(process.env.SHIPMATE_SEED ?? 1)
const schedules = Number(process.env.SHIPMATE_SCHEDULES ?? 100)

it(
  `keeps a cache right through bad weather: seeds ${first} to ${first + schedules - 1}`,
  async () => {
    const total = { writes: 0, doubts: 0, changes: 0, lost: 0, rollBacks: 0 }
    for (let seed = first; seed < first + schedules; seed++) {
      try {
        const done = await schedule(seed)
        for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += done[key]
      } catch (error) {
        const replay = `SHIPMATE_SEED=${seed} npx vitest run test/kube/cache.chaos.test.ts`
        throw new Error(`seed ${seed}: ${(error as Error).message}\nreplay: ${replay}`, { cause: error })
      }
    }
    // Schedules in which nothing happens would show nothing.
    if (schedules >= 20) for (const count of Object.values(total)) expect(count).toBeGreaterThan(schedules / 10)
  },
  60_000 + schedules * 5_000,
)

const Widgets = widgetKind('chaos.example.com')
const namespaces = ['x', 'y', 'z']
const minute = 60_000

async function schedule(seed: number) {
  const generator = xoroshiro128plus(seed)
  const random = () => uniformFloat64(generator)
  const below = (limit: number) => Math.floor(random() * limit)
  const chance = (probability: number) => random() < probability
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T

  const clock = new VirtualClock()
  const server = new ModelServer({ clock })
  server.lag = () => random() * 200
  server.progress = chance(0.5)
  server.serve(Widgets)
  const network = new FaultyNetwork(clock, random, request => server.send(request))
  const others = new Client(request => server.answer(request), { fieldManager: 'others' })
  const { client: direct } = connectThrough(network.send, { name: 'us', clock, retry: { random } })

  const done = { writes: 0, doubts: 0, changes: 0, lost: 0, rollBacks: 0 }
  const presence = createPresence(direct, { clock, random: () => 0.5 })
  const common = { clock, random, streaming: chance(0.5), pageSize: 1 + below(4), presence }
  const cache = new Cache(direct, {
    ...common,
    onHealth: health => {
      if (health.is === 'failing') done.lost++
    },
  })
  // One kind whole, one in two namespaces, one by its labels.
  cache.for(ConfigMap, { keepManager: 'us' })
  cache.for(Secret, { namespaces: ['x', 'y'] })
  cache.for(Widgets, { labels: 'app in (a,b)', keepManager: 'us' } satisfies InformerOptions<Widget>)
  const client = new CachedClient(direct, cache)
  const kinds: Kind[] = [ConfigMap, Secret, Widgets]
  const witnesses = kinds.map(kind => witness(cache.informer(kind), done))
  const stop = new AbortController()
  const running = cache.run(stop.signal)

  const metadata = () => ({ name: `n${below(4)}`, namespace: pick(namespaces), labels: { app: pick(['a', 'b', 'c']) } })
  const body = (kind: Kind) => {
    const value = String(below(3))
    return kind === Widgets ? { spec: { value } } : { data: { value } }
  }
  const isCached = (kind: Kind, { metadata: { namespace, labels } }: Live) =>
    kind === ConfigMap || (kind === Secret ? namespace !== 'z' : ['a', 'b'].includes(labels?.['app'] ?? ''))

  async function othersWrite(): Promise<void> {
    const kind = pick(kinds)
    const object = { metadata: metadata(), ...body(kind) }
    try {
      if (chance(0.3)) await others.delete(kind, object.metadata)
      else if (chance(0.5)) await others.patch(kind, object.metadata, { merge: object })
      else await others.apply(kind, object)
    } catch (error) {
      if (!(error instanceof ShipmateError)) throw error
    }
  }

  /** What we write is there when the call returns, unless the server has gone on since. */
  async function weWrite(): Promise<void> {
    const kind = pick(kinds)
    const object = { metadata: metadata(), ...body(kind) }
    const ref = { name: object.metadata.name, namespace: object.metadata.namespace }
    const informer = cache.informer(kind)
    done.writes++
    try {
      if (chance(0.25)) {
        const known = informer.get(ref)
        if (await client.delete(kind, known ?? ref)) {
          if (known)
            expect(informer.get(ref)?.metadata.uid, `${keyOf(ref)}, deleted by us`).not.toBe(known.metadata.uid)
        }
        return
      }
      const written = (await write(kind, object)) as unknown as Live
      expect(() => {
        written.metadata.labels = {}
      }, 'what is handed out cannot be changed').toThrow(TypeError)
      if (!isCached(kind, written) || !informer.hasSynced) return
      const version = Number(written.metadata.resourceVersion)
      const shown = Number(informer.get(ref)?.metadata.resourceVersion ?? 0)
      const now = server.list(resourceOf(kind)).find(one => one.metadata.uid === written.metadata.uid)
      const isPast = shown === 0 && !(now && isCached(kind, now))
      if (!isPast) expect(shown, `${keyOf(ref)}, written by us at ${version}`).toBeGreaterThanOrEqual(version)
    } catch (error) {
      if (!(error instanceof ShipmateError)) throw error
      done.doubts++
    }
  }

  function write(kind: Kind, object: { metadata: ReturnType<typeof metadata> }) {
    const known = cache.informer(kind).get(object.metadata)
    switch (below(5)) {
      case 0:
        return client.create(kind, object)
      case 1:
        return known
          ? client.update(kind, {
              ...known,
              ...object,
              metadata: { ...known.metadata, labels: object.metadata.labels },
            })
          : client.create(kind, object)
      case 2:
        return client.patch(kind, object.metadata, { merge: object })
      case 3:
        return known
          ? client.status(kind, known as Snapshot<{ status?: object }>, { observed: below(3) } as object)
          : client.apply(kind, object)
      default:
        return client.apply(kind, object)
    }
  }

  const weather = (): Weather => ({
    ...{ refuse: random() * 0.3, loseRequest: random() * 0.1, loseAnswer: random() * 0.2, turnAway: random() * 0.2 },
    ...{ cut: random() * 0.2, freeze: random() * 0.05, garble: random() * 0.05, delay: pick([5, 100, 2000]) },
  })

  async function misfortune(): Promise<void> {
    if (chance(0.5)) network.weather = chance(0.3) ? calm : weather()
    if (chance(0.1)) server.compact()
    if (chance(0.1)) server.cutWatches()
    if (chance(0.03)) server.unserve(Widgets)
    else if (chance(0.3)) server.serve(Widgets)
  }

  const span = pick([1, 5, 20]) * minute
  const end = clock.monotonic() + span
  const busy = [othersWrite, othersWrite, weWrite, weWrite, misfortune].map(async act => {
    const pace = (2 * span) / (10 + below(60))
    while (clock.monotonic() < end) {
      // Some of what happens, happens at once.
      await sleep(clock, chance(0.2) ? 0 : random() * pace)
      await act()
    }
  })
  let isOver = false
  const all = Promise.all(busy).then(() => {
    isOver = true
  })
  all.catch(() => {
    isOver = true
  })
  if (!(await clock.until(() => isOver, 60 * minute))) throw new Error('somebody still waits for an answer')
  await all

  // Longer than any stream is left alone before it is given up, and than any wait after a failure.
  network.weather = calm
  server.serve(Widgets)
  await clock.advance(15 * minute)
  if (chance(0.2)) {
    done.rollBacks++
    for (const one of witnesses) one.forget()
    server.rollBack(1 + below(20))
    server.serve(Widgets)
    await clock.advance(15 * minute)
  }
  for (let i = 0; i < 10; i++) await othersWrite()
  await clock.advance(minute)

  for (const kind of kinds) {
    const informer = cache.informer(kind)
    expect(informer.health.is, `the health of ${kind.plural}`).toBe('watching')
    const there = server.list(resourceOf(kind)).filter(object => isCached(kind, object))
    const expected = new Map(there.map(object => [keyOf(object.metadata), comparable(object)]))
    const shown = new Map(
      informer.list().map(object => [keyOf(object.metadata), comparable(object as unknown as Live)]),
    )
    expect(shown, `the ${kind.plural} in the cache`).toEqual(expected)
  }
  for (const one of witnesses) one.check()
  stop.abort()
  await running
  expect(server.watches, 'streams that are still open').toBe(0)
  expect(clock.pending, 'timers that are still set').toBe(0)
  return done
}

function comparable({ metadata: { managedFields: _, ...metadata }, ...rest }: Live): object {
  return { ...rest, metadata }
}

/** Listens to an informer, and holds what it hears against what it may hear. */
function witness(informer: Informer<object>, done: { changes: number }) {
  const heard = new Map<string, Snapshot>()
  const floors = new Map<string, number>()
  let isForgetful = false
  const errors: string[] = []
  informer.subscribe(change => {
    const { type, key, object } = change
    done.changes++
    const before = heard.get(key)
    if (type === 'added' && before) errors.push(`${key} was added twice`)
    if (type === 'changed' && change.old !== before) errors.push(`${key} changed from something else than it was`)
    if (type === 'removed' && !before) errors.push(`${key} was removed and had not been there`)
    if (type === 'removed') heard.delete(key)
    else heard.set(key, object)
    const version = Number(object.metadata.resourceVersion)
    const floor = floors.get(key) ?? 0
    // What was cleared because its kind was said not to be served may be there again, as it was.
    const mayBeSame = type === 'removed' || informer.kind === Widgets
    const isOlder = mayBeSame ? version < floor : version <= floor
    if (isOlder && !isForgetful) errors.push(`${key} went back from ${floor} to ${version} (${type})`)
    floors.set(key, isForgetful ? 0 : version)
  })
  return {
    /** The server goes back: so may what it says. */
    forget() {
      isForgetful = true
    },
    check() {
      expect(errors, `what was heard of ${informer.kind.plural}`).toEqual([])
      const shown = new Map(informer.list().map(object => [keyOf(object.metadata), object]))
      expect(shown, `what was heard of ${informer.kind.plural}, all in all`).toEqual(heard)
    },
  }
}
