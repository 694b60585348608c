/**
 * What a DaemonSet needs next: one pod on each node where it belongs, updated a few at a time. Pure.
 */
import type { V1Pod } from '@kubernetes/client-node'
import type { Draft } from '../../../controller/kube/kind.ts'
import {
  hasFailed,
  hasSucceeded,
  isAvailable,
  isReady,
  isTerminating,
  nextAvailable,
  type Pod,
} from '../common/pods.ts'
import { shareOf } from '../common/shares.ts'
import { type DaemonSet, type Node, newPod, nodeOf, placeOn } from './placement.ts'

export interface Decision {
  readonly create: Draft<V1Pod>[]
  readonly remove: Pod[]
  readonly status: ReturnType<typeof statusOf>
  readonly after: number | undefined
}

interface Facts {
  readonly set: DaemonSet
  readonly nodes: readonly Node[]
  readonly pods: readonly Pod[]
  /** Of the template as it is now. */
  readonly hash: string
  readonly collisions: number
  readonly now: number
}

const revisionLabel = 'controller-revision-hash'

export function decideDaemonSet(facts: Facts): Decision {
  const { set, nodes, pods, hash, now } = facts
  const after = nextAvailable(pods, set.spec?.minReadySeconds ?? 0, now)
  const byNode = groupByNode(pods)
  const status = statusOf(facts, byNode)
  if (set.metadata.deletionTimestamp) return { create: [], remove: [], status, after }
  const create: Draft<V1Pod>[] = []
  const remove: Pod[] = []
  for (const node of nodes) {
    const { isWished, mayStay } = placeOn(set, node)
    const there = byNode.get(node.metadata.name) ?? []
    if (isWished && there.length === 0) create.push(newPod(set, node.metadata.name, hash))
    else if (mayStay) {
      remove.push(...there.filter(pod => !isTerminating(pod) && (hasFailed(pod) || hasSucceeded(pod))))
      const running = there.filter(pod => !isTerminating(pod) && !hasFailed(pod) && !hasSucceeded(pod))
      remove.push(...byAge(running).slice(1))
    } else remove.push(...there.filter(pod => !isTerminating(pod)))
  }
  const names = new Set(nodes.map(node => node.metadata.name))
  for (const [name, there] of byNode) if (!names.has(name)) remove.push(...there.filter(pod => !isTerminating(pod)))
  if (set.spec?.updateStrategy?.type !== 'OnDelete')
    remove.push(...outdated(facts, byNode, status.desiredNumberScheduled))
  return { create, remove: [...new Set(remove)], status, after }
}

/** Pods of older templates: those that are down already, and as many others as may be down. */
function outdated({ set, nodes, hash, now }: Facts, byNode: Map<string, Pod[]>, desired: number): Pod[] {
  const minReady = set.spec?.minReadySeconds ?? 0
  const most = Math.max(shareOf(set.spec?.updateStrategy?.rollingUpdate?.maxUnavailable ?? 1, desired, 'up'), 1)
  const down: Pod[] = []
  const candidates: Pod[] = []
  let unavailable = 0
  for (const node of nodes) {
    if (!placeOn(set, node).isWished) continue
    const [pod, ...more] = byAge((byNode.get(node.metadata.name) ?? []).filter(one => !isTerminating(one)))
    if (!pod || more.length > 0) unavailable++
    else if (isAvailable(pod, minReady, now)) {
      if (pod.metadata.labels?.[revisionLabel] !== hash) candidates.push(pod)
    } else {
      unavailable++
      if (pod.metadata.labels?.[revisionLabel] !== hash) down.push(pod)
    }
  }
  return [...down, ...candidates.slice(0, Math.max(most - unavailable, 0))]
}

function statusOf({ set, nodes, hash, collisions, now }: Facts, byNode: Map<string, Pod[]>) {
  const minReady = set.spec?.minReadySeconds ?? 0
  const counts = { desired: 0, current: 0, misplaced: 0, ready: 0, updated: 0, available: 0 }
  for (const node of nodes) {
    const there = byNode.get(node.metadata.name) ?? []
    if (!placeOn(set, node).isWished) {
      if (there.length > 0) counts.misplaced++
      continue
    }
    counts.desired++
    const [pod] = byAge(there)
    if (!pod) continue
    counts.current++
    if (isReady(pod)) counts.ready++
    if (isAvailable(pod, minReady, now)) counts.available++
    if (pod.metadata.labels?.[revisionLabel] === hash) counts.updated++
  }
  return {
    observedGeneration: set.metadata.generation,
    desiredNumberScheduled: counts.desired,
    currentNumberScheduled: counts.current,
    numberMisscheduled: counts.misplaced,
    numberReady: counts.ready,
    updatedNumberScheduled: counts.updated || undefined,
    numberAvailable: counts.available || undefined,
    numberUnavailable: counts.desired - counts.available || undefined,
    collisionCount: collisions || undefined,
  }
}

function groupByNode(pods: readonly Pod[]): Map<string, Pod[]> {
  const groups = new Map<string, Pod[]>()
  for (const pod of pods) {
    const node = nodeOf(pod)
    if (node !== undefined) groups.set(node, [...(groups.get(node) ?? []), pod])
  }
  return groups
}

function byAge(pods: readonly Pod[]): Pod[] {
  const age = (pod: Pod) => `${pod.spec?.nodeName ? 0 : 1} ${pod.metadata.creationTimestamp} ${pod.metadata.name}`
  return pods.toSorted((a, b) => (age(a) < age(b) ? -1 : 1))
}
