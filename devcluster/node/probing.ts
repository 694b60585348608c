/**
 * What a probe's answers amount to. Pure.
 *
 * Until it is first satisfied, a probe asks more often than its period says, so that nobody waits for what is ready; a failure counts only
 * once a period, so that a container has as long to start as on a kubelet.
 */
import type { Probe } from './spec.ts'

export interface Probing {
  /** Undefined: nothing is known yet. */
  readonly verdict: 'pass' | 'fail' | undefined
  readonly passes: number
  readonly failures: number
  /** When a failure last counted. */
  readonly failedAt: number | undefined
  /** How often it has asked while never satisfied. */
  readonly asked: number
}

export const unprobed: Probing = { verdict: undefined, passes: 0, failures: 0, failedAt: undefined, asked: 0 }

const periodOf = ({ periodSeconds = 10 }: Probe) => Math.max(periodSeconds, 1) * 1000

export function answered(state: Probing, probe: Probe, isGood: boolean, now: number): Probing {
  const { successThreshold = 1, failureThreshold = 3 } = probe
  const asked = state.asked + 1
  if (isGood) {
    const passes = state.passes + 1
    const verdict = passes >= successThreshold ? 'pass' : state.verdict
    return { verdict, passes, failures: 0, failedAt: undefined, asked }
  }
  const isHurried = state.failedAt !== undefined && now - state.failedAt < periodOf(probe) * 0.95
  if (isHurried) return { ...state, passes: 0, asked }
  const failures = state.failures + 1
  const verdict = failures >= failureThreshold ? 'fail' : state.verdict
  return { verdict, passes: 0, failures, failedAt: now, asked }
}

/** Milliseconds until it asks again. */
export function nextAsk(state: Probing, probe: Probe): number {
  const period = periodOf(probe)
  return state.verdict === 'pass' ? period : Math.min(period, 50 * 2 ** Math.min(state.asked, 20), 1000)
}
