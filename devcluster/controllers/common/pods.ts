/**
 * What the controllers ask of a pod, and the pod that a template makes. Pure.
 */
import type { V1Pod, V1PodTemplateSpec } from '@kubernetes/client-node'
import type { Draft, Frozen, Snapshot, Wire } from '../../../controller/kube/kind.ts'
import { conditionOf } from './conditions.ts'

export type Pod = Snapshot<V1Pod>
export type Template = Frozen<Wire<V1PodTemplateSpec>>

export const isReady = (pod: Pod) => conditionOf(pod.status?.conditions, 'Ready')?.status === 'True'
export const isTerminating = (pod: Pod) => pod.metadata.deletionTimestamp !== undefined
export const hasFailed = (pod: Pod) => pod.status?.phase === 'Failed'
export const hasSucceeded = (pod: Pod) => pod.status?.phase === 'Succeeded'
/** It has not ended and nobody wants it gone. */
export const isActive = (pod: Pod) => !hasFailed(pod) && !hasSucceeded(pod) && !isTerminating(pod)

/** Milliseconds until it has been ready for long enough; 0 if it has, undefined while it is not ready. */
function untilAvailable(pod: Pod, minReadySeconds: number, now: number): number | undefined {
  const ready = conditionOf(pod.status?.conditions, 'Ready')
  if (ready?.status !== 'True') return undefined
  if (minReadySeconds === 0) return 0
  const since = Date.parse(ready.lastTransitionTime ?? '')
  return Number.isNaN(since) ? undefined : Math.max(since + minReadySeconds * 1000 - now, 0)
}

export function isAvailable(pod: Pod, minReadySeconds: number, now: number): boolean {
  return untilAvailable(pod, minReadySeconds, now) === 0
}

/** When the next of them becomes available by time alone; undefined where none will. */
export function nextAvailable(pods: readonly Pod[], minReadySeconds: number, now: number): number | undefined {
  const waits = pods.flatMap(pod => untilAvailable(pod, minReadySeconds, now) || [])
  return waits.length > 0 ? Math.min(...waits) : undefined
}

export function podOf(template: Template | undefined, metadata: Draft['metadata']): Draft<V1Pod> {
  const given = template?.metadata
  return {
    metadata: {
      ...metadata,
      labels: { ...given?.labels, ...metadata.labels },
      ...(given?.annotations || metadata.annotations
        ? { annotations: { ...given?.annotations, ...metadata.annotations } }
        : {}),
      ...(given?.finalizers || metadata.finalizers
        ? { finalizers: [...(given?.finalizers ?? []), ...(metadata.finalizers ?? [])] }
        : {}),
    },
    ...(template?.spec ? { spec: template.spec } : {}),
  } as Draft<V1Pod>
}

/** Which of two pods is the better one to lose, as ReplicaSets and Jobs choose: first negative. */
export function byDispensability(now: number) {
  const rank = (pod: Pod): number[] => [
    pod.spec?.nodeName ? 1 : 0,
    ['Pending', 'Unknown', 'Running'].indexOf(pod.status?.phase ?? 'Pending'),
    isReady(pod) ? 1 : 0,
    Number(pod.metadata.annotations?.['controller.kubernetes.io/pod-deletion-cost'] ?? 0),
    // The longer it is ready, the dearer.
    isReady(pod) ? age(conditionOf(pod.status?.conditions, 'Ready')?.lastTransitionTime, now) : 0,
    -restarts(pod),
    age(pod.metadata.creationTimestamp, now),
  ]
  return (a: Pod, b: Pod): number => {
    const [left, right] = [rank(a), rank(b)]
    for (const [at, value] of left.entries()) {
      const difference = value - (right[at] ?? 0)
      if (difference !== 0) return difference
    }
    return a.metadata.name < b.metadata.name ? -1 : 1
  }
}

function age(time: string | undefined, now: number): number {
  return time ? now - Date.parse(time) : 0
}

function restarts(pod: Pod): number {
  return Math.max(0, ...(pod.status?.containerStatuses ?? []).map(one => one.restartCount))
}
