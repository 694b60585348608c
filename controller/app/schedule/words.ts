/**
 * Times as they stand in specs, statuses and messages. Pure.
 */
import { parseDuration } from '../../../shared/duration.ts'

/** Milliseconds of a duration that the CRD has let through. */
export function lasts(duration: string): number {
  return parseDuration(duration) ?? 0
}

/** RFC 3339, in whole seconds: as it stands in a status, and in a message. */
export function spoken(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`
}
