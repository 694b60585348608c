/**
 * OperationSchedules, as an operator on the toolkit: Operations made by the clock, one for each tick.
 *
 * Guarantees, whatever crashes, and whoever else leads: a tick has one child, or none. The order makes it so:
 *   1. the schedule is read live, so that no tick is made from an old view of it;
 *   2. the child is created, under the one name that its tick has, held by our finalizer; what is there already is found and is as good;
 *   3. `lastTick` is written with the uids of the children, by the version that was read;
 *   4. the child is let go. Until then nobody begins it, and if it is deleted it stays.
 * Whoever stops in between is followed by one that finds the child, and goes on. A child that comes late, from a process that was thought dead, is not among the
 * uids: it is deleted, and never was begun. Nothing is written while nothing is due.
 */
import { type Clock, systemClock, timeOf } from '../../../shared/clock.ts'
import type { CachedClient } from '../../kube/cached.ts'
import { AlreadyExists, NotFound } from '../../kube/errors.ts'
import type { Snapshot } from '../../kube/kind.ts'
import type { Manager } from '../../runtime/index.ts'
import { hasFinalizer, removeFinalizer } from '../../toolkit/finalizers.ts'
import { addTo, advancedReconciler, type Context, freeStyle, type Reconciler } from '../../toolkit/index.ts'
import { Operation, OperationSchedule } from '../kinds.ts'
import { type Child, childOf, draftOf, isChildOf, scheduleFinalizer } from './child.ts'
import { type Decision, decide, type ScheduleStatus } from './decide.ts'
import { changedAt, changesOf, planOf } from './since.ts'
import { ticksOf } from './ticks.ts'

type Schedule = Snapshot<OperationSchedule>
type Op = Snapshot<Operation>

/** A timer counts time that passed; a clock that was set, or a machine that slept, is noticed after so many milliseconds. */
const longestSleep = 600_000
/** As many as the CRD lets stand in the status. */
const mostActive = 1024

/** @param isMine whether this process looks after it */
export function scheduleOperator(
  clock: Clock = systemClock,
  isMine: (schedule: Schedule) => boolean = () => true,
): Reconciler<OperationSchedule> {
  return advancedReconciler(OperationSchedule, {
    name: 'schedules',
    owns: [Operation],
    finalizer: scheduleFinalizer,
    statusByVersion: true,
    only: isMine,
    engine: freeStyle(context => keepTime(context, clock), {
      async CRFinalizer({ cr, client }) {
        for (const child of client.owned(Operation, cr)) await letGo(client, child)
      },
    }),
  })
}

/** Adds it to a manager, with what it has to know of its children though this process wrote it: that they ended. */
export function addSchedules(manager: Manager): void {
  addSchedulesOf(manager, () => true)
}

/** The same, for some schedules alone. */
export function addSchedulesOf(manager: Manager, isMine: (schedule: Schedule) => boolean): void {
  addTo(manager, scheduleOperator(manager.clock, isMine)).watches(Operation, ({ metadata }) => {
    const owner = metadata.ownerReferences?.find(one => one.controller && one.kind === OperationSchedule.kind)
    return owner ? [{ name: owner.name, namespace: metadata.namespace }] : []
  })
}

async function keepTime(context: Context<OperationSchedule>, clock: Clock): Promise<void> {
  const { client, status, event, comeBack, waitFor } = context
  const now = clock.now()
  const seen = await seenFor(context, now)
  if (!seen) return
  const { schedule, decision, operations } = seen
  const { name } = schedule.metadata
  for (const told of decision.events) event(told.type, told.reason, told.note)
  for (const { uid, name } of decision.cancel)
    await client.patch(
      Operation,
      { ...schedule.metadata, name },
      { merge: { metadata: { uid }, spec: { cancel: true } } },
    )
  const made = await makeAll(context, schedule, decision)
  const known = byUid([...operations, ...made.children])
  const children = known.map(one => childOf(name, one))
  const lastTick = made.failed === undefined ? decision.lastTick : reachedBefore(made.failed.tick, decision, schedule)
  const next: ScheduleStatus = {
    ...(lastTick !== undefined && { lastTick: timeOf(lastTick) }),
    ...(decision.nextTick !== undefined && { nextTick: timeOf(decision.nextTick) }),
    active: activeOf(children, decision, await stillHeld(client, schedule, children)),
    plan: planOf(schedule.spec),
  }
  const isNew = schedule.status?.plan === undefined
  const moves = lastTick !== undefined && next.lastTick !== schedule.status?.lastTick
  const replans = !isNew && changesOf(schedule.status?.plan, planOf(schedule.spec)).length > 0
  if (moves || replans) await write(client, schedule, next)
  Object.assign(status, next)
  if (next.nextTick === undefined) delete status.nextTick
  for (const child of known) if (isToLetGo(childOf(name, child), decision, lastTick)) await letGo(client, child)
  for (const { uid } of decision.surplus) await deleteHeld(context, known, uid)
  for (const { uid } of decision.delete) await deleteOne(client, known, uid)
  if (made.failed) throw made.failed.error
  if (lastTick !== undefined && lastTick > now + 60_000)
    waitFor(
      'ClockBehind',
      `The last tick, ${next.lastTick}, is yet to come by this clock: nothing is made until it has passed.`,
    )
  if (decision.wakeAt !== undefined)
    comeBack(Math.min(Math.max(decision.wakeAt - now, 0), longestSleep), 'for its next tick')
}

interface Seen {
  readonly schedule: Schedule
  readonly decision: Decision
  readonly operations: readonly Op[]
}

/** What is to be done, from the cache; and from the server itself, where something is to be made or the plan is another. Undefined: it is going, or gone. */
async function seenFor({ cr, client, signal }: Context<OperationSchedule>, now: number): Promise<Seen | undefined> {
  const operations = client.owned(Operation, cr)
  const isOther = changesOf(cr.status?.plan, planOf(cr.spec)).length > 0
  const isUntouched = cr.status?.plan === undefined && cr.metadata.generation === 1
  const first = decisionFor(cr, operations, now, undefined)
  if ((!isOther || isUntouched) && first.make.length === 0) return { schedule: cr, decision: first, operations }
  const live = (await client.live.find(OperationSchedule, cr.metadata, { signal })) as Schedule | undefined
  if (live?.metadata.uid !== cr.metadata.uid || live.metadata.deletionTimestamp !== undefined) return undefined
  return {
    schedule: live,
    decision: decisionFor(live, operations, now, changedAt(live, changes(live)) ?? now),
    operations,
  }
}

const changes = (schedule: Schedule) => changesOf(schedule.status?.plan, planOf(schedule.spec))

function decisionFor(schedule: Schedule, operations: readonly Op[], now: number, since: number | undefined): Decision {
  const { spec, status = {}, metadata } = schedule
  const isUntouched = status.plan === undefined && metadata.generation === 1
  return decide({
    now,
    uid: metadata.uid,
    createdAt: Date.parse(metadata.creationTimestamp),
    spec,
    status,
    ticks: ticksOf(spec.schedule, spec.timeZone),
    // What was never written down since it was created is as it was then.
    since: isUntouched ? undefined : since,
    children: operations.map(one => childOf(metadata.name, one)),
  })
}

interface Made {
  readonly children: readonly Op[]
  readonly failed?: { readonly tick: number; readonly error: unknown }
}

async function makeAll(
  { client, event }: Context<OperationSchedule>,
  schedule: Schedule,
  { make }: Decision,
): Promise<Made> {
  const children: Op[] = []
  for (const tick of make) {
    try {
      const child = await makeOne(client, schedule, tick)
      if (isChildOf(schedule, child)) children.push(child)
      else
        event(
          'Warning',
          'NameTaken',
          `the tick of ${timeOf(tick)} is skipped: ${child.metadata.name} is somebody else's`,
        )
    } catch (error) {
      return { children, failed: { tick, error } }
    }
  }
  return { children }
}

/** The child of a tick, made or found; or whatever has its name. */
async function makeOne(client: CachedClient, schedule: Schedule, tick: number): Promise<Op> {
  const draft = draftOf(schedule, tick)
  try {
    return await client.create(Operation, draft, { owner: schedule })
  } catch (error) {
    if (!(error instanceof AlreadyExists)) throw error
    return (await client.live.get(Operation, draft.metadata as { name: string; namespace: string })) as Op
  }
}

/** The newest of the ticks that were dealt with before one that could not be made. */
function reachedBefore(failed: number, { make, skip }: Decision, { status }: Schedule): number | undefined {
  const before = [...make, ...skip].filter(tick => tick < failed)
  const written = status?.lastTick === undefined ? [] : [Date.parse(status.lastTick)]
  return before.length + written.length > 0 ? Math.max(...before, ...written) : undefined
}

/** Those that stand in the status and are not seen, but are there: what is not seen may be on its way. */
async function stillHeld(client: CachedClient, schedule: Schedule, children: readonly Child[]): Promise<Active[]> {
  const unseen = (schedule.status?.active ?? []).filter(({ uid }) => !children.some(child => child.uid === uid))
  const found = await Promise.all(
    unseen.map(async one => {
      const there = await client.live.find(Operation, { ...schedule.metadata, name: one.name })
      return there && there.metadata.uid === one.uid && hasFinalizer(there as Op, scheduleFinalizer) ? [one] : []
    }),
  )
  return found.flat()
}

type Active = NonNullable<ScheduleStatus['active']>[number]

/** Those that have not ended, and those that are still held: by that they are known as ours. */
function activeOf(children: readonly Child[], { surplus }: Decision, unseen: readonly Active[]): Active[] {
  const counts = children.filter(child => !surplus.some(({ uid }) => uid === child.uid))
  const held = counts.filter(({ isHeld }) => isHeld)
  const others = counts.filter(({ isHeld, outcome }) => !isHeld && outcome === 'none')
  const all = [...held, ...others].map(({ name, uid }) => ({ name, uid }))
  return [...unseen, ...all].slice(0, mostActive).sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function write(client: CachedClient, { metadata, status }: Schedule, next: ScheduleStatus): Promise<void> {
  const { uid, resourceVersion } = metadata
  const gone = status?.nextTick !== undefined && next.nextTick === undefined ? { nextTick: null } : {}
  const merge = { metadata: { uid, resourceVersion }, status: { ...next, ...gone } }
  await client.patch(OperationSchedule, metadata, { merge }, { subresource: 'status' })
}

function isToLetGo(child: Child, { surplus }: Decision, lastTick: number | undefined): boolean {
  if (!child.isHeld || surplus.some(({ uid }) => uid === child.uid)) return false
  return child.tick === undefined || (lastTick !== undefined && child.tick <= lastTick)
}

/** As it is now: the cache has what this process wrote. */
async function letGo(client: CachedClient, child: Op): Promise<void> {
  if (!hasFinalizer(child, scheduleFinalizer)) return
  try {
    await removeFinalizer(client, Operation, child, scheduleFinalizer)
  } catch (error) {
    if (!(error instanceof NotFound)) throw error
  }
}

async function deleteOne(client: CachedClient, known: readonly Op[], uid: string): Promise<void> {
  const one = known.find(({ metadata }) => metadata.uid === uid)
  if (one)
    await client.delete(Operation, one, { preconditions: { uid, resourceVersion: one.metadata.resourceVersion } })
}

/** First it is marked, so that nobody begins it, then let go. */
async function deleteHeld(
  { client, event }: Context<OperationSchedule>,
  known: readonly Op[],
  uid: string,
): Promise<void> {
  const one = known.find(({ metadata }) => metadata.uid === uid)
  if (!one) return
  if (one.metadata.deletionTimestamp === undefined) {
    event('Warning', 'Surplus', `${one.metadata.name} is deleted: its tick had been dealt with before it was made`)
    await deleteOne(client, known, uid)
  }
  const marked = await client.find(Operation, one.metadata)
  if (marked?.metadata.uid === uid) await letGo(client, marked)
}

/** Each once, the later one. */
function byUid(operations: readonly Op[]): Op[] {
  return [...new Map(operations.map(one => [one.metadata.uid, one])).values()]
}
