/**
 * Random schedules of an operator on the toolkit: it begins with children in any state, its process dies at any request, requests and answers get lost, the
 * server refuses, watches are late, cut and too old; people change the wish, damage, delete and hold children, and delete what they wished.
 *
 * In the end everything is as wished, what was deleted was finalized, nothing is left over, nothing is written any more, and not after a restart either.
 */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { expect, it } from 'vitest'
import type { Snapshot } from '../../controller/kube/kind.ts'
import { ConfigMap, Secret, Service } from '../../controller/kube/kinds.ts'
import {
  addTo,
  advancedReconciler,
  type Condition,
  mutable,
  resource,
  stepper,
} from '../../controller/toolkit/index.ts'
import { Storm } from '../fixtures/storm.ts'
import type { Widget } from '../fixtures/widget.ts'
import { World } from '../fixtures/world.ts'

const first = Number(process.env.SHIPMATE_SEED ?? 1)
const schedules = Number(process.env.SHIPMATE_SCHEDULES ?? 100)

it(
  `an operator on the toolkit always gets there, and then writes nothing more: seeds ${first} to ${first + schedules - 1}`,
  async () => {
    const total: Record<string, number> = {}
    for (let seed = first; seed < first + schedules; seed++) {
      try {
        for (const [name, count] of Object.entries(await schedule(seed))) total[name] = (total[name] ?? 0) + count
      } catch (error) {
        const replay = `SHIPMATE_SEED=${seed} npx vitest run test/toolkit/convergence.chaos.test.ts`
        throw new Error(`seed ${seed}: ${(error as Error).message}\nreplay: ${replay}`, { cause: error })
      }
    }
    console.log(`seeds ${first} to ${first + schedules - 1}: ${JSON.stringify(total)}`)
    if (schedules >= 20)
      for (const [what, count] of Object.entries(total)) expect(count, what).toBeGreaterThan(schedules / 5)
  },
  60_000 + schedules * 5_000,
)

interface Child {
  metadata: {
    name: string
    uid: string
    finalizers?: string[]
    deletionTimestamp?: string
    ownerReferences?: { uid: string }[]
  }
  data?: Record<string, string>
}

async function schedule(seed: number): Promise<Record<string, number>> {
  const rng = xoroshiro128plus(seed)
  const random = () => uniformFloat64(rng)
  const below = (limit: number) => Math.floor(random() * limit)
  const chance = (probability: number) => random() < probability

  const world = new World()
  const { clock, server, client, widgets } = world
  const namespace = 'default'
  const names = ['a', 'b', 'c'].slice(0, 1 + below(3))
  const lateness = chance(0.5) ? 5000 : 20
  const finalized = new Set<string>()
  const released = new Set<string>()
  const count = { deleted: 0, damaged: 0 }

  /** The wished children: a map, a secret after it, made once, and as many others as the value says. */
  const settings = mutable(ConfigMap, widgets, {
    mutateWithInitialData: () => ({ metadata: { labels: { app: 'widget' } }, data: { mode: 'fast' } }),
    mutateWithCR(map, cr) {
      map.data.value = cr.spec.value
    },
    finalizer: ({ object }) => void released.add(object.metadata.uid),
    ...(chance(0.3) && { getHashableRef: () => ['data' as const] }),
  })
  const once = resource(Secret, widgets, { mutateWithInitialData: cr => ({ data: { value: btoa(cr.spec.value) } }) })
  const others = (cr: Snapshot<Widget>) =>
    Array.from({ length: Number(cr.spec.value) % 4 }, (_, i) => `${cr.metadata.name}-${i}`)
  const other = (name: string) =>
    mutable(Service, widgets, { name, mutateWithInitialData: () => ({ spec: { type: 'ClusterIP' } }) })
  const reconciler = advancedReconciler(widgets, {
    resources: [settings, once],
    owns: [Service],
    maxCreation: below(4),
    stopOnError: chance(0.3),
    concurrency: 1 + below(4),
    engine: stepper({
      ObjectsGetter({ cr, register }) {
        const map = register(settings)
        register(once, { after: map })
        for (const name of others(cr)) register(other(name))
      },
      CRFinalizer: ({ cr }) => void finalized.add(cr.metadata.uid),
      SuccessManager({ status, cr }) {
        status.observedValue = cr.spec.value
      },
    }),
  })
  const storm = new Storm({
    ...{ world, random },
    weather: {
      loss: random() * 0.15,
      refusal: random() * 0.15,
      death: chance(0.7) ? random() * 0.03 : 0,
      delay: below(100),
    },
    declare: manager => addTo(manager, reconciler),
    options: () => ({ cache: { streaming: chance(0.5), pageSize: 1 + below(3) } }),
  })
  server.lag = () => (storm.isCalm ? 1 : below(lateness))

  const list = (what: string) => server.list(what) as unknown as Child[]
  /** uids of Widgets that had our finalizer when they were deleted. */
  const promised = new Set<string>()

  /** Somebody does something. */
  async function happen(): Promise<void> {
    const ref = { name: names[below(names.length)] as string, namespace }
    const value = String(below(100))
    const there = await client.find(widgets, ref)
    const kind = [ConfigMap, Secret][below(2)] as typeof ConfigMap
    const child = await client.find(kind, ref)
    switch (below(9)) {
      case 0:
      case 1:
      case 2:
        if (!there) await client.create(widgets, { metadata: { ...ref }, spec: { value } })
        else if (!there.metadata.deletionTimestamp) await client.patch(widgets, ref, { merge: { spec: { value } } })
        break
      case 3:
        if (there && chance(0.6)) {
          if (there.metadata.finalizers?.length) promised.add(there.metadata.uid)
          count.deleted++
          await client.delete(widgets, ref)
        }
        break
      case 4:
        if (child) await client.delete(kind, ref)
        break
      case 5:
        if (!child) break
        count.damaged++
        await client.patch(kind, ref, { merge: { data: { value: btoa(`damaged ${below(1e6)}`), mode: null } } })
        break
      case 6:
        if (child) await client.patch(kind, ref, { merge: { metadata: { labels: { app: null, theirs: 'x' } } } })
        break
      case 7:
        server.cutWatches()
        break
      case 8:
        server.compact()
    }
  }

  /** What is not as wished; undefined if all is. */
  function difference(): string | undefined {
    const maps = list('configmaps')
    const secrets = list('secrets')
    const services = list('services')
    const objects = server.list('widgets.test.example.com') as unknown as Snapshot<Widget>[]
    for (const object of objects) {
      const { name, uid, deletionTimestamp } = object.metadata
      const { value } = object.spec
      if (deletionTimestamp) return `${name} is still being deleted`
      const own = (children: Child[]) => children.filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === uid)
      const [map] = own(maps)
      if (map?.data?.value !== value || map.data.mode !== 'fast')
        return `${name} wishes ${value}, its ConfigMap says ${JSON.stringify(map?.data)}`
      if (map.metadata.deletionTimestamp) return `the ConfigMap of ${name} is being deleted`
      if (own(secrets).length !== 1) return `${name} has ${own(secrets).length} Secrets`
      const wished = others(object).join()
      const there = own(services)
        .map(({ metadata }) => metadata.name)
        .sort()
        .join()
      if (there !== wished) return `${name} wishes the services ${wished}, there are ${there}`
      const { observedValue, conditions = [] } = (object.status ?? {}) as {
        observedValue?: string
        conditions?: Condition[]
      }
      if (observedValue !== value) return `the status of ${name} says ${observedValue}, not ${value}`
      const ready = conditions.find(({ type }) => type === 'Ready')
      if (ready?.status !== 'True') return `${name} is not Ready: ${ready?.message}`
    }
    // There is no garbage collector here: what is left of a Widget that is gone must at least be free to go.
    const uids = new Set(objects.map(({ metadata }) => metadata.uid))
    const held = maps.filter(
      ({ metadata }) => !uids.has(metadata.ownerReferences?.[0]?.uid ?? '') && metadata.finalizers?.length,
    )
    if (held.length > 0) return `${held.map(({ metadata }) => metadata.name)} are held by a Widget that is gone`
    return undefined
  }

  /** What a garbage collector does. */
  async function collect(): Promise<void> {
    const uids = new Set(server.list('widgets.test.example.com').map(({ metadata }) => metadata.uid))
    for (const kind of [ConfigMap, Secret, Service]) {
      for (const { metadata } of list(kind.plural)) {
        const owner = metadata.ownerReferences?.[0]
        if (owner && !uids.has(owner.uid) && !metadata.deletionTimestamp)
          await client.delete(kind as typeof ConfigMap, { name: metadata.name, namespace })
      }
    }
  }

  for (const name of names)
    if (chance(0.7)) await client.create(widgets, { metadata: { name, namespace }, spec: { value: '3' } })
  storm.join('one')
  const steps = 5 + below(15)
  for (let step = 0; step < steps; step++) {
    await storm.live(chance(0.2) ? below(60_000) : below(3000))
    await happen()
    await collect()
  }

  storm.isCalm = true
  await storm.live(0)
  for (let i = 0; i < 200 && difference() !== undefined; i++) {
    await storm.live(10_000)
    await collect()
  }
  expect(difference(), 'what is not as wished').toBeUndefined()
  await storm.live(120_000)
  const before = [...storm.replicas.values()].flatMap(operator => operator.writes)
  await storm.live(600_000)
  const after = [...storm.replicas.values()].flatMap(operator => operator.writes)
  expect(after.slice(before.length), 'written after all was as wished').toEqual([])
  expect(difference(), 'what is not as wished any more').toBeUndefined()
  for (const uid of promised) expect(finalized.has(uid), `${uid} was deleted without being finalized`).toBe(true)
  storm.done.writes += after.length

  await world.end()
  storm.replicas.clear()
  const next = storm.join('one')
  await storm.live(120_000)
  expect(next.writes, 'written after a restart').toEqual([])
  await world.end()
  expect(clock.pending, 'timers that are left when all has stopped').toBe(0)
  return { ...storm.done, ...count, finalized: finalized.size, released: released.size }
}
