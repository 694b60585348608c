/**
 * managedFields after a write that is no apply: a create, an update, or another patch. The writer comes to own what changed; who owned it before, or
 * what is gone, loses it.
 */
import type { Obj } from '../types.ts'
import { deepEqual } from './compare.ts'
import { findMismatch } from './conform.ts'
import { union } from './fieldset.ts'
import { capped, identityOf, type Managers, readManagers } from './managers.ts'
import { afterUpdate } from './ownership.ts'
import { rulesOf, stripMeta, typedOf, type Write, withEntries, withManagers } from './write.ts'
import { zeroObject } from './zero.ts'

export interface Update extends Write {
  /** The object as the writer wants it, with defaults, before the server sets anything itself. */
  readonly next: Obj
}

/** `next` with the managedFields that it comes to have. */
export function updateManaged(write: Update): Obj {
  const { live, next } = write
  const managers = managersBefore(write)
  // What is not tracked yet is tracked from its first apply on.
  if (managers.size === 0 && live?.metadata.uid) return withEntries(next, undefined)
  const tracked = track(write, live ?? zeroObject(write.schema, write.apiVersion, next.kind), next, managers)
  // Of what is not of its type nobody can say who manages it, as on a real server.
  return tracked ? withManagers(next, tracked) : withEntries(next, undefined)
}

/** The managers that a write begins with: the writer's own word on them if it has one, and it is not about a subresource. */
function managersBefore({ live, next, subresource, schema }: Update): Managers {
  const given = next.metadata.managedFields
  if (!subresource && given) {
    const [first] = given
    // An empty list does not outlive the decoding of a custom object.
    const isReset = first ? given.length === 1 && Object.keys(first).length === 0 : schema['x-name'] !== undefined
    if (isReset) return new Map()
    const managers = readable(given)
    if (managers && managers.size > 0) return managers
  }
  return readable(live?.metadata.managedFields) ?? new Map()
}

function readable(entries: Obj['metadata']['managedFields']): Managers | undefined {
  try {
    return readManagers(entries)
  } catch {
    return undefined
  }
}

// Under this name, so that what this very write took is seen apart from what its manager had.
const self = 'current-operation'

/** The managers after the write; undefined where an object is not of its type, and nothing can be said. */
export function track(write: Write, live: Obj, next: Obj, managers: Managers): Managers | undefined {
  const { manager, apiVersion, subresource, now } = write
  const before = typedOf(write, live)
  const after = typedOf(write, next)
  if (findMismatch(after.type, after.value, 'allowed')) return undefined
  if (findMismatch(before.type, before.value, 'allowed')) return undefined
  const out = stripMeta(afterUpdate(rulesOf(write, next.kind), before, after, managers, self), self)
  const taken = out.get(self)
  if (taken) {
    out.delete(self)
    const id = identityOf({ manager: manager || 'unknown', operation: 'Update', apiVersion, subresource })
    const previous = out.get(id)
    out.set(id, { ...taken, set: previous ? union(taken.set, previous.set) : taken.set, time: now })
  }
  return capped(out)
}

/**
 * `next`, with the times of `live` where nothing but times differs, so that a write that changes nothing is none. To be asked once the object is as it
 * would be stored.
 */
export function keepTimes(live: Obj, next: Obj): Obj {
  const before = live.metadata.managedFields ?? []
  const after = next.metadata.managedFields ?? []
  if (before.length !== after.length) return next
  for (const [i, entry] of after.entries()) {
    const old = before[i]
    if (!old || !deepEqual({ ...entry, time: undefined }, { ...old, time: undefined })) return next
  }
  return deepEqual(withEntries(live, undefined), withEntries(next, undefined))
    ? withEntries(next, live.metadata.managedFields)
    : next
}
