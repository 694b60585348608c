/**
 * A run's phases, and how its end is decided from what was found. Pure.
 *
 * Guarantees: a phase never moves back; nothing leaves Succeeded, Failed, Cancelled or TimedOut; only Unknown is settled later. An end is decided from
 * the facts alone, the same by the agent that saw it and by one that recovers it.
 */
import { successors } from './machine.ts'
import type { Phase } from './protocol/schemas.ts'

const life = successors<Phase>({
  Accepted: ['Running', 'Failed', 'Cancelled', 'Unknown'],
  Running: ['Succeeded', 'Failed', 'Cancelled', 'TimedOut', 'Unknown'],
  Unknown: ['Succeeded', 'Failed'],
  Succeeded: [],
  Failed: [],
  Cancelled: [],
  TimedOut: [],
})

/** Whether nothing can change the phase any more. Unknown is not terminal: it can be settled. */
export function isTerminal(phase: Phase): boolean {
  return life.isFinal(phase)
}

/** Whether the run holds its lock and may still do something: Accepted or Running. */
export function isInProgress(phase: Phase): boolean {
  return phase === 'Accepted' || phase === 'Running'
}

/** `to`, if a run may go there from `phase`; throws otherwise. To stay where it is, is no step. */
export function advance(phase: Phase, to: Phase): Phase {
  const next = life.step(phase, to)
  if (next !== undefined) return next
  const possible = life.events(phase)
  throw new TypeError(`a run that is ${phase} cannot become ${to}, only ${possible.join(', ') || 'nothing else'}`)
}

/**
 * How an execution ended.
 * - `exited`: by itself. `cancelled`, `timedOut`: the cancel contract was begun while it was alive.
 * - `notExecuted`: the command could not be started and has done nothing. `notStarted`: nobody had claimed the run, and now nobody can.
 * - `lost`: nobody saw the end, or a call was cut off after it may have been sent.
 */
export type Cause = 'exited' | 'cancelled' | 'timedOut' | 'notExecuted' | 'notStarted' | 'lost'

export interface Exit {
  readonly cause: Cause
  /** Null if it ended by a signal, or is not known. */
  readonly code: number | null
  /** As `SIGKILL`; null if it ended by itself, or is not known. */
  readonly signal: string | null
  /** What failed, if something did, as `chdir: ENOENT`. */
  readonly error: string | null
  /** For `exited`: why it failed, where it is no command that exited. */
  readonly why?: RunErrorCode
}

/** What verify said: it happened, it did not, or it cannot tell. */
export type Verdict = 'Succeeded' | 'Failed' | 'Unknown'

/** Why a run did not succeed, as in a run's `error.code`. */
export type RunErrorCode =
  | 'ExitCode'
  | 'Signalled'
  | 'NotExecuted'
  | 'NotStarted'
  | 'NotApplied'
  | 'Cancelled'
  | 'TimedOut'
  | 'Lost'
  /** A person said so. */
  | 'Settled'
  /** An http call was answered, with another status than expected, or its poll said that it failed. */
  | 'Refused'
  /** An http call could not be sent. */
  | 'NotSent'
  /** There is no process of that name to signal. */
  | 'NoProcess'
  /** A step was not begun, because it could not be written down first. */
  | 'JournalFull'

export interface Outcome {
  readonly phase: Phase
  readonly exitCode: number | null
  readonly error: { readonly code: RunErrorCode; readonly message: string } | null
}

/**
 * The outcome of an execution. `verdict` counts only where the end itself does not tell: `cancelled`, `timedOut` and `lost`. Absent means that there is
 * no verify, or that it was not asked.
 */
export function outcomeOf({ cause, code, signal, error, why }: Exit, verdict?: Verdict): Outcome {
  const exitCode = code
  const failed = (as: RunErrorCode, message: string): Outcome => ({
    phase: 'Failed',
    exitCode,
    error: { code: as, message },
  })
  switch (cause) {
    case 'exited':
      if (why !== undefined) return failed(why, error ?? 'failed')
      if (code === 0) return { phase: 'Succeeded', exitCode, error: null }
      if (signal !== null) return failed('Signalled', `ended by ${signal}`)
      return failed('ExitCode', error ?? `exited with ${code}`)
    case 'notExecuted':
      return failed('NotExecuted', `could not be executed: ${error ?? 'no reason was recorded'}`)
    case 'notStarted':
      return failed('NotStarted', error ?? 'was not started, and never will be')
    case 'lost':
      if (verdict === 'Succeeded') return { phase: 'Succeeded', exitCode, error: null }
      if (verdict === 'Failed') return failed('NotApplied', 'verify says that it did not happen')
      return { phase: 'Unknown', exitCode, error: { code: 'Lost', message: error ?? 'nobody saw how it ended' } }
    case 'cancelled':
    case 'timedOut': {
      const phase = cause === 'cancelled' ? 'Cancelled' : 'TimedOut'
      if (verdict === 'Succeeded') return { phase: 'Succeeded', exitCode, error: null }
      const how = phase === 'Cancelled' ? 'was cancelled' : 'did not end in time'
      const message = error === null ? how : `${how}: ${error}`
      if (verdict !== 'Unknown') return { phase, exitCode, error: { code: phase, message } }
      return { phase: 'Unknown', exitCode, error: { code: phase, message: `${message}; verify could not tell` } }
    }
  }
}

/** The outcome of a run that is Unknown, once verify or a person has said; undefined if that does not settle it. */
export function settledBy(verdict: Verdict, exitCode: number | null = null): Outcome | undefined {
  if (verdict === 'Unknown') return undefined
  return outcomeOf({ cause: 'lost', code: exitCode, signal: null, error: null }, verdict)
}
