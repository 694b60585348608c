/**
 * The sums of a Deployment: how many pods its ReplicaSets may have, old and new, at each step. Pure.
 */
import type { V1Deployment } from '@kubernetes/client-node'
import type { Snapshot } from '../../../controller/kube/kind.ts'
import { shareOf } from '../common/shares.ts'
import type { ReplicaSet } from '../replicaset/decide.ts'

export type Deployment = Snapshot<V1Deployment>

export const annotations = {
  revision: 'deployment.kubernetes.io/revision',
  history: 'deployment.kubernetes.io/revision-history',
  desired: 'deployment.kubernetes.io/desired-replicas',
  most: 'deployment.kubernetes.io/max-replicas',
} as const

export const hashLabel = 'pod-template-hash'

/** How many replicas each ReplicaSet is to have, by name: those that change. */
export type Scaling = Map<string, number>

export const wishedOf = (deployment: Deployment) => deployment.spec?.replicas ?? 1
export const sizeOf = (set: ReplicaSet) => set.spec?.replicas ?? 1
export const sum = (sets: readonly ReplicaSet[], of: (set: ReplicaSet) => number) =>
  sets.reduce((total, set) => total + of(set), 0)
export const availableOf = (set: ReplicaSet) => set.status?.availableReplicas ?? 0
export const revisionOf = (set: ReplicaSet) => Number(set.metadata.annotations?.[annotations.revision] ?? 0)
export const isRolling = (deployment: Deployment) => deployment.spec?.strategy?.type !== 'Recreate'

export function limitsOf(deployment: Deployment): { surge: number; unavailable: number } {
  if (!isRolling(deployment)) return { surge: 0, unavailable: 0 }
  const wished = wishedOf(deployment)
  const { maxSurge = '25%', maxUnavailable = '25%' } = deployment.spec?.strategy?.rollingUpdate ?? {}
  const surge = shareOf(maxSurge, wished, 'up')
  const unavailable = shareOf(maxUnavailable, wished, 'down')
  // Both 0 would be a standstill.
  return { surge, unavailable: Math.min(surge === 0 && unavailable === 0 ? 1 : unavailable, Math.max(wished, 0)) }
}

/** How big the new ReplicaSet may be now. */
export function newSize(deployment: Deployment, all: readonly ReplicaSet[], size: number): number {
  const wished = wishedOf(deployment)
  if (!isRolling(deployment)) return wished
  if (size > wished) return wished
  const room = wished + limitsOf(deployment).surge - sum(all, sizeOf)
  return room <= 0 ? size : size + Math.min(room, wished - size)
}

/** How far the old ReplicaSets may shrink now: first what is broken, then what availability leaves over. */
export function shrinkOld(deployment: Deployment, old: readonly ReplicaSet[], fresh: ReplicaSet): Scaling {
  const scaling: Scaling = new Map()
  if (sum(old, sizeOf) === 0) return scaling
  const all = [...old, fresh]
  const least = wishedOf(deployment) - limitsOf(deployment).unavailable
  const freshUnavailable = sizeOf(fresh) - availableOf(fresh)
  let room = sum(all, sizeOf) - least - freshUnavailable
  if (room <= 0) return scaling
  const byAge = old.toSorted((a, b) => (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? -1 : 1))
  const sizes = new Map(byAge.map(set => [set.metadata.name, sizeOf(set)]))
  for (const set of byAge) {
    const broken = Math.min(room, sizeOf(set) - availableOf(set))
    if (broken <= 0) continue
    room -= broken
    sizes.set(set.metadata.name, sizeOf(set) - broken)
  }
  let spare = sum(all, availableOf) - least
  for (const set of byAge) {
    const size = sizes.get(set.metadata.name) ?? 0
    const fewer = Math.min(size, Math.max(spare, 0))
    spare -= fewer
    sizes.set(set.metadata.name, size - fewer)
  }
  for (const set of byAge) {
    const size = sizes.get(set.metadata.name) ?? 0
    if (size !== sizeOf(set)) scaling.set(set.metadata.name, size)
  }
  return scaling
}

/** A new wish for the number of replicas in the middle of a rollout: each ReplicaSet gets its share. */
export function spread(deployment: Deployment, fresh: ReplicaSet | undefined, old: readonly ReplicaSet[]): Scaling {
  const scaling: Scaling = new Map()
  const wished = wishedOf(deployment)
  const all = fresh ? [...old, fresh] : [...old]
  const active = all.filter(set => sizeOf(set) > 0)
  const latest = fresh ?? all.toSorted((a, b) => revisionOf(b) - revisionOf(a))[0]
  const only = active.length > 1 ? undefined : (active[0] ?? latest)
  if (only) {
    scaling.set(only.metadata.name, wished)
    return scaling
  }
  if (fresh && isSaturated(deployment, fresh)) {
    for (const set of old) if (sizeOf(set) > 0) scaling.set(set.metadata.name, 0)
    return scaling
  }
  if (!isRolling(deployment)) return scaling
  const allowed = wished > 0 ? wished + limitsOf(deployment).surge : 0
  const toAdd = allowed - sum(active, sizeOf)
  // The bigger first, and among equals the newer when growing, the older when shrinking.
  const order = active.toSorted((a, b) => {
    const older = a.metadata.creationTimestamp < b.metadata.creationTimestamp ? -1 : 1
    return sizeOf(b) - sizeOf(a) || (toAdd > 0 ? -older : older)
  })
  let added = 0
  const sizes = order.map(set => {
    const share = toAdd === 0 ? 0 : shareOfSet(deployment, set, allowed, toAdd, added)
    added += share
    return sizeOf(set) + share
  })
  for (const [at, set] of order.entries()) {
    const leftOver = at === 0 ? toAdd - added : 0
    scaling.set(set.metadata.name, Math.max((sizes[at] ?? 0) + leftOver, 0))
  }
  return scaling
}

function shareOfSet(deployment: Deployment, set: ReplicaSet, allowed: number, toAdd: number, added: number): number {
  const size = sizeOf(set)
  const before = Number(set.metadata.annotations?.[annotations.most] ?? 0) || (deployment.status?.replicas ?? size)
  const exact = wishedOf(deployment) === 0 ? -size : Math.round((size * allowed) / Math.max(before, 1)) - size
  return toAdd > 0 ? Math.min(exact, toAdd - added) : Math.max(exact, toAdd - added)
}

function isSaturated(deployment: Deployment, set: ReplicaSet): boolean {
  const wished = wishedOf(deployment)
  const desired = Number(set.metadata.annotations?.[annotations.desired])
  return sizeOf(set) === wished && desired === wished && availableOf(set) === wished
}

/** The number of replicas was changed since the ReplicaSets were last scaled. */
export function isScalingEvent(deployment: Deployment, all: readonly ReplicaSet[]): boolean {
  return all.some(set => {
    const desired = set.metadata.annotations?.[annotations.desired]
    return sizeOf(set) > 0 && desired !== undefined && Number(desired) !== wishedOf(deployment)
  })
}
