/**
 * In which state a pod is, decided from what its probes said and what runs in it. Pure.
 *
 * Guarantee: nothing is guessed. As long as one probe that any guard uses has no answer, the state is Unknown, unless a run of a transient state is in
 * progress: then it is that one.
 */
import type { CompiledLifecycle } from './compile.ts'
import type { ProbeAnswer } from './guard.ts'

/** Not a name that a lifecycle may give to a state. */
export const unknownState = 'Unknown'

/**
 * - `RunInProgress`: a run of the state's action is in progress. `GuardHolds`: the state's `when` holds.
 * - `NeverHeld`, `GuardLost`: no guard holds, so it is the initial state; none has held since the journal began, or one had.
 * - `NotAnswered`: a probe has not answered yet. `NoAnswer`: one no longer answers. `NoStates`: the lifecycle has none.
 */
export type StateReason =
  | 'RunInProgress'
  | 'GuardHolds'
  | 'NeverHeld'
  | 'GuardLost'
  | 'NotAnswered'
  | 'NoAnswer'
  | 'NoStates'

export interface ObservedProbe extends ProbeAnswer {
  /** Whether it has ever answered. Default: whether `ok` is known. */
  readonly answered?: boolean
}

export interface Facts {
  readonly lifecycle: CompiledLifecycle
  readonly probes: Readonly<Record<string, ObservedProbe>>
  /** The run in progress, if there is one: of a transient state's action, if there are several. */
  readonly run: { readonly action: string } | null
  /** Whether any guard has held since the journal began. */
  readonly everHeld: boolean
  /** Called when a guard cannot be evaluated, once until it can be again. It does not hold then. */
  readonly failed?: ((state: string, reason: string) => void) | undefined
}

export interface Observation {
  /** A state's name, or `Unknown`. */
  readonly state: string
  readonly reason: StateReason
  /** Whether a guard holds now, a run in progress or not. False while it is not known. */
  readonly guardHeld: boolean
  /** Whether every probe that guards use has an answer, so that `guardHeld` means something. */
  readonly isKnown: boolean
}

export function observe({ lifecycle, probes, run, everHeld, failed }: Facts): Observation {
  const unanswered = lifecycle.guardProbes
    .map(name => (Object.hasOwn(probes, name) ? probes[name] : undefined))
    .filter(probe => probe === undefined || probe.ok === null)
  const isKnown = unanswered.length === 0
  const context = { probes, run }
  const holding = isKnown
    ? lifecycle.guards.find(({ state, guard }) => guard.holds(context, reason => failed?.(state, reason)))
    : undefined
  const guardHeld = holding !== undefined
  const is = (state: string, reason: StateReason): Observation => ({ state, reason, guardHeld, isKnown })

  const transient = run && lifecycle.graph.transientOf(run.action)
  if (transient) return is(transient.name, 'RunInProgress')
  const [initial] = lifecycle.graph.nodes
  if (!initial) return is(unknownState, 'NoStates')
  if (!isKnown) {
    return is(unknownState, unanswered.every(probe => probe?.answered) ? 'NoAnswer' : 'NotAnswered')
  }
  if (holding) return is(holding.state, 'GuardHolds')
  return is(initial.name, everHeld ? 'GuardLost' : 'NeverHeld')
}
