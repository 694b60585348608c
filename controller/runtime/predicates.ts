/**
 * Which changes are worth a reconciliation. Pure functions of a change; what exists when the controller starts, comes
 * or goes always is.
 */
import { same } from '../kube/applied.ts'
import type { Change } from '../kube/store.ts'

export type Predicate<T extends object = object> = (change: Change<T>) => boolean

/** The spec changed: the server counts that as `generation`. Deletion asked for counts too; and any change where it does not count. */
export const generationChanged: Predicate = ({ old, object }) =>
  !old || object.metadata.generation === undefined || old.metadata.generation !== object.metadata.generation

export const labelsChanged: Predicate = ({ old, object }) => !old || !same(old.metadata.labels, object.metadata.labels)

export const annotationsChanged: Predicate = ({ old, object }) =>
  !old || !same(old.metadata.annotations, object.metadata.annotations)

/** It is being deleted, or is gone. */
export const deletion: Predicate = ({ type, old, object }) =>
  type === 'removed' ||
  (object.metadata.deletionTimestamp !== undefined && old?.metadata.deletionTimestamp === undefined)

/**
 * Not what we wrote ourselves, as far as that is known: what a watch tells before our write is answered passes for
 * somebody else's. And what somebody else changed just before our write comes with its answer, and passes for ours: use it
 * as `any(byOthers, generationChanged, deletion)`, or such a change is missed.
 */
export const byOthers: Predicate = ({ own }) => !own

export function any<T extends object>(...predicates: Predicate<T>[]): Predicate<T> {
  return change => predicates.some(predicate => predicate(change))
}

export function all<T extends object>(...predicates: Predicate<T>[]): Predicate<T> {
  return change => predicates.every(predicate => predicate(change))
}

export function not<T extends object>(predicate: Predicate<T>): Predicate<T> {
  return change => !predicate(change)
}
