/**
 * The conditions of an Operation: a Job's `Complete` and `Failed`, and those that kstatus reads. Pure.
 *
 * Guarantee: an operation that has ended is Ready or Stalled for good; one whose outcome nobody knows is Stalled until a person has said.
 */

import { timeOf } from '../../shared/clock.ts'
import { type Condition, type Wanted, withConditions } from '../toolkit/conditions.ts'
import type { Op, OpStatus } from './view.ts'

export function operationConditions(op: Op, status: OpStatus, now: number): Condition[] {
  const before = (op.status?.conditions ?? []) as readonly Condition[]
  return withConditions(before, wantedOf(op, status), { now: timeOf(now), generation: op.metadata.generation })
}

function wantedOf({ spec }: Op, { phase = 'Queued', reason, message, finishedAt }: OpStatus): Wanted[] {
  const because = { reason: reason ?? phase, message: message ?? `${spec.action}: ${phase}.` }
  const is = (type: string, status: Wanted['status']): Wanted => ({ type, status, ...because })
  if (finishedAt === undefined)
    return phase === 'Unknown'
      ? [is('Ready', 'False'), is('Stalled', 'True')]
      : [is('Ready', 'False'), is('Reconciling', 'True')]
  if (phase === 'Succeeded') return [is('Ready', 'True'), is('Complete', 'True')]
  return [is('Ready', 'False'), is('Stalled', 'True'), is('Failed', 'True')]
}
