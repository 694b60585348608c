/**
 * The Operation of a tick: its name, what it is made of, and what is known of it afterwards. Pure.
 *
 * Guarantees: a tick's child has one name, that of its schedule and of its minute. It is made with the schedule's finalizer, and so cannot go before its tick is
 * written down; and nobody may begin it before that, as one made for a tick that is written down already is one too many.
 */
import type { Draft, Snapshot } from '../../kube/kind.ts'
import { Operation, type OperationSchedule } from '../kinds.ts'
import { finishedAt, hasEnded } from '../orphans/finished.ts'

/** On a child until its tick is written down, and on a schedule until it has let its children go. An Operation that carries it is not begun. */
export const scheduleFinalizer = 'shipmate.dev/schedule'

/** Children as `decide` sees them. */
export interface Child {
  readonly name: string
  readonly uid: string
  /** Undefined: its name is not that of a tick. */
  readonly tick: number | undefined
  /** It carries the schedule's finalizer. */
  readonly isHeld: boolean
  readonly isBeingDeleted: boolean
  /** Its cancellation was asked for. */
  readonly isCancelled: boolean
  readonly outcome: 'none' | 'success' | 'other'
  /** Its outcome is stored with its app, or there is nobody to store it with. */
  readonly isFinished: boolean
}

const minute = 60_000

export function childName(schedule: string, tick: number): string {
  return `${schedule}-${Math.floor(tick / minute)}`
}

export function childOf(schedule: string, operation: Snapshot<Operation>): Child {
  const { name, uid, finalizers = [], deletionTimestamp } = operation.metadata
  const tick = Number(name.slice(schedule.length + 1)) * minute
  const ended = hasEnded(operation)
  return {
    name,
    uid,
    tick: childName(schedule, tick) === name ? tick : undefined,
    isHeld: finalizers.includes(scheduleFinalizer),
    isBeingDeleted: deletionTimestamp !== undefined,
    isCancelled: operation.spec.cancel,
    outcome: !ended ? 'none' : operation.status?.phase === 'Succeeded' ? 'success' : 'other',
    isFinished: finishedAt(operation) !== undefined,
  }
}

/** What is created for a tick. */
export function draftOf(schedule: Snapshot<OperationSchedule>, tick: number): Draft<Operation> {
  const { name, namespace } = schedule.metadata
  return Operation.draft({
    metadata: { name: childName(name, tick), namespace, finalizers: [scheduleFinalizer] },
    spec: structuredClone(schedule.spec.template) as Parameters<typeof Operation.draft>[0]['spec'],
  })
}

/** Whether it is the child of this very schedule. */
export function isChildOf({ metadata }: Snapshot<OperationSchedule>, operation: Snapshot): boolean {
  return operation.metadata.ownerReferences?.some(one => one.controller && one.uid === metadata.uid) ?? false
}
