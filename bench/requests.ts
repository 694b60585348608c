// Counts what a program asked of the server, from the audit log: per object, to start up, to watch, to hold a lease.

import type { AuditEntry } from '../test/fixtures/audit.ts'

export interface RequestCount {
  /** Reads of one object. */
  gets: number
  /** Attempts to create, update, patch or delete, whether they succeeded or not; leases aside. */
  writes: number
  /** Of the writes, those answered 409: a stale version, or an object that was there already. */
  conflicts: number
  /** Anything else answered with an error, leases and watches aside. */
  failures: number
  /** Lists and discovery. */
  lists: number
  watches: number
  /** Anything to do with leases. */
  leases: number
}

const writeVerbs = ['create', 'update', 'patch', 'delete', 'deletecollection']

export function countRequests(entries: AuditEntry[]): RequestCount {
  const count: RequestCount = { gets: 0, writes: 0, conflicts: 0, failures: 0, lists: 0, watches: 0, leases: 0 }
  for (const { verb, resource, code } of entries) {
    if (resource === 'leases') count.leases++
    else if (verb === 'watch') count.watches++
    else {
      const isWrite = writeVerbs.includes(verb)
      if (isWrite) count.writes++
      else if (verb === 'get' && resource !== '') count.gets++
      else count.lists++
      if (isWrite && code === 409) count.conflicts++
      else if (code >= 400) count.failures++
    }
  }
  return count
}
