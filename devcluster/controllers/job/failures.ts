/**
 * What the failures of a Job's pods mean: which count, whether they end it, how long to wait before the next try. Pure.
 */
import type { V1Job } from '@kubernetes/client-node'
import type { Snapshot } from '../../../controller/kube/kind.ts'
import { hasFailed, hasSucceeded, isTerminating, type Pod } from '../common/pods.ts'

export type Job = Snapshot<V1Job>

export interface Verdict {
  readonly reason: string
  readonly message: string
}

/** What the pod failure policy says of one that failed. */
export function ruled(job: Job, pod: Pod): { action: 'FailJob' | 'Ignore' | 'Count'; rule: number } {
  for (const [rule, { action, onExitCodes, onPodConditions }] of (job.spec?.podFailurePolicy?.rules ?? []).entries()) {
    const isMet = onExitCodes
      ? exits(pod, onExitCodes.containerName).some(
          ({ code }) => onExitCodes.values.includes(code) === (onExitCodes.operator === 'In'),
        )
      : (onPodConditions ?? []).some(({ type, status = 'True' }) =>
          pod.status?.conditions?.some(one => one.type === type && one.status === status),
        )
    if (isMet && (action === 'FailJob' || action === 'Ignore' || action === 'Count')) return { action, rule }
  }
  return { action: 'Count', rule: -1 }
}

function exits(pod: Pod, container: string | undefined): { name: string; code: number }[] {
  const all = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
  return all.flatMap(({ name, state }) => {
    const code = state?.terminated?.exitCode
    return code === undefined || code === 0 || (container && name !== container) ? [] : [{ name, code }]
  })
}

/** Failed, or deleted before it could end. */
export function countsAsFailed(job: Job, pod: Pod): boolean {
  if (hasFailed(pod)) return true
  const replacement = job.spec?.podReplacementPolicy ?? (job.spec?.podFailurePolicy ? 'Failed' : 'TerminatingOrFailed')
  return replacement !== 'Failed' && isTerminating(pod) && !hasSucceeded(pod)
}

/** Why the whole Job fails; undefined while it does not. */
export function verdictOf(job: Job, pods: readonly Pod[], failed: number, now: number): Verdict | undefined {
  for (const pod of pods.filter(hasFailed)) {
    const { action, rule } = ruled(job, pod)
    if (action !== 'FailJob') continue
    const exit = exits(pod, undefined)[0]
    const what = exit
      ? `Container ${exit.name} for pod ${pod.metadata.namespace}/${pod.metadata.name} failed with exit code ${exit.code}`
      : `Pod ${pod.metadata.namespace}/${pod.metadata.name} has condition`
    return { reason: 'PodFailurePolicy', message: `${what} matching FailJob rule at index ${rule}` }
  }
  const limit = job.spec?.backoffLimit ?? 6
  const isRestarting = job.spec?.template.spec?.restartPolicy === 'OnFailure'
  const restarts = isRestarting ? restartsOf(pods) : 0
  if (failed > limit || (isRestarting && (limit === 0 ? restarts > 0 : restarts >= limit)))
    return { reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' }
  const deadline = untilDeadline(job, now)
  if (deadline !== undefined && deadline <= 0)
    return { reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' }
  return undefined
}

function restartsOf(pods: readonly Pod[]): number {
  return pods
    .filter(pod => pod.status?.phase === 'Running' || pod.status?.phase === 'Pending')
    .flatMap(pod => [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])])
    .reduce((total, { restartCount }) => total + restartCount, 0)
}

export function untilDeadline(job: Job, now: number): number | undefined {
  const seconds = job.spec?.activeDeadlineSeconds
  const since = job.status?.startTime
  return seconds === undefined || since === undefined || job.spec?.suspend
    ? undefined
    : Date.parse(since) + seconds * 1000 - now
}

const first = 10_000
const longest = 600_000

/** Milliseconds before the next pod may be made: the longer, the more have failed since the last success. */
export function backoff(pods: readonly Pod[], now: number): number {
  const lastSuccess = Math.max(0, ...pods.filter(hasSucceeded).map(endOf))
  const ends = pods
    .filter(hasFailed)
    .map(endOf)
    .filter(end => end >= lastSuccess)
  if (ends.length === 0) return 0
  const wait = Math.min(first * 2 ** (ends.length - 1), longest)
  return Math.max(Math.max(...ends) + wait - now, 0)
}

/** When its last container ended; else the best that is known. */
function endOf(pod: Pod): number {
  const ends = (pod.status?.containerStatuses ?? []).flatMap(
    ({ state }) => Date.parse(state?.terminated?.finishedAt ?? '') || [],
  )
  if (ends.length > 0) return Math.max(...ends)
  const times = (pod.status?.conditions ?? []).flatMap(one => Date.parse(one.lastTransitionTime ?? '') || [])
  return times.length > 0 ? Math.max(...times) : Date.parse(pod.metadata.creationTimestamp)
}
