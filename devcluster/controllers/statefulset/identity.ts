/**
 * Who a StatefulSet's pod is: its name, its labels, its claims. Pure.
 */
import type { V1PersistentVolumeClaim, V1Pod, V1StatefulSet } from '@kubernetes/client-node'
import { controllerReference } from '../../../controller/kube/cached.ts'
import type { Draft, OwnerReference, Snapshot } from '../../../controller/kube/kind.ts'
import { type Pod, podOf, type Template } from '../common/pods.ts'

export type StatefulSet = Snapshot<V1StatefulSet>
export type Claim = Snapshot<V1PersistentVolumeClaim>

export const revisionLabel = 'controller-revision-hash'

/** The ordinal of a pod by its name; undefined where it is none of this set's. */
export function ordinalOf(set: StatefulSet, pod: Pod): number | undefined {
  const { name } = pod.metadata
  const prefix = `${set.metadata.name}-`
  const rest = name.startsWith(prefix) ? name.slice(prefix.length) : ''
  return /^\d+$/.test(rest) ? Number(rest) : undefined
}

export function identityLabels(set: StatefulSet, ordinal: number): Record<string, string> {
  return {
    'statefulset.kubernetes.io/pod-name': `${set.metadata.name}-${ordinal}`,
    'apps.kubernetes.io/pod-index': String(ordinal),
  }
}

export function claimName(set: StatefulSet, template: string, ordinal: number): string {
  return `${template}-${set.metadata.name}-${ordinal}`
}

export function newPod(set: StatefulSet, ordinal: number, template: Template, revision: string): Draft<V1Pod> {
  const name = `${set.metadata.name}-${ordinal}`
  const pod = podOf(template, {
    name,
    generateName: `${set.metadata.name}-`,
    namespace: set.metadata.namespace,
    labels: { ...identityLabels(set, ordinal), [revisionLabel]: revision },
    ownerReferences: [controllerReference(set)],
  })
  const claims = set.spec?.volumeClaimTemplates ?? []
  const own = claims.map(({ metadata }) => {
    const volume = metadata?.name ?? ''
    return { name: volume, persistentVolumeClaim: { claimName: claimName(set, volume, ordinal) } }
  })
  const others = (template.spec?.volumes ?? []).filter(volume => !own.some(({ name }) => name === volume.name))
  const subdomain = set.spec?.serviceName
  const spec = {
    ...template.spec,
    hostname: name,
    ...(subdomain ? { subdomain } : {}),
    ...(own.length + others.length > 0 ? { volumes: [...own, ...others] } : {}),
  }
  return { ...pod, spec } as Draft<V1Pod>
}

export function newClaims(set: StatefulSet, ordinal: number): Draft<V1PersistentVolumeClaim>[] {
  const ownerReferences = claimOwners(set, undefined, false)
  return (set.spec?.volumeClaimTemplates ?? []).map(({ metadata, spec }) => ({
    metadata: {
      name: claimName(set, metadata?.name ?? '', ordinal),
      namespace: set.metadata.namespace,
      labels: { ...metadata?.labels, ...set.spec?.selector.matchLabels },
      ...(metadata?.annotations ? { annotations: metadata.annotations } : {}),
      ...(ownerReferences.length > 0 ? { ownerReferences } : {}),
    },
    ...(spec ? { spec } : {}),
  })) as Draft<V1PersistentVolumeClaim>[]
}

/** Who owns a claim by the set's policy: nobody, the set, or a pod that is on its way out. */
export function claimOwners(set: StatefulSet, pod: Pod | undefined, isCondemned: boolean): OwnerReference[] {
  const policy = set.spec?.persistentVolumeClaimRetentionPolicy
  if (isCondemned && policy?.whenScaled === 'Delete' && pod) return [controllerReference(pod)]
  return policy?.whenDeleted === 'Delete' ? [controllerReference(set)] : []
}
