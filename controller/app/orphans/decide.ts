/**
 * What becomes of an Operation that no app looks after: its app is not there, its namespace goes, or it is over. Pure.
 *
 * Guarantees: what nobody will ever let go is let go, without a cancel; a wrong name is told with the nearest right one, and taken back when the app is there; what
 * is finished goes when its time is over, and never before: an Unknown one is not finished.
 */
import { suggestion } from '../../../shared/nearest.ts'
import type { Snapshot } from '../../kube/kind.ts'
import type { Condition } from '../../toolkit/index.ts'
import { operationFinalizer } from '../decide/app.ts'
import { wishLabel } from '../decide/queue.ts'
import type { Operation } from '../kinds.ts'
import { scheduleFinalizer } from '../schedule/child.ts'
import { finishedAt, hasEnded } from './finished.ts'

export interface Around {
  /** Milliseconds since 1970. */
  readonly now: number
  /** The uid of the app that it names; undefined if there is none. */
  readonly app: string | undefined
  /** The names of the apps in its namespace. */
  readonly apps: readonly string[]
  readonly isNamespaceTerminating: boolean
  /** Whether the schedule that made it is there. */
  readonly hasSchedule: boolean
}

export interface OrphanDecision {
  /** Finalizers that are to go. */
  readonly release: readonly string[]
  /** What its condition Stalled is to say; `keep`: that is not ours to say; undefined: nothing any more. */
  readonly stalled: { readonly message: string } | 'keep' | undefined
  readonly isOver: boolean
  /** Look again then. */
  readonly until: number | undefined
}

export const unknownApp = 'UnknownApp'

export function decideOrphan(operation: Snapshot<Operation>, around: Around): OrphanDecision {
  const { metadata, spec } = operation
  const isOrphan = isOrphaned(operation, around)
  const held = metadata.finalizers ?? []
  const release = [
    ...(isOrphan || around.isNamespaceTerminating ? [operationFinalizer] : []),
    ...(around.isNamespaceTerminating || !around.hasSchedule ? [scheduleFinalizer] : []),
  ].filter(one => held.includes(one))
  const left = held.filter(one => !release.includes(one))
  const end = left.length === 0 ? finishedAt({ ...operation, metadata: { ...metadata, finalizers: left } }) : undefined
  const isLeaving = metadata.deletionTimestamp !== undefined
  const over = end === undefined || isLeaving ? undefined : end + spec.ttlSecondsAfterFinished * 1000
  return {
    release,
    stalled: stalledOf(operation, around, isOrphan),
    isOver: over !== undefined && over <= around.now,
    until: over !== undefined && over > around.now ? over : undefined,
  }
}

/** Its app is not there; or it is of an app's wish, and the app of that name is another one. */
function isOrphaned({ metadata }: Snapshot<Operation>, { app }: Around): boolean {
  const wisher = metadata.labels?.[wishLabel]
  return app === undefined || (wisher !== undefined && wisher !== app)
}

function stalledOf(
  operation: Snapshot<Operation>,
  { app, apps }: Around,
  isOrphan: boolean,
): OrphanDecision['stalled'] {
  const { metadata, spec, status } = operation
  const told = status?.conditions?.find(({ type }) => type === 'Stalled')
  if (metadata.deletionTimestamp !== undefined) return 'keep'
  if (!isOrphan || hasEnded(operation)) return isOurs(told) ? undefined : 'keep'
  const where = `in namespace ${metadata.namespace}`
  if (app !== undefined)
    return {
      message: `The StatefulApp ${JSON.stringify(spec.app)} ${where} is another one than that whose wish this was.`,
    }
  return { message: `There is no StatefulApp ${JSON.stringify(spec.app)} ${where}${suggestion(spec.app, apps)}` }
}

/** Whether a condition is one that was written for such a decision. */
export function isOurs(condition: Pick<Condition, 'type' | 'reason'> | undefined): boolean {
  return condition?.type === 'Stalled' && condition.reason === unknownApp
}
