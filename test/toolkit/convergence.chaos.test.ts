/**
 * Random schedules of an operator on the toolkit: it begins with children in any state, its process dies at any request, requests and answers get lost, the
 * server refuses, watches are late, cut and too old; hooks fail; people change the wish, damage, delete and hold children, put objects of their own in the place of
 * children, and delete what they wished. What the operator looks after is drawn too: convergence-scenario.ts.
 *
 * In the end everything is as wished, what was deleted was finalized, nothing is left over, nothing is written any more, and not after a restart either; nothing
 * of somebody else's is ever written. What has to hold is in convergence-judge.ts.
 */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { expect, it } from 'vitest'
import type { Ref } from '../../controller/kube/kind.ts'
import { addTo } from '../../controller/toolkit/index.ts'
import { Storm } from '../fixtures/storm.ts'
import { World } from '../fixtures/world.ts'
import { createJudge } from './convergence-judge.ts'
import { createPeople } from './convergence-people.ts'
import { drawScenario, type Seen } from './convergence-scenario.ts'

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
      for (const [what, count] of Object.entries(total)) expect(count, what).toBeGreaterThan(schedules / 10)
  },
  60_000 + schedules * 5_000,
)

async function schedule(seed: number): Promise<Record<string, number>> {
  const rng = xoroshiro128plus(seed)
  const random = () => uniformFloat64(rng)
  // What neighbouring seeds draw first is much the same.
  for (let i = 0; i < 20; i++) random()
  const below = (limit: number) => Math.floor(random() * limit)
  const chance = (probability: number) => random() < probability

  const world = new World()
  const { clock, server, client } = world
  const namespace = 'default'
  const seen: Seen = {
    finalized: new Set(),
    released: new Set(),
    fails: () => !storm.isCalm && chance(0.2),
  }
  const scenario = drawScenario({ below, chance }, seen, namespace)
  const { kind, reconciler } = scenario
  server.serve(kind)
  const names = ['a', 'b', 'c'].slice(0, 1 + below(3))
  const refs = names.map((name): Ref => (kind.namespaced ? { name, namespace } : { name }))
  const lateness = chance(0.5) ? 5000 : 20
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
  const judge = createJudge(server, scenario, seen)
  const people = createPeople({ server, client, scenario, judge, below, chance, refs })
  const count = { recreated: 0, pruned: 0 }
  server.witness = deed => {
    const fault = judge.faultOf(deed)
    if (fault) storm.fail(`${fault} (${scenario.text})`)
    if (deed.target.verb === 'delete') count[deed.target.resource.match(/secrets|priority/) ? 'recreated' : 'pruned']++
  }
  /** Moves on until a question has no answer any more. */
  async function until(what: string, question: () => string | undefined): Promise<void> {
    for (let i = 0; i < 200 && question() !== undefined; i++) {
      await storm.live(10_000)
      await people.collect()
    }
    expect(question(), `${what} (${scenario.text})`).toBeUndefined()
  }
  const written = () => [...storm.replicas.values()].flatMap(operator => operator.writes)

  for (const ref of refs) {
    if (chance(0.2)) await people.squat(ref)
    if (chance(0.7)) await people.wish(ref, '3')
  }
  storm.join('one')
  const steps = 5 + below(15)
  for (let step = 0; step < steps; step++) {
    await storm.live(chance(0.2) ? below(60_000) : below(3000))
    await people.act()
    await people.collect()
  }
  if (chance(0.5)) await people.clear()

  storm.isCalm = true
  await storm.live(0)
  const needless = () => [...storm.replicas.values()].flatMap(operator => operator.needless)
  const inTheStorm = needless().length
  await until('what is not as wished', judge.difference)
  await storm.live(120_000)
  const before = written()
  await storm.live(600_000)
  const after = written()
  expect(after.slice(before.length), `written after all was as wished (${scenario.text})`).toEqual([])
  expect(needless().slice(inTheStorm), `written twice (${scenario.text})`).toEqual([])
  expect(judge.difference(), 'what is not as wished any more').toBeUndefined()
  for (const uid of people.promised)
    expect(seen.finalized.has(uid), `${uid} was deleted without being finalized`).toBe(true)
  storm.done.writes += after.length

  await world.end()
  storm.replicas.clear()
  const next = storm.join('one')
  await storm.live(120_000)
  expect(next.writes, `written after a restart (${scenario.text})`).toEqual([])

  for (const { metadata } of judge.crs()) await client.delete(kind, metadata)
  await until('what is left when all has gone', judge.leftover)
  await storm.live(120_000)
  const last = next.writes.length
  await storm.live(600_000)
  expect(next.writes.slice(last), `written after all had gone (${scenario.text})`).toEqual([])
  expect(next.needless, `written twice while all went (${scenario.text})`).toEqual([])
  await world.end()
  expect(clock.pending, 'timers that are left when all has stopped').toBe(0)
  return {
    ...{ ...storm.done, ...people.count, ...count, finalized: seen.finalized.size, released: seen.released.size },
    basic: scenario.isBasic ? 1 : 0,
    clusterScoped: kind.namespaced ? 0 : 1,
  }
}
