/**
 * What a StatefulSet needs next: pods made in order or at once, gone in the reverse order, and updated from the highest down.
 *
 * Guarantees: with OrderedReady, no pod is made or deleted before those in front of it are ready; a pod is never made while one of its
 * name is there; what an update takes down stays within maxUnavailable. Pure.
 */
import type { V1PersistentVolumeClaim, V1Pod } from '@kubernetes/client-node'
import type { Draft, OwnerReference } from '../../../controller/kube/kind.ts'
import {
  hasFailed,
  hasSucceeded,
  isAvailable,
  isReady,
  isTerminating,
  nextAvailable,
  type Pod,
} from '../common/pods.ts'
import type { History, Revision } from '../common/revisions.ts'
import { dispensable, templateOf } from '../common/revisions.ts'
import { shareOf } from '../common/shares.ts'
import {
  type Claim,
  claimName,
  claimOwners,
  identityLabels,
  newClaims,
  newPod,
  ordinalOf,
  revisionLabel,
  type StatefulSet,
} from './identity.ts'

export type Action =
  | { readonly do: 'createClaim'; readonly claim: Draft<V1PersistentVolumeClaim> }
  | { readonly do: 'ownClaim'; readonly claim: Claim; readonly owners: readonly OwnerReference[] }
  | { readonly do: 'createPod'; readonly pod: Draft<V1Pod> }
  | { readonly do: 'labelPod'; readonly pod: Pod; readonly labels: Record<string, string> }
  | { readonly do: 'deletePod'; readonly pod: Pod; readonly why: 'failed' | 'scaled' | 'outdated' }
  | { readonly do: 'deleteRevision'; readonly revision: Revision }

export interface Decision {
  readonly actions: Action[]
  readonly status: ReturnType<typeof statusOf>
  /** Milliseconds after which a pod will have been ready for long enough. */
  readonly after: number | undefined
}

export interface Facts {
  readonly set: StatefulSet
  readonly pods: readonly Pod[]
  readonly revisions: readonly Revision[]
  readonly history: History
  readonly claims: readonly Claim[]
  readonly now: number
}

interface Slot {
  readonly ordinal: number
  readonly pod: Pod | undefined
}

export function decideStatefulSet(facts: Facts): Decision {
  const { set, pods, now } = facts
  const minReady = set.spec?.minReadySeconds ?? 0
  const current = currentRevision(facts)
  const status = statusOf(facts, current.name)
  const after = nextAvailable(pods, minReady, now)
  const isLeaving = set.metadata.deletionTimestamp !== undefined
  const actions = isLeaving ? [] : [...podActions(facts, current), ...prune(facts, current.name)]
  return { actions, status, after }
}

/** The one in the status if it is still there; else the update revision is the current one. */
function currentRevision({ set, revisions, history }: Facts) {
  const current = revisions.find(one => one.metadata.name === set.status?.currentRevision)
  return current ? { name: current.metadata.name, template: templateOf(current) } : history.update
}

function podActions(facts: Facts, current: { name: string; template: History['update']['template'] }): Action[] {
  const { set, pods, history, now } = facts
  const { spec } = set
  const start = spec?.ordinals?.start ?? 0
  const count = spec?.replicas ?? 1
  const isOrdered = spec?.podManagementPolicy !== 'Parallel'
  const minReady = spec?.minReadySeconds ?? 0
  const isFit = (pod: Pod) => isHealthy(pod) && isAvailable(pod, minReady, now)
  const byOrdinal = new Map(pods.flatMap(pod => named(set, pod)))
  const slots: Slot[] = Array.from({ length: count }, (_, at) => ({
    ordinal: start + at,
    pod: byOrdinal.get(start + at),
  }))
  const condemned = [...byOrdinal]
    .filter(([ordinal]) => ordinal < start || ordinal >= start + count)
    .sort(([a], [b]) => b - a)
  const partition = spec?.updateStrategy?.rollingUpdate?.partition ?? 0
  const isRolling = spec?.updateStrategy?.type !== 'OnDelete'
  const actions: Action[] = []
  for (const { ordinal, pod } of slots) {
    if (pod && (hasFailed(pod) || hasSucceeded(pod))) {
      if (!isTerminating(pod)) actions.push({ do: 'deletePod', pod, why: 'failed' })
      if (isOrdered) return actions
      continue
    }
    if (!pod) {
      const version = isRolling && ordinal < start + partition ? current : history.update
      actions.push(...missingClaims(facts, ordinal))
      actions.push({ do: 'createPod', pod: newPod(set, ordinal, version.template, version.name) })
      if (isOrdered) return actions
      continue
    }
    actions.push(
      ...missingClaims(facts, ordinal),
      ...reclaim(facts, ordinal, pod, false),
      ...relabel(set, ordinal, pod),
    )
    if (isOrdered && !isFit(pod)) return actions
  }
  for (const [ordinal, pod] of condemned) actions.push(...reclaim(facts, ordinal, pod, true))
  const lowestUnfit = [...slots.map(({ pod }) => pod), ...condemned.map(([, pod]) => pod).reverse()].find(
    pod => pod && !isHealthy(pod),
  )
  for (const [, pod] of condemned) {
    if (isTerminating(pod)) {
      if (isOrdered) return actions
      continue
    }
    if (isOrdered && !isFit(pod) && pod !== lowestUnfit) return actions
    actions.push({ do: 'deletePod', pod, why: 'scaled' })
    if (isOrdered) return actions
  }
  if (isRolling) actions.push(...outdated(facts, slots, partition, isFit))
  return actions
}

/** From the highest ordinal down to the partition: what is not of the update revision, as far as maxUnavailable allows. */
function outdated(
  { set, history }: Facts,
  slots: readonly Slot[],
  partition: number,
  isFit: (pod: Pod) => boolean,
): Action[] {
  const most = set.spec?.updateStrategy?.rollingUpdate?.maxUnavailable ?? 1
  let left = Math.max(shareOf(most, slots.length, 'up'), 1)
  for (const { pod } of slots) if (!pod || !isFit(pod)) left--
  const actions: Action[] = []
  for (const { pod } of slots.slice(partition).reverse()) {
    if (!pod || isTerminating(pod) || pod.metadata.labels?.[revisionLabel] === history.update.name) continue
    // One that is down already takes nothing more down.
    if (isFit(pod) && left-- <= 0) break
    actions.push({ do: 'deletePod', pod, why: 'outdated' })
  }
  return actions
}

function missingClaims({ set, claims }: Facts, ordinal: number): Action[] {
  const there = new Set(claims.map(({ metadata }) => metadata.name))
  return newClaims(set, ordinal)
    .filter(({ metadata }) => !there.has(metadata.name ?? ''))
    .map(claim => ({ do: 'createClaim', claim }))
}

/** Claims whose owners are not what the policy says. Owners that are nothing of ours stay. */
function reclaim({ set, claims }: Facts, ordinal: number, pod: Pod, isCondemned: boolean): Action[] {
  if (!set.spec?.persistentVolumeClaimRetentionPolicy) return []
  const names = (set.spec?.volumeClaimTemplates ?? []).map(one => claimName(set, one.metadata?.name ?? '', ordinal))
  const wished = claimOwners(set, pod, isCondemned)
  return claims.flatMap((claim): Action[] => {
    if (!names.includes(claim.metadata.name)) return []
    const owners = claim.metadata.ownerReferences ?? []
    const ours = owners.filter(({ uid }) => uid === set.metadata.uid || uid === pod.metadata.uid)
    if (ours.map(({ uid }) => uid).join() === wished.map(({ uid }) => uid).join()) return []
    const others = owners.filter(one => !ours.includes(one)) as OwnerReference[]
    return [{ do: 'ownClaim', claim, owners: [...others, ...wished] }]
  })
}

function relabel(set: StatefulSet, ordinal: number, pod: Pod): Action[] {
  const labels = identityLabels(set, ordinal)
  const isRight = Object.entries(labels).every(([name, value]) => pod.metadata.labels?.[name] === value)
  return isRight || isTerminating(pod) ? [] : [{ do: 'labelPod', pod, labels }]
}

function prune({ set, pods, revisions, history }: Facts, current: string): Action[] {
  const used = pods.flatMap(pod => pod.metadata.labels?.[revisionLabel] ?? [])
  const live = new Set([current, history.update.name, ...used])
  return dispensable(revisions, live, set.spec?.revisionHistoryLimit ?? 10).map(revision => ({
    do: 'deleteRevision',
    revision,
  }))
}

function statusOf({ set, pods, history, now }: Facts, current: string) {
  const members = pods.filter(pod => ordinalOf(set, pod) !== undefined)
  const minReady = set.spec?.minReadySeconds ?? 0
  const count = (is: (pod: Pod) => boolean) => members.filter(is).length
  const of = (revision: string) => (pod: Pod) =>
    !isTerminating(pod) && pod.metadata.labels?.[revisionLabel] === revision
  const wished = set.spec?.replicas ?? 1
  const [replicas, updated] = [members.length, count(of(history.update.name))]
  const ready = count(pod => pod.status?.phase === 'Running' && isReady(pod))
  const isRolling = set.spec?.updateStrategy?.type !== 'OnDelete'
  const isComplete = isRolling && updated === wished && ready === wished && replicas === wished
  return {
    observedGeneration: set.metadata.generation,
    replicas,
    availableReplicas: count(pod => pod.status?.phase === 'Running' && isAvailable(pod, minReady, now)),
    readyReplicas: ready || undefined,
    currentReplicas: (isComplete ? updated : count(of(current))) || undefined,
    updatedReplicas: updated || undefined,
    currentRevision: isComplete ? history.update.name : current,
    updateRevision: history.update.name,
    collisionCount: history.collisions,
  }
}

function isHealthy(pod: Pod): boolean {
  return pod.status?.phase === 'Running' && isReady(pod) && !isTerminating(pod)
}

function named(set: StatefulSet, pod: Pod): [number, Pod][] {
  const ordinal = ordinalOf(set, pod)
  return ordinal === undefined ? [] : [[ordinal, pod]]
}
