/**
 * What a Deployment says of itself: sums of its ReplicaSets, and whether it gets on. Pure.
 */
import type { V1DeploymentCondition, V1DeploymentStatus } from '@kubernetes/client-node'
import type { Frozen, Wire } from '../../../controller/kube/kind.ts'
import { timeOf } from '../../../shared/clock.ts'
import { conditionOf } from '../common/conditions.ts'
import type { ReplicaSet } from '../replicaset/decide.ts'
import { availableOf, type Deployment, limitsOf, sizeOf, sum, wishedOf } from './replicas.ts'

type Condition = Frozen<Wire<V1DeploymentCondition>>
type Status = Frozen<Wire<V1DeploymentStatus>>

/** No deadline at all, as the API writes it. */
const never = 2 ** 31 - 1

interface Facts {
  readonly deployment: Deployment
  readonly fresh: ReplicaSet | undefined
  readonly old: readonly ReplicaSet[]
  readonly collisions: number
  readonly now: number
  /** What has just become of the fresh ReplicaSet, if anything. */
  readonly news?:
    | { readonly reason: 'NewReplicaSetCreated' | 'FoundNewReplicaSet'; readonly message: string }
    | undefined
}

export function statusOfDeployment(facts: Facts) {
  const { deployment, fresh, old, now } = facts
  const all = fresh ? [...old, fresh] : [...old]
  const of = (set: ReplicaSet, field: 'replicas' | 'readyReplicas' | 'terminatingReplicas') => set.status?.[field] ?? 0
  const available = sum(all, availableOf)
  const counts = {
    observedGeneration: deployment.metadata.generation,
    replicas: sum(all, set => of(set, 'replicas')) || undefined,
    updatedReplicas: (fresh ? of(fresh, 'replicas') : 0) || undefined,
    readyReplicas: sum(all, set => of(set, 'readyReplicas')) || undefined,
    availableReplicas: available || undefined,
    unavailableReplicas: Math.max(sum(all, sizeOf) - available, 0) || undefined,
    terminatingReplicas: sum(all, set => of(set, 'terminatingReplicas')),
    collisionCount: facts.collisions || undefined,
  }
  let conditions = availability(deployment, available, now)
  conditions = progress(facts, counts, conditions)
  const failure = [fresh, ...old].flatMap(set => conditionOf(set?.status?.conditions, 'ReplicaFailure') ?? [])[0]
  const others = conditions.filter(({ type }) => type !== 'ReplicaFailure')
  if (failure) {
    const { status, reason, message } = failure
    conditions = put(conditions, { type: 'ReplicaFailure', status, reason, message }, now)
  } else conditions = others
  return { ...counts, conditions }
}

function availability(deployment: Deployment, available: number, now: number): Condition[] {
  const isEnough = available >= wishedOf(deployment) - limitsOf(deployment).unavailable
  const condition = isEnough
    ? { status: 'True', reason: 'MinimumReplicasAvailable', message: 'Deployment has minimum availability.' }
    : {
        status: 'False',
        reason: 'MinimumReplicasUnavailable',
        message: 'Deployment does not have minimum availability.',
      }
  return put([...(deployment.status?.conditions ?? [])], { type: 'Available', ...condition }, now)
}

function progress(
  { deployment, fresh, now, news }: Facts,
  counts: Partial<Status>,
  conditions: Condition[],
): Condition[] {
  const deadline = deadlineOf(deployment)
  if (deadline === undefined) return conditions.filter(({ type }) => type !== 'Progressing')
  const type = 'Progressing'
  let current = conditionOf(conditions, type)
  let list = conditions
  if (news && (news.reason === 'NewReplicaSetCreated' || !current))
    list = put(list, { type, status: 'True', ...news }, now)
  if (deployment.spec?.paused) {
    if (current?.reason === 'DeploymentPaused') return list
    return put(list, { type, status: 'Unknown', reason: 'DeploymentPaused', message: 'Deployment is paused' }, now)
  }
  if (current?.reason === 'DeploymentPaused')
    list = put(list, { type, status: 'Unknown', reason: 'DeploymentResumed', message: 'Deployment is resumed' }, now)
  current = conditionOf(list, type)
  const { replicas = 0, updatedReplicas: updated = 0 } = counts
  if (replicas === updated && current?.reason === 'NewReplicaSetAvailable') return list
  const what = fresh ? `ReplicaSet "${fresh.metadata.name}"` : `Deployment "${deployment.metadata.name}"`
  if (isComplete(deployment, counts))
    return put(
      list,
      { type, status: 'True', reason: 'NewReplicaSetAvailable', message: `${what} has successfully progressed.` },
      now,
    )
  if (getsOn(deployment.status ?? {}, counts)) {
    const condition = { type, status: 'True', reason: 'ReplicaSetUpdated', message: `${what} is progressing.` }
    // Also where it says the same as before: the deadline begins anew.
    const since = current?.status === 'True' ? current.lastTransitionTime : timeOf(now)
    const others = list.filter(one => one.type !== type)
    return [...others, { ...condition, lastUpdateTime: timeOf(now), lastTransitionTime: since }]
  }
  if (isLate(current, deadline, now))
    return put(
      list,
      { type, status: 'False', reason: 'ProgressDeadlineExceeded', message: `${what} has timed out progressing.` },
      now,
    )
  return list
}

export function isComplete(deployment: Deployment, counts: Partial<Status>): boolean {
  const wished = wishedOf(deployment)
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = counts
  return updatedReplicas === wished && replicas === wished && availableReplicas === wished
}

function getsOn(before: Partial<Status>, after: Partial<Status>): boolean {
  const old = (status: Partial<Status>) => (status.replicas ?? 0) - (status.updatedReplicas ?? 0)
  return (
    (after.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) ||
    old(after) < old(before) ||
    (after.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (after.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  )
}

/** Milliseconds; undefined for none. */
function deadlineOf(deployment: Deployment): number | undefined {
  const seconds = deployment.spec?.progressDeadlineSeconds
  return seconds === undefined || seconds === never ? undefined : seconds * 1000
}

function isLate(current: Condition | undefined, deadline: number, now: number): boolean {
  if (!current || current.reason === 'NewReplicaSetAvailable') return false
  if (current.reason === 'ProgressDeadlineExceeded') return true
  return Date.parse(current.lastUpdateTime ?? '') + deadline < now
}

/** Milliseconds until it is late, if nothing happens; undefined where it cannot be. */
export function untilLate(deployment: Deployment, conditions: readonly Condition[], now: number): number | undefined {
  const deadline = deadlineOf(deployment)
  const current = conditionOf(conditions, 'Progressing')
  const isSettled = current?.reason === 'NewReplicaSetAvailable' || current?.reason === 'ProgressDeadlineExceeded'
  if (deadline === undefined || !current || isSettled || deployment.spec?.paused) return undefined
  return Math.max(Date.parse(current.lastUpdateTime ?? '') + deadline - now, 0) + 1000
}

/** As Deployments do it: one that says the same stays as it is, times and all. */
function put(
  conditions: readonly Condition[],
  condition: Omit<Condition, 'lastTransitionTime' | 'lastUpdateTime'>,
  now: number,
): Condition[] {
  const old = conditionOf(conditions, condition.type)
  if (old?.status === condition.status && old.reason === condition.reason) return [...conditions]
  const since = old?.status === condition.status ? old.lastTransitionTime : timeOf(now)
  const others = conditions.filter(one => one.type !== condition.type)
  return [...others, { ...condition, lastUpdateTime: timeOf(now), lastTransitionTime: since }]
}
