/**
 * What every controller here is given, and how it is declared on the manager.
 */

import type { ControllerOptions } from '../../../controller/runtime/controller.ts'
import type { Manager } from '../../../controller/runtime/manager.ts'
import type { Clock } from '../../../shared/clock.ts'

export interface Surroundings {
  readonly manager: Manager
  readonly clock: Clock
  /** The authority's certificate, PEM, for the ConfigMap `kube-root-ca.crt`; none without. */
  readonly ca?: string | undefined
}

/** An event on the workload that is at work. */
export type Tell = (type: 'Normal' | 'Warning', reason: string, note: string) => void

export type Install = (around: Surroundings) => void

/** Workloads are written as often as their pods change: that is their work, no loop. Failures are retried soon, as on a laptop. */
export function named(name: string): ControllerOptions {
  return { name, hotLoop: { burst: Number.POSITIVE_INFINITY }, backoff: { first: 5, longest: 5000 } }
}

/** To come back after so many milliseconds, if at all. */
export function comeBack(after: number | undefined): { requeueAfter: number } | undefined {
  // A little later: what is compared are whole seconds.
  return after === undefined ? undefined : { requeueAfter: after + 10 }
}
