// What an operation asks of the server, by verb and kind. Events, the gate (a PodDisruptionBudget) and the lease stand apart: they are
// not what an operation is remembered by.

import type { AuditEntry } from '../../test/fixtures/audit.ts'

const apart = ['events', 'poddisruptionbudgets', 'leases']
const reads = ['get', 'list', 'watch']

export interface Asked {
  /** Per operation, by verb and kind, most first. */
  byKind: Record<string, number>
  /** Per operation, but for what stands apart. */
  writes: number
  reads: number
  /** In all. */
  conflicts: number
}

export function asked(entries: AuditEntry[], operations: number): Asked {
  const counted = entries.filter(({ verb, resource }) => verb !== 'watch' && resource !== 'leases')
  const kinds = Map.groupBy(counted, ({ verb, resource, subresource }) =>
    [verb, subresource ? `${resource}/${subresource}` : resource].join(' '),
  )
  const own = counted.filter(({ resource }) => !apart.includes(resource))
  const isRead = ({ verb }: AuditEntry) => reads.includes(verb)
  return {
    byKind: Object.fromEntries(
      [...kinds].map(([kind, all]): [string, number] => [kind, all.length / operations]).sort(([, a], [, b]) => b - a),
    ),
    writes: own.filter(one => !isRead(one)).length / operations,
    reads: own.filter(isRead).length / operations,
    conflicts: counted.filter(({ code }) => code === 409).length,
  }
}
