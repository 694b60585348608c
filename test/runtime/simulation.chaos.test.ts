/**
 * Random schedules of a Widget operator, or two that contest a lease: its process dies at any request, requests and
 * answers get lost, the server refuses and is slow, watches are late, cut and too old; meanwhile people change, delete
 * and damage what it looks after. All in one process, in virtual time.
 *
 * In the end everything is as wished, nothing was made twice, and nothing is written any more, not after a restart
 * either.
 */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { expect, it } from 'vitest'
import { keyOf } from '../../controller/kube/kind.ts'
import { ConfigMap, Secret } from '../../controller/kube/kinds.ts'
import type { Manager } from '../../controller/runtime/manager.ts'
import { Storm } from '../fixtures/storm.ts'
import { type Operator, World } from '../fixtures/world.ts'

const first = Number(process.env.SHIPMATE_SEED ?? 1)
const schedules = Number(process.env.SHIPMATE_SCHEDULES ?? 100)

it(
  `a Widget operator always gets there, does nothing twice and then nothing more: seeds ${first} to ${first + schedules - 1}`,
  async () => {
    const total = { crashes: 0, lost: 0, refused: 0, cuts: 0, writes: 0 }
    for (let seed = first; seed < first + schedules; seed++) {
      try {
        const done = await schedule(seed)
        for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += done[key]
      } catch (error) {
        const replay = `SHIPMATE_SEED=${seed} SHIPMATE_SCHEDULES=1 npx vitest run test/runtime/simulation.chaos.test.ts`
        throw new Error(`seed ${seed}: ${(error as Error).message}\nreplay: ${replay}`, { cause: error })
      }
    }
    console.log(`seeds ${first} to ${first + schedules - 1}: ${JSON.stringify(total)}`)
    // Schedules in which nothing happens would show nothing.
    if (schedules >= 20)
      for (const [what, count] of Object.entries(total)) expect(count, what).toBeGreaterThan(schedules / 4)
  },
  60_000 + schedules * 5_000,
)

async function schedule(seed: number) {
  const rng = xoroshiro128plus(seed)
  const random = () => uniformFloat64(rng)
  const below = (limit: number) => Math.floor(random() * limit)
  const chance = (probability: number) => random() < probability

  const world = new World()
  const { clock, server, client, widgets } = world
  let cuts = 0
  const names = ['a', 'b', 'c', 'd'].slice(0, 1 + below(4))
  const namespace = 'default'
  // What has a name that the server makes up is made twice by whoever does not know how the first time ended: then
  // nothing may get lost.
  const isLossy = chance(0.7)
  const isContested = chance(0.3)
  const weather = {
    loss: isLossy ? random() * 0.2 : 0,
    refusal: random() * 0.2,
    death: chance(0.7) ? random() * 0.03 : 0,
    delay: below(100),
  }
  const lateness = chance(0.5) ? 5000 : 20
  const storm = new Storm({
    ...{ world, random, weather, declare: work },
    options: identity => ({
      ...(isContested && { leaderElection: { name: 'widgets', identity } }),
      cache: { streaming: chance(0.5), pageSize: 1 + below(3) },
    }),
  })
  const { done, replicas } = storm
  server.lag = () => (storm.isCalm ? 1 : below(lateness))

  function work(manager: Manager, { reconciled }: Operator): void {
    const active = new Set<string>()
    manager
      .controller(widgets, { concurrency: 1 + below(4) })
      .owns(ConfigMap)
      .owns(Secret)
      .reconcile(async ({ object, client: own }) => {
        const { name } = object.metadata
        const { value } = object.spec
        if (active.has(name)) throw storm.fail(`two reconciliations of ${name} at once`)
        active.add(name)
        try {
          await own.apply(ConfigMap, { metadata: { name }, data: { value } }, { owner: object })
          if (!isLossy && own.owned(Secret, object).length === 0) {
            await own.create(Secret, { metadata: { generateName: `${name}-` } }, { owner: object })
          }
          await own.status(widgets, object, { observedValue: value })
          reconciled.push(keyOf(object.metadata))
        } finally {
          active.delete(name)
        }
      })
  }

  const identities = isContested ? ['one', 'two'] : ['one']

  /** Somebody does something. */
  async function happen(): Promise<void> {
    const name = names[below(names.length)] as string
    const ref = { name, namespace }
    const value = `value ${below(1e6)}`
    const there = await client.find(widgets, ref)
    const map = await client.find(ConfigMap, ref)
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
        if (there) await client.patch(widgets, ref, { merge: { spec: { value } } })
        else await client.create(widgets, { metadata: { ...ref }, spec: { value } })
        break
      case 3:
        if (there && chance(0.5)) await client.delete(widgets, ref)
        break
      case 4:
        if (map) await client.delete(ConfigMap, ref)
        break
      case 5:
        if (map) await client.patch(ConfigMap, ref, { merge: { data: { value: `damaged ${below(1e6)}` } } })
        break
      case 6:
        cuts++
        server.cutWatches()
        break
      case 7:
        server.compact()
    }
  }

  /** What is not as wished; undefined if all is. */
  function difference(): string | undefined {
    const maps = server.list('configmaps') as unknown as {
      metadata: { name: string; ownerReferences?: { uid: string }[] }
      data?: { value?: string }
    }[]
    const secrets = server.list('secrets')
    for (const object of server.list('widgets.test.example.com')) {
      const { metadata, spec, status } = object as unknown as {
        metadata: { name: string; uid: string }
        spec: { value: string }
        status?: { observedValue?: string }
      }
      const { name, uid } = metadata
      const map = maps.find(one => one.metadata.name === name)
      if (status?.observedValue !== spec.value)
        return `${name} wishes ${spec.value}, its status says ${status?.observedValue}`
      if (map?.data?.value !== spec.value) return `${name} wishes ${spec.value}, its ConfigMap says ${map?.data?.value}`
      if (map.metadata.ownerReferences?.[0]?.uid !== uid) return `the ConfigMap of ${name} is owned by another one`
      const children = secrets.filter(secret => secret.metadata.ownerReferences?.[0]?.uid === uid).length
      if (children !== (isLossy ? 0 : 1)) return `${name} has ${children} Secrets`
    }
    return undefined
  }

  for (const name of names)
    if (chance(0.7)) await client.create(widgets, { metadata: { name, namespace }, spec: { value: 'first' } })
  for (const identity of identities) storm.join(identity)
  const steps = 5 + below(15)
  for (let step = 0; step < steps; step++) {
    await storm.live(chance(0.2) ? below(60_000) : below(3000))
    await happen()
    const twice = isLossy ? undefined : duplicated()
    if (twice) throw new Error(twice)
  }

  /** A Widget with two Secrets has been looked after by somebody who did not know what was there. */
  function duplicated(): string | undefined {
    const owners = server.list('secrets').map(secret => secret.metadata.ownerReferences?.[0]?.uid)
    return new Set(owners).size < owners.length ? 'a Widget has two Secrets' : undefined
  }

  // Who sees what it wrote, and hears how that ended, never writes what is there already.
  const needless = world.operators.flatMap(operator => operator.needless)
  if (!isLossy && !isContested) expect(needless, 'writes that changed nothing').toEqual([])

  storm.isCalm = true
  await storm.live(0)
  await world
    .until('everything is as wished', () => storm.failure !== undefined || difference() === undefined, 3_600_000)
    .catch(error => {
      throw new Error(`${difference()}; ${error.message}`)
    })
  if (storm.failure) throw storm.failure
  await storm.live(120_000)
  const before = [...replicas.values()].flatMap(operator => operator.writes)
  await storm.live(600_000)
  const after = [...replicas.values()].flatMap(operator => operator.writes)
  expect(after.slice(before.length), 'written after all was as wished').toEqual([])
  expect(difference(), 'what is not as wished any more').toBeUndefined()
  done.writes += after.length

  await world.end()
  replicas.clear()
  const next = storm.join('one')
  const there = server.list('widgets.test.example.com').length
  await world.until('all are looked at after a restart', () => new Set(next.reconciled).size === there)
  await storm.live(120_000)
  expect(next.writes, 'written after a restart').toEqual([])
  await world.end()
  expect(clock.pending, 'timers that are left when all has stopped').toBe(0)
  return { ...done, cuts }
}
