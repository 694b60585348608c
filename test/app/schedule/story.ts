/**
 * A random history of one schedule, in a world of its own: processes die at any request, requests and answers get lost, watches are late, the clock is set, people
 * delete children, change the schedule and suspend it; an app begins what it may, and ends it somehow. What has to hold is judged at every write.
 */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { Operation, OperationSchedule } from '../../../controller/app/kinds.ts'
import { childOf, scheduleFinalizer } from '../../../controller/app/schedule/child.ts'
import { ticksOf } from '../../../controller/app/schedule/ticks.ts'
import { Unavailable } from '../../../controller/kube/errors.ts'
import type { Live, Snapshot } from '../../../controller/kube/kind.ts'
import type { Manager } from '../../../controller/runtime/manager.ts'
import { Storm } from '../../fixtures/storm.ts'
import { type Meddle, World } from '../../fixtures/world.ts'

export interface StoryOptions {
  readonly declare: (manager: Manager) => void
  /** Every tick is to be made: nobody changes the schedule, and the limit is never reached. */
  readonly isComplete?: boolean | undefined
  /** The tick of a child, where its name does not tell. */
  readonly tickOf?: ((operation: Snapshot<Operation>) => number | undefined) | undefined
  /** Only what comes of it is judged, not that a tick is made after it is written down. */
  readonly mayWriteFirst?: boolean | undefined
  /** Two processes at once, neither of which knows of the other. */
  readonly isContested?: boolean | undefined
}

export interface Count {
  [what: string]: number
}

type Op = Live<Operation>
type Schedule = Live<OperationSchedule>

const ref = { name: 's', namespace: 'default' }
const minute = 60_000
const schedules = ['*/5 * * * *', '*/3 * * * *', '0 * * * *', '30 2,14 * * *']

/** @throws Error with what did not hold */
export async function story(
  seed: number,
  { declare, isComplete = false, isContested = false, mayWriteFirst = false, tickOf = tickByName }: StoryOptions,
): Promise<Count> {
  const rng = xoroshiro128plus(seed)
  const random = () => uniformFloat64(rng)
  for (let i = 0; i < 20; i++) random()
  const below = (limit: number) => Math.floor(random() * limit)
  const chance = (probability: number) => random() < probability
  const pick = <T>(all: readonly T[]): T => all[below(all.length)] as T

  const world = new World()
  const { clock, server, client } = world
  server.serve(Operation)
  server.serve(OperationSchedule)
  const storm = new Storm({
    ...{ world, random },
    declare(manager, operator) {
      if (isContested) operator.meddle = late(operator.meddle)
      declare(manager)
    },
    weather: { loss: random() * 0.1, refusal: random() * 0.1, death: random() * 0.02, delay: below(100) },
    options: () => ({ cache: { streaming: chance(0.5), pageSize: 1 + below(3) } }),
  })
  /** Some children are created long after whoever asked for it has given up. */
  function late(meddle: Meddle): Meddle {
    return (request, next) => {
      const { verb, resource } = request.target
      if (storm.isCalm || verb !== 'create' || resource !== Operation.plural || !chance(0.3))
        return meddle(request, next)
      clock.after(below(15 * minute), () => void next({ ...request, signal: undefined }).catch(() => undefined))
      count.late = (count.late ?? 0) + 1
      return Promise.reject(new Unavailable('Unavailable', request.target, 'no answer came', { mayHaveActed: true }))
    }
  }
  const lateness = chance(0.5) ? 5000 : 20
  server.lag = () => (storm.isCalm ? 1 : below(lateness))

  const all = <T extends object>(kind: { plural: string; group: string }) =>
    server.list(`${kind.plural}.${kind.group}`) as unknown as T[]
  const schedule = () => all<Schedule>(OperationSchedule)[0]
  const children = () => all<Op>(Operation)
  const written = () => Date.parse(schedule()?.status?.lastTick ?? '1970-01-01T00:00:00Z')
  const made = new Map<number, string[]>()
  const begun = new Map<number, string[]>()
  const count: Count = { made: 0, begun: 0, deleted: 0, jumps: 0, changed: 0, crashes: 0, surplus: 0, late: 0 }

  server.witness = ({ target, before, after }) => {
    if (target.resource === Operation.plural && !before && after) {
      const tick = tickOf(after as unknown as Snapshot<Operation>)
      if (tick === undefined) return void storm.fail(`${after.metadata.name} is the child of no tick`)
      const others = made.get(tick) ?? []
      made.set(tick, [...others, after.metadata.uid])
      count.made = (count.made ?? 0) + 1
      if (isContested) return
      if (others.length > 0) storm.fail(`the tick of ${told(tick)} was made twice`)
      if (tick <= written() && !mayWriteFirst)
        storm.fail(`the tick of ${told(tick)} was made after it was written down`)
    }
    if (target.resource !== OperationSchedule.plural || !before || !after) return
    const [was, is] = [before, after].map(one => Date.parse((one as Schedule).status?.lastTick ?? '1970-01-01T00:00Z'))
    if ((is ?? 0) < (was ?? 0)) storm.fail(`lastTick went back from ${told(was ?? 0)} to ${told(is ?? 0)}`)
  }

  /** What an app does: begins what is not held, and ends it. */
  async function work(): Promise<void> {
    for (const op of children()) {
      const tick = tickOf(op as Snapshot<Operation>) ?? 0
      if (op.metadata.finalizers?.includes(scheduleFinalizer) || op.metadata.deletionTimestamp) continue
      const { uid } = op.metadata
      if (!(begun.get(tick) ?? []).includes(uid)) {
        if (begun.has(tick)) storm.fail(`the tick of ${told(tick)} was begun twice`)
        begun.set(tick, [...(begun.get(tick) ?? []), uid])
        count.begun = (count.begun ?? 0) + 1
      }
      const isOver = op.status?.phase === 'Succeeded' || op.status?.phase === 'Failed'
      if (isOver || chance(0.4)) continue
      const status = { phase: pick(['Succeeded', 'Failed', 'Unknown']), finishedAt: `${told(clock.now())}` }
      await client.patch(Operation, op.metadata, { merge: { status } }, { subresource: 'status' })
    }
  }

  const change = async (merge: object) => {
    count.changed = (count.changed ?? 0) + 1
    await client.patch(OperationSchedule, ref, { merge: { spec: merge } })
  }
  async function happen(): Promise<void> {
    const op = children().length > 0 ? pick(children()) : undefined
    switch (below(isComplete ? 4 : 7)) {
      case 0:
      case 1:
        if (!op) return
        count.deleted = (count.deleted ?? 0) + 1
        return void (await client.delete(Operation, op.metadata))
      case 2:
        count.jumps = (count.jumps ?? 0) + 1
        return clock.jumpWall((chance(0.5) ? 1 : -1) * below(60 * minute))
      case 3:
        return void (await change({ template: { action: pick(['backup', 'vacuum']) } }))
      case 4:
        return void (await change({ schedule: pick(schedules) }))
      case 5:
        return void (await change({ suspend: chance(0.5) }))
      case 6:
        return void (await change({ overlap: pick(['Allow', 'Forbid', 'Replace']), catchUp: below(4) }))
    }
  }

  const spec = {
    ...{ schedule: pick(schedules.slice(0, 2)), timeZone: 'Europe/Berlin', jitter: pick(['0s', '0s', '90s']) },
    ...(isComplete
      ? { catchUp: 100, overlap: 'Allow' }
      : { catchUp: 1 + below(3), overlap: pick(['Allow', 'Forbid', 'Replace']) }),
    ...{ suspend: false, successfulHistory: below(3), failedHistory: below(3) },
    template: { app: 'db', action: 'backup', priority: 0, ttlSecondsAfterFinished: 60, suspend: false },
  }
  const created = await client.create(OperationSchedule, { metadata: ref, spec } as Parameters<
    typeof client.create<OperationSchedule>
  >[1])
  storm.join('one')
  if (isContested) storm.join('two')
  const steps = 10 + below(20)
  for (let step = 0; step < steps; step++) {
    await storm.live(chance(0.3) ? below(20 * minute) : below(2 * minute))
    await happen()
    await work()
    if (storm.failure) throw storm.failure
  }

  storm.isCalm = true
  await storm.live(0)
  // A clock that went back has to catch up first.
  await storm.live(
    Math.max(written() - clock.now(), Date.parse(created.metadata.creationTimestamp) - clock.now(), 0) + 40 * minute,
  )
  await work()
  await storm.live(20 * minute)
  if (storm.failure) throw storm.failure
  if (isComplete) {
    const ticks = ticksOf(spec.schedule, spec.timeZone)
    for (const tick of ticks.newest(Date.parse(created.metadata.creationTimestamp), written(), 100_000))
      if (!made.has(tick)) throw new Error(`the tick of ${told(tick)} was never made`)
    if (clock.now() - written() > 10 * minute)
      throw new Error(`it no longer ticks: ${told(written())}, and it is ${told(clock.now())}`)
  }
  await change({ suspend: true })
  await storm.live(2 * minute)
  const held = children().filter(one => one.metadata.finalizers?.includes(scheduleFinalizer))
  if (held.length > 0) throw new Error(`${held[0]?.metadata.name} is held though its tick is written down`)
  const writes = () => [...storm.replicas.values()].flatMap(operator => operator.writes)
  const before = writes().length
  await storm.live(60 * minute)
  const idle = writes().slice(before)
  if (idle.length > 0) throw new Error(`written while nothing was due: ${idle.join(', ')}`)
  for (const uids of made.values()) if (uids.length > 1) count.surplus = (count.surplus ?? 0) + 1

  await client.delete(OperationSchedule, ref)
  await storm.live(2 * minute)
  if (schedule()) throw new Error('the schedule does not go')
  await world.end()
  count.crashes = storm.done.crashes
  return count
}

function tickByName(operation: Snapshot<Operation>): number | undefined {
  return childOf(ref.name, operation).tick
}

function told(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`
}
