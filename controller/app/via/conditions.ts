/**
 * What an app without a sidecar says of itself in place of what sidecars would. Pure.
 */
import type { Wanted } from '../../toolkit/conditions.ts'
import type { Way } from './calls.ts'

export function conditionsVia(way: Way): Wanted[] {
  const how = way.exec ? 'commands in its container' : 'its own HTTP server'
  return [
    {
      type: 'SidecarsReachable',
      status: 'Unknown',
      reason: 'NoSidecar',
      message: `It has none: it is asked by ${how}.`,
    },
    {
      type: 'ExactlyOnce',
      status: 'False',
      reason: 'NoSidecar',
      message: `It is asked by ${how} and nothing is journaled: an action that is interrupted, be it by a restart of the controller, is Unknown until verify or a person settles it.`,
    },
  ]
}
