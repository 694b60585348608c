/**
 * What one reconciliation has learned from sidecars beyond what they pushed, and what it has to ask of them.
 */
import type { PodState } from '../../../shared/protocol/schemas.ts'
import type { Verdict } from '../../../shared/run.ts'
import type { PodView, RunRecord } from '../view.ts'

export interface Refusal {
  readonly code: string
  readonly message: string
  /** Whether it was to be written down as cancelled. */
  readonly isOfAnnul: boolean
}

export interface Facts {
  /** Read just now, by the pod's uid. */
  readonly states: ReadonlyMap<string, PodState>
  /** Why a run was not accepted, by its id; `Unreachable` if no answer came. */
  readonly refusals: ReadonlyMap<string, Refusal>
  /** By the run's id. */
  readonly verdicts: ReadonlyMap<string, Verdict>
  /** The ends of logs, by the run's id. */
  readonly tails: ReadonlyMap<string, string>
  /** Asked in vain or without an answer worth keeping: not to be asked again in this reconciliation. By `askKey`. */
  readonly asked: ReadonlySet<string>
  /** Whether it is time to ask verify about a run again, and if not, when it is. */
  verifyAt(runId: string): number
  /** Whether it is time to write a run's progress again. */
  isProgressDue(runId: string): boolean
}

export type Ask =
  | { readonly ask: 'state'; readonly pod: PodView }
  | {
      readonly ask: 'put' | 'annul' | 'cancel' | 'verify' | 'tail' | 'drop'
      readonly pod: PodView
      readonly run: RunRecord
    }
  | {
      readonly ask: 'settle'
      readonly pod: PodView
      readonly run: RunRecord
      readonly outcome: 'Succeeded' | 'Failed'
      readonly reason: string
    }

export function askKey(ask: Ask): string {
  return ask.ask === 'state' ? `state ${ask.pod.uid}` : `${ask.ask} ${ask.run.id}`
}

export const noFacts: Facts = {
  states: new Map(),
  refusals: new Map(),
  verdicts: new Map(),
  tails: new Map(),
  asked: new Set(),
  verifyAt: () => 0,
  isProgressDue: () => true,
}
