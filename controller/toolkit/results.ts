/**
 * What one reconciliation did, as a stack of operations, and what follows from all of them together. Pure.
 *
 * Guarantees: the first error that is for a person wins, whatever succeeds after it, and a passing one only where there is no other; giving up overrides errors; of all the times to come back that were asked for, the
 * shortest counts, and none is longer than six hours.
 */
import { messageOf, ShipmateError } from '../../shared/errors.ts'

/** The codes of operations, and what each says. Those that failed carry an error. */
export const operations = {
  Registered: 'is one of those to look after',
  Mutated: 'is known as it should be',
  MutationFailed: 'could not be worked out as it should be',
  Created: 'was created',
  CreateDelayed: 'waits, as enough others were created at once',
  CreateFailed: 'could not be created',
  Waiting: 'waits for what it depends on',
  Absent: 'is left out, as the cluster does not serve its kind',
  Leaving: 'is being deleted',
  Unchanged: 'is as it should be',
  Updated: 'was changed to what it should be',
  UpdateFailed: 'could not be changed',
  Recreated: 'was deleted, to be created anew',
  Deleted: 'was deleted',
  DeleteFailed: 'could not be deleted',
  Pruned: 'was deleted, as nothing asks for it any more',
  Released: 'was finalized, and may go',
  ReleaseFailed: 'could not be finalized',
  StepFailed: 'failed',
  GivenUp: 'was given up',
  ReadinessFailed: 'does not tell whether it is ready',
  ComeBack: 'is looked at again',
} as const satisfies Record<string, string>

export type OperationCode = keyof typeof operations

export interface Operation {
  readonly code: OperationCode
  /** What it was done to, as `Deployment sample`, or the step. */
  readonly on: string
  readonly error?: unknown
  /** Come back after so many milliseconds at the latest. */
  readonly requeueAfter?: number | undefined
  /** Why, for a person. */
  readonly note?: string | undefined
}

/** What follows from all operations. */
export interface Consolidated {
  readonly is: 'success' | 'error' | 'givenUp'
  /** The operation that decided; absent on success. */
  readonly because?: Operation | undefined
  readonly requeueAfter?: number | undefined
}

export interface Results {
  readonly operations: readonly Operation[]
  add(operation: Operation): void
  /** How often each code occurred. */
  counters(): Partial<Record<OperationCode, number>>
  consolidated(): Consolidated
  /** One line for each operation. */
  toString(): string
}

/** No time to come back is longer. */
const longestRequeue = 6 * 3_600_000

/** @param signal aborted when the reconciliation is called off */
export function createResults(signal?: AbortSignal): Results {
  const done: Operation[] = []
  return {
    operations: done,
    add: operation => void done.push(operation),
    counters() {
      const counts: Partial<Record<OperationCode, number>> = {}
      for (const { code } of done) counts[code] = (counts[code] ?? 0) + 1
      return counts
    },
    consolidated: () => consolidate(done, signal),
    toString: () => done.map(lineOf).join('\n'),
  }
}

export function consolidate(done: readonly Operation[], signal?: AbortSignal): Consolidated {
  const asked = done.flatMap(({ requeueAfter }) => (requeueAfter === undefined ? [] : [requeueAfter]))
  const requeueAfter = asked.length > 0 ? Math.min(longestRequeue, ...asked.map(ms => Math.max(ms, 0))) : undefined
  const givenUp = done.find(({ code }) => code === 'GivenUp')
  if (givenUp) return { is: 'givenUp', because: givenUp, requeueAfter }
  const errors = done.filter(({ error }) => error !== undefined)
  const failed = errors.find(({ error }) => !isPassing(error, signal)) ?? errors[0]
  if (failed) return { is: 'error', because: failed, requeueAfter }
  return { is: 'success', requeueAfter }
}

/** What sort of error it is: the code of one of ours, else the name of its class. */
export function errorKind(error: unknown): string {
  if (error instanceof ShipmateError) return error.code
  return error instanceof Error ? error.name : typeof error
}

/**
 * Somebody was faster, or the reconciliation was called off: it is decided anew, and there is nothing to tell a person. What a hook has called off itself is
 * a failure like any other.
 */
export function isPassing(error: unknown, signal?: AbortSignal): boolean {
  if (!(error instanceof ShipmateError)) return false
  if (error.code === 'Aborted') return signal?.aborted ?? false
  return error.retry === 'fresh' || error.code === 'NotLeading'
}

/** `Deployment sample: was created`, with the reason or the error behind it. */
function lineOf({ code, on, error, requeueAfter, note }: Operation): string {
  const why = error === undefined ? note : messageOf(error)
  const again = requeueAfter === undefined ? '' : ` (again in ${requeueAfter} ms)`
  return `${on}: ${operations[code]}${why ? `: ${why}` : ''}${again}`
}
