/**
 * Whether an object that is being deleted may go: nobody holds it any more, and its time is up.
 */
import type { Obj, ResourceType } from '../types.ts'

export function isOver(object: Obj, type: ResourceType): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers = [] } = object.metadata
  if (!deletionTimestamp || finalizers.length > 0 || (deletionGracePeriodSeconds ?? 0) > 0) return false
  return !(isNamespace(type) && (object.spec?.finalizers?.length ?? 0) > 0)
}

export const isNamespace = ({ group, resource }: ResourceType) => group === '' && resource === 'namespaces'
