/**
 * What an app without a sidecar says of itself in place of what sidecars would. Pure.
 */
import type { Wanted } from '../../toolkit/conditions.ts'
import type { PodView } from '../view.ts'
import type { Way } from './calls.ts'

/** @param pods as they are seen now */
export function conditionsVia(way: Way, pods: readonly PodView[]): Wanted[] {
  const how = way.exec ? 'commands in its container' : 'its own HTTP server'
  const silence = silenceOf(pods)
  return [
    {
      type: 'SidecarsReachable',
      status: 'Unknown',
      reason: 'NoSidecar',
      message: `It has none: it is asked by ${how}.${silence === undefined ? '' : ` ${silence}`}`,
    },
    {
      type: 'ExactlyOnce',
      status: 'False',
      reason: 'NoSidecar',
      message: `It is asked by ${how} and nothing is journaled: an action that is interrupted, be it by a restart of the controller, is Unknown until verify or a person settles it.`,
    },
  ]
}

/** Why the first pod that does not answer does not: nobody else would tell, as of a right that the controller lacks. */
function silenceOf(pods: readonly PodView[]): string | undefined {
  for (const { name, agent, isTerminating } of pods) {
    if (isTerminating) continue
    for (const [probe, { ok, error }] of Object.entries(agent?.state?.probes ?? {}))
      if (ok === null && error !== null) return `${name} does not answer ${probe}: ${error}.`
  }
  return undefined
}
