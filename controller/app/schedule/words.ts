/**
 * Times as they stand in specs, statuses and messages. Pure.
 */
import { parseDuration } from '../../../shared/duration.ts'

/** Milliseconds of a duration that the CRD has let through. */
export function lasts(duration: string): number {
  return parseDuration(duration) ?? 0
}
