/**
 * The ReplicaSet of a Deployment's template as it is now: which one it is, or the one to be made, and the annotations that both carry. Pure.
 */
import type { V1ReplicaSet } from '@kubernetes/client-node'
import { controllerReference } from '../../../controller/kube/cached.ts'
import type { Draft } from '../../../controller/kube/kind.ts'
import { canonicalJson } from '../../../shared/canonical.ts'
import { shortHash } from '../common/hash.ts'
import type { Template } from '../common/pods.ts'
import type { ReplicaSet } from '../replicaset/decide.ts'
import { annotations, type Deployment, hashLabel, limitsOf, newSize, revisionOf, wishedOf } from './replicas.ts'

/** Annotations of a Deployment that its ReplicaSets do not take over. */
const own: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  ...Object.values(annotations),
  'deprecated.deployment.rollback.to',
])

export function findFresh(deployment: Deployment, all: readonly ReplicaSet[]): ReplicaSet | undefined {
  const wished = canonicalJson(deployment.spec?.template ?? {})
  const byAge = all.toSorted((a, b) => (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? -1 : 1))
  return byAge.find(set => canonicalJson(withoutHash(set.spec?.template ?? {})) === wished)
}

function withoutHash(template: Template): Template {
  if (!template.metadata?.labels) return template
  const { [hashLabel]: _, ...labels } = template.metadata.labels
  return { ...template, metadata: { ...template.metadata, labels } }
}

export function nextRevision(old: readonly ReplicaSet[]): number {
  return Math.max(0, ...old.map(revisionOf)) + 1
}

/** What stands on the fresh ReplicaSet: the Deployment's annotations, its revision, and the numbers it was scaled by. */
export function freshAnnotations(
  deployment: Deployment,
  set: ReplicaSet | undefined,
  revision: number,
): Record<string, string> {
  const before = set?.metadata.annotations ?? {}
  const taken = Object.entries(deployment.metadata.annotations ?? {}).filter(([name]) => !own.has(name))
  const result: Record<string, string> = { ...before, ...Object.fromEntries(taken) }
  const last = Number(before[annotations.revision] ?? 0)
  if (last < revision) {
    result[annotations.revision] = String(revision)
    // A revision that comes back remembers what it was.
    if (last > 0) {
      const history = (before[annotations.history] ?? '').split(',').filter(text => text !== '')
      result[annotations.history] = [...history, String(last)].join(',')
    }
  }
  return set ? result : { ...result, ...scaleAnnotations(deployment) }
}

export function scaleAnnotations(deployment: Deployment): Record<string, string> {
  const wished = wishedOf(deployment)
  return { [annotations.desired]: String(wished), [annotations.most]: String(wished + limitsOf(deployment).surge) }
}

export function newReplicaSet(
  deployment: Deployment,
  old: readonly ReplicaSet[],
  collisions: number,
): Draft<V1ReplicaSet> {
  const template = deployment.spec?.template ?? {}
  const hash = shortHash(template, collisions)
  const labels = { ...template.metadata?.labels, [hashLabel]: hash }
  const { selector, minReadySeconds } = deployment.spec ?? {}
  const spec = {
    replicas: newSize(deployment, old, 0),
    ...(minReadySeconds ? { minReadySeconds } : {}),
    selector: { ...selector, matchLabels: { ...selector?.matchLabels, [hashLabel]: hash } },
    template: { ...template, metadata: { ...template.metadata, labels } },
  }
  return {
    metadata: {
      name: `${deployment.metadata.name}-${hash}`,
      namespace: deployment.metadata.namespace,
      labels,
      annotations: freshAnnotations(deployment, undefined, nextRevision(old)),
      ownerReferences: [controllerReference(deployment)],
    },
    spec,
  } as Draft<V1ReplicaSet>
}

/** Old ReplicaSets beyond the limit that have no pods, oldest first. */
export function dispensableSets(deployment: Deployment, old: readonly ReplicaSet[]): ReplicaSet[] {
  const limit = deployment.spec?.revisionHistoryLimit ?? 10
  const alive = old.filter(set => set.metadata.deletionTimestamp === undefined)
  return alive
    .toSorted((a, b) => revisionOf(a) - revisionOf(b))
    .slice(0, Math.max(alive.length - limit, 0))
    .filter(({ metadata, spec, status }) => {
      const isSeen = (metadata.generation ?? 0) <= (status?.observedGeneration ?? 0)
      return (spec?.replicas ?? 1) === 0 && (status?.replicas ?? 0) === 0 && isSeen
    })
}
