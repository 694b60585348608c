/**
 * The identity of a lifecycle, as sidecars report it. Pure.
 */
import { hashOf } from '../canonical.ts'
import type { LifecycleSpec } from './model.ts'

/** The hex SHA-256 of the canonical JSON of `{states, probes, actions, preStop}` as written; what is absent is absent. */
export function configHash({ states, probes, actions, preStop }: LifecycleSpec): string {
  return hashOf({ states, probes, actions, preStop })
}
