/**
 * The status of a CustomResourceDefinition: whether its names are free, and whether it is served. Pure.
 */
import type { Names } from '../resources/custom.ts'
import type { Obj, ResourceType } from '../types.ts'

export interface Condition {
  type: string
  status: 'True' | 'False'
  lastTransitionTime: string
  reason: string
  message: string
}

/** The status that it should have; the same object where it has it. */
export function statusOf(crd: Obj, others: readonly ResourceType[], now: string): Obj['status'] {
  const names = crd.spec.names as Names
  const taken = conflictOf(crd, others)
  const accepted: Omit<Condition, 'lastTransitionTime'> = taken
    ? { type: 'NamesAccepted', status: 'False', ...taken }
    : { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }
  const wasEstablished = conditionOf(crd, 'Established')?.status === 'True'
  const established: Omit<Condition, 'lastTransitionTime'> =
    taken && !wasEstablished
      ? { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' }
      : {
          type: 'Established',
          status: 'True',
          reason: 'InitialNamesAccepted',
          message: 'the initial names have been accepted',
        }
  const wanted = [accepted, established]
  if (crd.metadata.deletionTimestamp) {
    wanted.push({
      type: 'Terminating',
      status: 'True',
      reason: 'InstanceDeletionInProgress',
      message: 'CustomResource deletion is in progress',
    })
  }
  const conditions = wanted.map(one => kept(conditionOf(crd, one.type), one, now))
  const storage =
    (crd.spec.versions as { name: string; storage: boolean }[]).find(version => version.storage)?.name ?? ''
  const stored: string[] = crd.status?.storedVersions ?? []
  return {
    conditions,
    acceptedNames: taken && !wasEstablished ? { plural: '', kind: '' } : names,
    storedVersions: stored.includes(storage) ? stored : [...stored, storage],
  }
}

export function isEstablished(crd: Obj): boolean {
  return conditionOf(crd, 'Established')?.status === 'True'
}

function conditionOf(crd: Obj, type: string): Condition | undefined {
  return (crd.status?.conditions as Condition[] | null | undefined)?.find(one => one.type === type)
}

function kept(before: Condition | undefined, next: Omit<Condition, 'lastTransitionTime'>, now: string): Condition {
  const isSame =
    before && before.status === next.status && before.reason === next.reason && before.message === next.message
  const { type, status, reason, message } = next
  return isSame
    ? before
    : { type, status, lastTransitionTime: before?.status === status ? before.lastTransitionTime : now, reason, message }
}

function conflictOf(crd: Obj, others: readonly ResourceType[]): { reason: string; message: string } | undefined {
  const names = crd.spec.names as Names
  const rest = others.filter(type => type.group === crd.spec.group && type.custom !== crd.metadata.uid)
  const resources = new Set(rest.flatMap(type => [type.resource, type.singular, ...type.shortNames]))
  const kinds = new Set(rest.flatMap(type => [type.kind, type.listKind]))
  const inUse = (what: string) => `${JSON.stringify(what)} is already in use`
  if (resources.has(names.plural)) return { reason: 'PluralConflict', message: inUse(names.plural) }
  if (names.singular && resources.has(names.singular))
    return { reason: 'SingularConflict', message: inUse(names.singular) }
  const short = names.shortNames?.find(name => resources.has(name))
  if (short) return { reason: 'ShortNamesConflict', message: inUse(short) }
  if (kinds.has(names.kind)) return { reason: 'KindConflict', message: inUse(names.kind) }
  if (names.listKind && kinds.has(names.listKind)) return { reason: 'ListKindConflict', message: inUse(names.listKind) }
  return undefined
}
