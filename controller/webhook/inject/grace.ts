/**
 * How long the end of a pod may take, so that its grace period is long enough. Pure.
 */
import { parseDuration } from '../../../shared/duration.ts'
import { type Action, defaults, type LifecycleSpec } from '../../../shared/lifecycle/model.ts'

/** What a pod has that says nothing, in seconds. */
export const defaultGrace = 30
/** For the calls of the hooks themselves, in seconds. */
const margin = 2

/** The action that a pod runs when it ends, if there is one. */
export function preStopOf({ preStop, actions = [] }: LifecycleSpec): Action | undefined {
  return actions.find(({ name }) => name === preStop)
}

/** For how many seconds, at most, the hooks hold the application's own end up: another run is cancelled, then the preStop action has its time. */
export function stopSeconds(spec: LifecycleSpec): number {
  const action = preStopOf(spec)
  if (!action) return 0
  const cancelling = Math.max(...(spec.actions ?? []).map(endingOf))
  const running = milliseconds(action.timeout, defaults.action.timeout)
  return Math.ceil((cancelling + running + endingOf(action)) / 1000) + margin
}

/** What the cancel contract of an action may take, and verify after it. */
function endingOf({ cancel, verify }: Action): number {
  const verifying = verify ? milliseconds(verify.timeout, defaults.verify.timeout) : 0
  return milliseconds(cancel?.grace, defaults.cancel.grace) + verifying
}

function milliseconds(text: string | undefined, fallback: string): number {
  return parseDuration(text ?? fallback) ?? parseDuration(fallback) ?? 0
}
