/**
 * What is known of a probe after each of its attempts. Pure.
 *
 * Guarantees: whatever is known stays so until `failureThreshold` failures in a row, or `successThreshold` yes in a row, say otherwise; so `ok` is null until
 * either is reached, and one answer after a start decides no more than any other. It is null again once it has not answered for so long as would have made it false.
 */
import type { ProbeState } from '../protocol/schemas.ts'

/**
 * How an attempt ended: `yes` and `no` are answers; `none` is no answer, because it took too long, could not be made or was killed.
 */
export type Outcome = 'yes' | 'no' | 'none'

export interface Attempt {
  readonly outcome: Outcome
  /** What was observed, with a yes or a no. */
  readonly value: string | null
  /** Why it is not a yes. */
  readonly error: string | null
}

export const yes = (value: string | null): Attempt => ({ outcome: 'yes', value, error: null })
export const no = (value: string | null, error: string): Attempt => ({ outcome: 'no', value, error })
export const none = (error: string): Attempt => ({ outcome: 'none', value: null, error })

export interface Thresholds {
  readonly successThreshold: number
  readonly failureThreshold: number
}

export interface ProbeMemory {
  readonly ok: boolean | null
  /** Yes in a row. */
  readonly successes: number
  /** In a row, what was not a yes. */
  readonly failures: number
  /** Of the last answer. */
  readonly value: string | null
  /** Of the last attempt; null after a yes. */
  readonly error: string | null
  /** Whether it has ever said enough for `ok` to be known. */
  readonly answered: boolean
  /** When the last attempt ended, in milliseconds since the epoch. */
  readonly at: number | null
}

export const nothingKnown: ProbeMemory = {
  ok: null,
  successes: 0,
  failures: 0,
  value: null,
  error: null,
  answered: false,
  at: null,
}

export function step(before: ProbeMemory, attempt: Attempt, at: number, thresholds: Thresholds): ProbeMemory {
  const { outcome } = attempt
  const isAnswer = outcome !== 'none'
  const successes = outcome === 'yes' ? before.successes + 1 : 0
  const failures = outcome === 'yes' ? 0 : before.failures + 1
  const isEnough = successes >= thresholds.successThreshold || failures >= thresholds.failureThreshold
  const ok = isEnough ? meaning[outcome] : before.ok
  return {
    ok,
    successes,
    failures,
    value: isAnswer ? attempt.value : before.value,
    error: outcome === 'yes' ? null : attempt.error,
    answered: before.answered || ok !== null,
    at,
  }
}

/** What `ok` becomes when there were enough of them. */
const meaning: Readonly<Record<Outcome, boolean | null>> = { yes: true, no: false, none: null }

/** As it is told to others. */
export function viewOf({ ok, value, error, at, failures }: ProbeMemory): ProbeState {
  return { ok, value, error, at: at === null ? null : new Date(at).toISOString(), failures }
}

/** Whether others are to be told: `at` and `failures` alone are no news. */
export function differs(one: ProbeState, other: ProbeState): boolean {
  return one.ok !== other.ok || one.value !== other.value || one.error !== other.error
}
