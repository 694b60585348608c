/**
 * How many pods a ReplicaSet makes or gives up, and what it says of itself. Pure.
 */
import type { V1Pod, V1ReplicaSet } from '@kubernetes/client-node'
import { controllerReference } from '../../../controller/kube/cached.ts'
import type { Draft, Snapshot } from '../../../controller/kube/kind.ts'
import { selects } from '../../../controller/kube/labelselector.ts'
import { timeOf } from '../../../shared/clock.ts'
import { withCondition } from '../common/conditions.ts'
import {
  byDispensability,
  isActive,
  isAvailable,
  isReady,
  isTerminating,
  nextAvailable,
  type Pod,
  podOf,
} from '../common/pods.ts'

export type ReplicaSet = Snapshot<V1ReplicaSet>

export interface Decision {
  readonly create: Draft<V1Pod>[]
  readonly remove: Pod[]
  readonly after: number | undefined
}

export function decideReplicaSet(set: ReplicaSet, pods: readonly Pod[], now: number): Decision {
  const active = pods.filter(isActive)
  const after = nextAvailable(active, set.spec?.minReadySeconds ?? 0, now)
  if (set.metadata.deletionTimestamp) return { create: [], remove: [], after }
  const missing = (set.spec?.replicas ?? 1) - active.length
  const create = Array.from({ length: Math.max(missing, 0) }, () =>
    podOf(set.spec?.template, {
      generateName: `${set.metadata.name}-`,
      namespace: set.metadata.namespace,
      ownerReferences: [controllerReference(set)],
    }),
  )
  const remove = missing < 0 ? active.toSorted(byDispensability(now)).slice(0, -missing) : []
  return { create, remove, after }
}

/** @param failure what kept pods from being made or deleted, if anything did */
export function statusOfReplicaSet(set: ReplicaSet, pods: readonly Pod[], now: number, failure?: Failure) {
  const active = pods.filter(isActive)
  const count = (is: (pod: Pod) => boolean) => active.filter(is).length || undefined
  const minReady = set.spec?.minReadySeconds ?? 0
  const labels = { matchLabels: set.spec?.template?.metadata?.labels ?? {} }
  const others = (set.status?.conditions ?? []).filter(({ type }) => type !== 'ReplicaFailure')
  const conditions = failure
    ? withCondition(set.status?.conditions, { type: 'ReplicaFailure', status: 'True', ...failure }, timeOf(now))
    : others
  return {
    observedGeneration: set.metadata.generation,
    replicas: active.length,
    fullyLabeledReplicas: count(pod => selects(labels, pod.metadata.labels)),
    readyReplicas: count(isReady),
    availableReplicas: count(pod => isAvailable(pod, minReady, now)),
    terminatingReplicas: pods.filter(isTerminating).length,
    conditions: conditions.length > 0 ? conditions : undefined,
  }
}

export interface Failure {
  readonly reason: 'FailedCreate' | 'FailedDelete'
  readonly message: string
}
