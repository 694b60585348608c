/**
 * Which fields a write does not touch, whatever it says of them: a write of the object leaves its status alone, one of the status the rest.
 */
import { emptySet, type FieldSet, setOf } from './fieldset.ts'

const status = setOf(['f:status'])
const spec = setOf(['f:spec'])
const metadataAndSpec = setOf(['f:metadata'], ['f:spec'])

/** What differs of built-in kinds: what a write of their status leaves alone. */
const ofStatus: Readonly<Record<string, FieldSet>> = {
  'apps/v1 Deployment': setOf(['f:spec'], ['f:metadata', 'f:labels']),
  'v1 Pod': setOf(['f:spec'], ['f:metadata', 'f:deletionTimestamp'], ['f:metadata', 'f:ownerReferences']),
  'apiextensions.k8s.io/v1 CustomResourceDefinition': metadataAndSpec,
}

export function resetFields(
  apiVersion: string,
  kind: string,
  subresource: string | undefined,
  { hasStatus, custom }: { hasStatus: boolean; custom: boolean },
): FieldSet {
  if (subresource === 'status') return ofStatus[`${apiVersion} ${kind}`] ?? (custom ? metadataAndSpec : spec)
  if (subresource) return emptySet
  return hasStatus ? status : emptySet
}
