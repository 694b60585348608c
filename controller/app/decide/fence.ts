/**
 * Fencing tokens: an operation's, and those of its runs. Pure.
 *
 * Guarantees: every fence that is minted is above all that were minted before and above all that the pods have seen; two runs never carry the same number.
 */
import type { PodState } from '../../../shared/protocol/schemas.ts'

/** Runs of one operation, at most. */
export const runsPerFence = 65_536

/** The fence of the operation to which a number, as carried by a run, belongs. */
export function operationFence(carried: number): number {
  return Math.floor(carried / runsPerFence)
}

/** @param last the app's last one */
export function mintFence(last: number | undefined, seen: readonly Pick<PodState, 'fence'>[]): number {
  return Math.max(last ?? 0, ...seen.map(({ fence }) => operationFence(fence))) + 1
}

/** What the run at place `n`, from 1, carries. */
export function runFence(fence: number, n: number): number {
  if (n < 1 || n >= runsPerFence) throw new RangeError(`an operation has no run ${n}`)
  return fence * runsPerFence + n
}
