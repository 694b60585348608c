/**
 * How many of a budget's pods may be disrupted now. Pure.
 */
import type { V1PodDisruptionBudget } from '@kubernetes/client-node'
import type { Snapshot } from '../../../controller/kube/kind.ts'
import { timeOf } from '../../../shared/clock.ts'
import { withCondition } from '../common/conditions.ts'
import { hasFailed, hasSucceeded, isReady, isTerminating, type Pod } from '../common/pods.ts'
import { shareOf } from '../common/shares.ts'

export type Budget = Snapshot<V1PodDisruptionBudget>

/** What is known of a pod's controller: how many it wishes; undefined where that cannot be told. */
export type Scales = ReadonlyMap<string, { readonly wished: number } | undefined>

/** An eviction that was granted, and has not been seen yet. */
const patience = 2 * 60_000

export function decideBudget(budget: Budget, pods: readonly Pod[], scales: Scales, now: number) {
  const expected = expectation(budget, pods, scales)
  const disrupted = disruptedPods(budget, pods, now)
  const conditionBase = { type: 'DisruptionAllowed', observedGeneration: budget.metadata.generation }
  if ('failure' in expected) {
    const conditions = withCondition(
      budget.status?.conditions,
      { ...conditionBase, status: 'False', reason: 'SyncFailed', message: expected.failure },
      timeOf(now),
    )
    return {
      status: { disruptionsAllowed: 0, observedGeneration: budget.metadata.generation, conditions },
      after: undefined,
    }
  }
  const { pods: expectedPods, healthy: desiredHealthy } = expected
  const isCounted = (pod: Pod) => !isTerminating(pod) && !(pod.metadata.name in disrupted) && isReady(pod)
  const currentHealthy = pods.filter(isCounted).length
  const allowed = expectedPods <= 0 ? 0 : Math.max(currentHealthy - desiredHealthy, 0)
  const condition =
    allowed > 0
      ? { ...conditionBase, status: 'True', reason: 'SufficientPods', message: '' }
      : { ...conditionBase, status: 'False', reason: 'InsufficientPods', message: '' }
  const times = Object.values(disrupted).map(time => Date.parse(time) + patience - now)
  return {
    status: {
      observedGeneration: budget.metadata.generation,
      expectedPods,
      desiredHealthy,
      currentHealthy,
      disruptionsAllowed: allowed,
      disruptedPods: Object.keys(disrupted).length > 0 ? disrupted : undefined,
      conditions: withCondition(budget.status?.conditions, condition, timeOf(now)),
    },
    after: times.length > 0 ? Math.max(Math.min(...times), 0) : undefined,
  }
}

type Expectation = { pods: number; healthy: number } | { failure: string }

function expectation({ spec }: Budget, pods: readonly Pod[], scales: Scales): Expectation {
  if (spec?.maxUnavailable !== undefined) {
    const total = totalScale(pods, scales)
    if (typeof total === 'string') return { failure: total }
    return { pods: total, healthy: Math.max(total - shareOf(spec.maxUnavailable, total, 'up'), 0) }
  }
  if (typeof spec?.minAvailable === 'number') return { pods: pods.length, healthy: spec.minAvailable }
  if (spec?.minAvailable === undefined) return { pods: 0, healthy: 0 }
  const total = totalScale(pods, scales)
  if (typeof total === 'string') return { failure: total }
  return { pods: total, healthy: shareOf(spec.minAvailable, total, 'up') }
}

/** The sum of what their controllers wish, or why there is none. */
function totalScale(pods: readonly Pod[], scales: Scales): number | string {
  const controllers = new Map<string, number>()
  for (const { metadata } of pods) {
    const owner = metadata.ownerReferences?.find(reference => reference.controller)
    if (!owner) return `found no controller ref for pod ${JSON.stringify(metadata.name)}`
    const scale = scales.get(owner.uid)
    if (!scale) return `found no controllers for pod ${JSON.stringify(metadata.name)}`
    controllers.set(owner.uid, scale.wished)
  }
  return [...controllers.values()].reduce((total, wished) => total + wished, 0)
}

/** Those still on their way: not gone, not deleted, and not for too long. */
function disruptedPods(budget: Budget, pods: readonly Pod[], now: number): Record<string, string> {
  const kept = Object.entries(budget.status?.disruptedPods ?? {}).filter(([name, time]) => {
    const pod = pods.find(one => one.metadata.name === name)
    return pod && !isTerminating(pod) && Date.parse(time) + patience > now
  })
  return Object.fromEntries(kept)
}

export function isExpected(pod: Pod): boolean {
  return !hasFailed(pod) && !hasSucceeded(pod)
}
