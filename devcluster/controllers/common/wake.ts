/**
 * Whom a pod concerns that nobody controls: every workload whose selector selects it might adopt it.
 */
import type { Informer } from '../../../controller/kube/informer.ts'
import type { Ref, Snapshot } from '../../../controller/kube/kind.ts'
import { type LabelSelector, selects } from '../../../controller/kube/labelselector.ts'

export function selectedBy<T extends { spec?: { selector?: LabelSelector } }>(
  workloads: Informer<T>,
  { metadata }: Snapshot,
): Ref[] {
  if (metadata.deletionTimestamp || metadata.ownerReferences?.some(reference => reference.controller)) return []
  return workloads
    .list({ namespace: metadata.namespace })
    .filter(one => selects((one as { spec?: { selector?: LabelSelector } }).spec?.selector, metadata.labels))
    .map(one => one.metadata)
}
