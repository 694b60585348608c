/**
 * What somebody who writes under a new name has to do about the fields that it applied under former ones. Pure.
 *
 * Guarantees: a field that a former name owned is owned by the new one afterwards, and by nobody else who did not own it before; entries of others are left as they
 * are. Fields recorded in two versions of an API are not mixed, as only the server can tell which of them are the same: those are left to be given up.
 */
import type { FieldsV1, ManagedFields } from './kind.ts'

interface Managed {
  readonly metadata: { readonly managedFields?: readonly ManagedFields[] | undefined }
}

/** The former names that still own something of an object by apply. */
export function formerOwners({ metadata }: Managed, former: readonly string[]): string[] {
  const entries = metadata.managedFields ?? []
  return former.filter(name => entries.some(entry => isAppliedBy(entry, name)))
}

/** The entries of an object in which all that `former` applied is `manager`'s, as far as that can be told; undefined where there is nothing to move. */
export function takenOver(
  { metadata }: Managed,
  manager: string,
  former: readonly string[],
): ManagedFields[] | undefined {
  const entries = metadata.managedFields ?? []
  const theirs = entries.filter(entry => former.some(name => isAppliedBy(entry, name)))
  const heir = entries.find(entry => isAppliedBy(entry, manager)) ?? theirs[0]
  const moved = theirs.filter(({ apiVersion }) => apiVersion === heir?.apiVersion)
  if (!heir || moved.length === 0) return undefined
  const fieldsV1 = moved.reduce((all, entry) => united(all, entry.fieldsV1 ?? {}), heir.fieldsV1 ?? {})
  return entries.flatMap(entry => {
    if (entry === heir) return [{ ...entry, manager, fieldsV1 }]
    return moved.includes(entry) ? [] : [entry]
  })
}

function isAppliedBy({ manager, operation, subresource }: ManagedFields, name: string): boolean {
  return manager === name && operation === 'Apply' && !subresource
}

/** Every field of either. An empty set is the field itself; beside fields in it, that is written as a dot. */
function united(a: FieldsV1, b: FieldsV1): FieldsV1 {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return Object.fromEntries([...names].map((name): [string, FieldsV1] => [name, unitedField(a[name], b[name])]))
}

function unitedField(a: FieldsV1 | undefined, b: FieldsV1 | undefined): FieldsV1 {
  if (!a || !b) return a ?? b ?? {}
  const isItself = (one: FieldsV1) => Object.keys(one).length === 0
  if (isItself(a) === isItself(b)) return united(a, b)
  return { '.': {}, ...united(a, b) }
}
