/**
 * Since when a schedule is as it is: from what the server writes down of who set a field, and when. Pure.
 *
 * Guarantee: never earlier than the change, to the second. Undefined where that is not written down: then only the moment is known at which it was seen.
 */
import type { Snapshot } from '../../kube/kind.ts'

/** What decides at which minutes a schedule ticks, or whether at all. */
export interface Plan {
  readonly schedule: string
  readonly timeZone: string
  readonly suspend: boolean
}

export function planOf({ schedule, timeZone, suspend }: Plan): Plan {
  return { schedule, timeZone, suspend }
}

/** The fields in which two plans differ; all of them, if there was none. */
export function changesOf(before: Plan | undefined, now: Plan): (keyof Plan)[] {
  const fields = ['schedule', 'timeZone', 'suspend'] as const
  return fields.filter(field => before?.[field] !== now[field])
}

/** When each of the fields had been set as it is, in milliseconds since 1970. */
export function changedAt({ metadata }: Snapshot, fields: readonly (keyof Plan)[]): number | undefined {
  const entries = (metadata.managedFields ?? []).filter(({ subresource }) => !subresource)
  const times = fields.map(field => {
    // Who set it since as it is owns it too, and is later: so the latest is never too early.
    const owners = entries.filter(({ fieldsV1 }) => specIn(fieldsV1)?.[`f:${field}`] !== undefined)
    const all = owners.map(({ time }) => (time === undefined ? Number.NaN : Date.parse(String(time))))
    return all.length > 0 ? Math.max(...all) : Number.NaN
  })
  const latest = Math.max(...times)
  return Number.isFinite(latest) ? latest : undefined
}

function specIn(fields: unknown): Record<string, unknown> | undefined {
  return (fields as { 'f:spec'?: Record<string, unknown> } | undefined)?.['f:spec']
}
