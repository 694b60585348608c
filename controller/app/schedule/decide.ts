/**
 * What a schedule has to do now. Pure: the time, what is wished, what is written down and what there is, to what is made, skipped, let go and deleted.
 *
 * Guarantees: no tick at or before `lastTick` is made, whatever the clock says; nor one from before the schedule was as it is, or from a time at which it was suspended.
 * Of the ticks that are due, the newest are made, so many as `catchUp` says; the others are told, and never made. A tick begins before the next one is due.
 */
import { createHash } from 'node:crypto'
import { timeOf } from '../../../shared/clock.ts'
import type { Snapshot } from '../../kube/kind.ts'
import type { OperationSchedule } from '../kinds.ts'
import type { Child } from './child.ts'
import { changesOf, planOf } from './since.ts'
import type { Ticks } from './ticks.ts'
import { lasts } from './words.ts'

type Spec = Snapshot<OperationSchedule>['spec']
export type ScheduleStatus = NonNullable<Snapshot<OperationSchedule>['status']>

export interface Situation {
  /** Milliseconds since 1970, as all times here. */
  readonly now: number
  readonly uid: string
  readonly createdAt: number
  readonly spec: Spec
  readonly status: ScheduleStatus
  readonly ticks: Ticks
  /** Since when it is as it is, if what is written down is for another plan. */
  readonly since: number | undefined
  readonly children: readonly Child[]
}

export interface Told {
  readonly type: 'Normal' | 'Warning'
  readonly reason: 'Missed' | 'Overlap'
  readonly note: string
}

export interface Decision {
  /** Ticks whose children are made now, oldest first. */
  readonly make: readonly number[]
  /** Ticks that are due and passed over, oldest first. */
  readonly skip: readonly number[]
  /** The newest tick that is made, skipped or missed; undefined: none was. */
  readonly lastTick: number | undefined
  /** The next that will be made; undefined: none. */
  readonly nextTick: number | undefined
  /** When that is begun, by its jitter. */
  readonly wakeAt: number | undefined
  /** Children to cancel before anything is made. */
  readonly cancel: readonly Child[]
  /** Made for a tick that had been dealt with: they never begin. */
  readonly surplus: readonly Child[]
  /** Finished ones that nobody wants to keep. */
  readonly delete: readonly Child[]
  readonly events: readonly Told[]
}

/** A tick that begins no later than this after its time is not missed: a minute is what cron can tell apart. */
const onTime = 60_000
/** So many missed ones are counted; of more it is only said that there are more. */
const counted = 100

export function decide(situation: Situation): Decision {
  const { now, spec, status, ticks, children } = situation
  const written = status.lastTick === undefined ? undefined : Date.parse(status.lastTick)
  const floor = floorOf(situation, written)
  const after = floor ?? situation.createdAt
  // What is there was made, and is written down as soon as it is seen, also if its tick would no longer be one.
  const found = latest(
    ...children.flatMap(({ tick = Number.POSITIVE_INFINITY, isHeld }) => (isHeld && tick <= now ? [tick] : [])),
  )
  const rest = {
    surplus: children.filter(child => isSurplus(child, status, written)),
    delete: historyBeyond(spec, children),
  }
  if (spec.suspend) {
    const none = { make: [], skip: [], nextTick: undefined, wakeAt: undefined, cancel: [], events: [] }
    return { ...none, ...rest, lastTick: latest(floor, found) }
  }
  const limit = spec.catchUp + counted + 2
  const passed = ticks.newest(after, now, limit).reverse()
  const due = passed.filter(tick => beginOf(situation, tick) <= now)
  const { make, cancel, overlapped } = overlapOf(situation, candidatesOf(situation, due), rest.surplus)
  const skip = due.filter(tick => !make.includes(tick))
  const missed = skip.filter(tick => !overlapped.includes(tick))
  const lastTick = latest(due.at(-1), floor, found)
  const nextTick = passed.length > due.length ? passed.at(-1) : ticks.next(Math.max(now, after))
  return {
    ...{ make, skip, lastTick, nextTick, cancel, ...rest },
    wakeAt: nextTick === undefined ? undefined : beginOf(situation, nextTick),
    events: [
      ...(missed.length > 0 ? [missedEvent(spec, missed, passed.length === limit)] : []),
      ...overlapped.map(tick => overlapEvent(tick, children)),
    ],
  }
}

/** No tick at or before it is made. Undefined: none since it exists was dealt with. */
function floorOf({ since, ticks, status, spec }: Situation, written: number | undefined): number | undefined {
  if (since === undefined || changesOf(status.plan, planOf(spec)).length === 0) return written
  const [passed] = ticks.newest(Number.NEGATIVE_INFINITY, since, 1)
  return passed !== undefined && passed > (written ?? Number.NEGATIVE_INFINITY) ? passed : written
}

function latest(...times: (number | undefined)[]): number | undefined {
  const all = times.filter(time => time !== undefined)
  return all.length > 0 ? Math.max(...all) : undefined
}

/** When a tick is begun: later by its jitter, the same in every process, and before the next tick. */
export function beginOf({ uid, spec, ticks }: Pick<Situation, 'uid' | 'spec' | 'ticks'>, tick: number): number {
  const jitter = lasts(spec.jitter)
  if (jitter === 0) return tick
  const widest = Math.min(jitter, (ticks.next(tick) ?? Number.POSITIVE_INFINITY) - tick)
  const drawn = createHash('sha256').update(`${uid} ${tick}`).digest().readUIntBE(0, 6)
  return tick + (drawn % widest)
}

/** The newest of those that are not too old. */
function candidatesOf(situation: Situation, due: readonly number[]): readonly number[] {
  const { now, spec } = situation
  const late = (tick: number) => now - beginOf(situation, tick)
  const limit = spec.startingDeadline === undefined ? Number.POSITIVE_INFINITY : lasts(spec.startingDeadline)
  const inTime = due.filter(tick => late(tick) <= limit)
  if (spec.catchUp > 0) return inTime.slice(-spec.catchUp)
  return inTime.slice(-1).filter(tick => late(tick) <= onTime)
}

interface Overlap {
  readonly make: readonly number[]
  readonly cancel: readonly Child[]
  readonly overlapped: readonly number[]
}

/** What is done beside children that have not ended. One that was made for a candidate is no obstacle to it: it is the candidate's. */
function overlapOf({ spec, children }: Situation, candidates: readonly number[], surplus: readonly Child[]): Overlap {
  const newest = candidates.at(-1)
  const nothing = { make: candidates, cancel: [], overlapped: [] }
  if (newest === undefined || spec.overlap === 'Allow') return nothing
  const busy = children.filter(child => child.outcome === 'none' && !surplus.includes(child))
  if (spec.overlap === 'Replace') {
    const cancel = busy.filter(child => child.tick !== newest && !child.isCancelled && !child.isBeingDeleted)
    return { make: [newest], cancel, overlapped: [] }
  }
  const made = candidates.filter(tick => busy.some(child => child.tick === tick))
  const make = busy.length === 0 ? [newest] : made
  return { make, cancel: [], overlapped: busy.length === 0 ? [] : candidates.filter(tick => !make.includes(tick)) }
}

/** It was made for a tick that had been written down before, with another child or none. */
function isSurplus(
  { isHeld, tick, uid }: Child,
  { active = [] }: ScheduleStatus,
  written: number | undefined,
): boolean {
  if (!isHeld || tick === undefined || written === undefined || tick > written) return false
  return !active.some(one => one.uid === uid)
}

function historyBeyond({ successfulHistory, failedHistory }: Spec, children: readonly Child[]): Child[] {
  const beyond = (outcome: Child['outcome'], limit: number) =>
    children
      .filter(child => child.outcome === outcome && child.isFinished && !child.isHeld && !child.isBeingDeleted)
      .sort((a, b) => (b.tick ?? 0) - (a.tick ?? 0))
      .slice(limit)
  return [...beyond('success', successfulHistory), ...beyond('other', failedHistory)]
}

function missedEvent({ catchUp, startingDeadline }: Spec, missed: readonly number[], isMore: boolean): Told {
  const [first = 0] = missed
  const last = missed.at(-1) ?? first
  const many = isMore ? `more than ${missed.length} ticks` : `${missed.length} tick${missed.length > 1 ? 's' : ''}`
  const when =
    first === last ? `of ${timeOf(first)}` : `${isMore ? 'up to' : `from ${timeOf(first)} to`} ${timeOf(last)}`
  const limits = `catchUp is ${catchUp}${startingDeadline === undefined ? '' : `, startingDeadline ${startingDeadline}`}`
  return { type: 'Warning', reason: 'Missed', note: `${many} ${when}: missed, and not made up for (${limits})` }
}

function overlapEvent(tick: number, children: readonly Child[]): Told {
  const busy = children.find(child => child.outcome === 'none' && child.tick !== tick)
  return {
    type: 'Warning',
    reason: 'Overlap',
    note: `the tick of ${timeOf(tick)} is skipped: ${busy?.name} has not ended`,
  }
}
