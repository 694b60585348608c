/**
 * What a Job needs next, and what it says of itself.
 *
 * Guarantees: each pod's end is counted exactly once, whatever is interrupted when: it is noted in the status first, then its finalizer is taken, then
 * the note becomes a count. A Job that has ended stays as it is. Pure.
 */
import type { V1JobCondition, V1Pod } from '@kubernetes/client-node'
import { controllerReference } from '../../../controller/kube/cached.ts'
import type { Draft, Frozen, Wire } from '../../../controller/kube/kind.ts'
import { timeOf } from '../../../shared/clock.ts'
import { conditionOf, isTrue } from '../common/conditions.ts'
import {
  byDispensability,
  hasFailed,
  hasSucceeded,
  isActive,
  isReady,
  isTerminating,
  type Pod,
  podOf,
} from '../common/pods.ts'
import { backoff, countsAsFailed, type Job, ruled, untilDeadline, type Verdict, verdictOf } from './failures.ts'
import { formatIndexes, indexKey, parseIndexes } from './indexes.ts'

export const tracking = 'batch.kubernetes.io/job-tracking'
type Condition = Frozen<Wire<V1JobCondition>>

export interface Decision {
  readonly status: Record<string, unknown>
  /** Their end is noted: the finalizer may go. After the status is written. */
  readonly release: Pod[]
  readonly create: Draft<V1Pod>[]
  readonly remove: Pod[]
  /** The Job itself has outlived its time. */
  readonly expire: boolean
  readonly after: number | undefined
}

export function decideJob(job: Job, pods: readonly Pod[], now: number): Decision {
  const before = job.status ?? {}
  const at = timeOf(now)
  const release = pods.filter(pod => pod.metadata.finalizers?.includes(tracking))
  if (isTrue(before.conditions, 'Complete') || isTrue(before.conditions, 'Failed')) {
    const left = untilExpired(job, now)
    return {
      status: {},
      release: release.filter(hasEnded),
      create: [],
      remove: [],
      expire: left !== undefined && left <= 0,
      after: left,
    }
  }
  const isIndexed = job.spec?.completionMode === 'Indexed'
  const counted = count(job, pods, isIndexed)
  let conditions = [...(before.conditions ?? [])]
  const running = pods.filter(isActive)
  const isSuspended = job.spec?.suspend === true
  const startTime = isSuspended ? undefined : (before.startTime ?? at)
  const completions = job.spec?.completions
  const parallelism = job.spec?.parallelism ?? 1
  const verdict =
    ongoing(conditions, 'FailureTarget') ?? verdictOf(job, pods, counted.failed + counted.uncountedFailed.length, now)
  const isReached =
    ongoing(conditions, 'SuccessCriteriaMet') !== undefined ||
    (completions === undefined ? counted.allSucceeded > 0 && running.length === 0 : counted.allSucceeded >= completions)
  let remove: Pod[] = []
  let create: Draft<V1Pod>[] = []
  let after = untilDeadline(job, now)
  const terminating = pods.filter(pod => isTerminating(pod) && !hasEnded(pod)).length
  const isSettled = counted.isSettled && running.length === 0 && terminating === 0
  let completionTime = before.completionTime
  if (verdict && !isReached) {
    remove = running
    conditions = put(conditions, 'FailureTarget', verdict, at)
    if (isSettled) conditions = put(conditions, 'Failed', verdict, at)
  } else if (isReached) {
    remove = running
    const reached = { reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' }
    conditions = put(conditions, 'SuccessCriteriaMet', reached, at)
    if (isSettled) {
      conditions = put(conditions, 'Complete', reached, at)
      completionTime ??= at
    }
  } else if (isSuspended) {
    remove = running
    conditions = put(conditions, 'Suspended', { reason: 'JobSuspended', message: 'Job suspended' }, at)
  } else {
    if (isTrue(conditions, 'Suspended'))
      conditions = put(conditions, 'Suspended', { reason: 'JobResumed', message: 'Job resumed' }, at, 'False')
    const wait = backoff(pods, now)
    const needed = wanted({ completions, parallelism, succeeded: counted.allSucceeded, running: running.length })
    const replaced = job.spec?.podReplacementPolicy === 'Failed' ? terminating : 0
    if (needed < running.length) remove = running.toSorted(byDispensability(now)).slice(0, running.length - needed)
    else if (wait > 0 && needed > running.length) after = Math.min(wait, after ?? wait)
    else
      create = newPods(
        job,
        needed - running.length - replaced,
        isIndexed ? freeIndexes(job, running, counted.done) : undefined,
      )
  }
  return {
    status: {
      startTime,
      completionTime,
      active: running.length || undefined,
      ready: running.filter(isReady).length,
      terminating,
      succeeded: counted.succeeded || undefined,
      failed: counted.failed || undefined,
      ...(isIndexed ? { completedIndexes: formatIndexes(counted.done) || undefined } : {}),
      uncountedTerminatedPods: uncounted(counted),
      conditions: conditions.length > 0 ? conditions : undefined,
    },
    release: release.filter(pod => counted.noted.has(pod.metadata.uid)),
    create,
    remove,
    expire: false,
    after,
  }
}

interface Counted {
  readonly succeeded: number
  readonly failed: number
  /** Those noted included. */
  readonly allSucceeded: number
  readonly uncountedSucceeded: string[]
  readonly uncountedFailed: string[]
  /** Indexes that have succeeded. */
  readonly done: Set<number>
  /** Uids whose finalizer may go. */
  readonly noted: Set<string>
  readonly isSettled: boolean
}

/** Notes what has ended, and counts what was noted and has lost its finalizer. */
function count(job: Job, pods: readonly Pod[], isIndexed: boolean): Counted {
  const { succeeded = 0, failed = 0, uncountedTerminatedPods: notes, completedIndexes } = job.status ?? {}
  const held = new Set(pods.filter(pod => pod.metadata.finalizers?.includes(tracking)).map(pod => pod.metadata.uid))
  const split = (uids: readonly string[] = []) => ({
    still: uids.filter(uid => held.has(uid)),
    gone: uids.filter(uid => !held.has(uid)).length,
  })
  const oldSucceeded = split(notes?.succeeded)
  const oldFailed = split(notes?.failed)
  const noted = new Set([...(notes?.succeeded ?? []), ...(notes?.failed ?? [])])
  const fresh = pods.filter(({ metadata }) => held.has(metadata.uid) && !noted.has(metadata.uid))
  const done = parseIndexes(completedIndexes)
  const newSucceeded: string[] = []
  const newFailed: string[] = []
  for (const pod of fresh) {
    const { uid } = pod.metadata
    if (hasSucceeded(pod)) {
      noted.add(uid)
      if (isIndexed) done.add(indexOf(pod))
      else newSucceeded.push(uid)
    } else if (countsAsFailed(job, pod)) {
      noted.add(uid)
      if (ruled(job, pod).action !== 'Ignore') newFailed.push(uid)
    }
  }
  const uncountedSucceeded = [...oldSucceeded.still, ...newSucceeded]
  const uncountedFailed = [...oldFailed.still, ...newFailed]
  const counted = isIndexed ? done.size : succeeded + oldSucceeded.gone
  return {
    succeeded: counted,
    failed: failed + oldFailed.gone,
    allSucceeded: counted + uncountedSucceeded.length,
    uncountedSucceeded,
    uncountedFailed,
    done,
    noted,
    isSettled: uncountedSucceeded.length + uncountedFailed.length === 0,
  }
}

function uncounted({ uncountedSucceeded, uncountedFailed }: Counted) {
  return {
    ...(uncountedSucceeded.length > 0 ? { succeeded: uncountedSucceeded } : {}),
    ...(uncountedFailed.length > 0 ? { failed: uncountedFailed } : {}),
  }
}

function wanted(job: {
  completions: number | undefined
  parallelism: number
  succeeded: number
  running: number
}): number {
  const { completions, parallelism, succeeded, running } = job
  // Without a number of completions, the first success is the signal: no new pods, those there finish.
  if (completions === undefined) return succeeded > 0 ? Math.min(running, parallelism) : parallelism
  return Math.min(Math.max(completions - succeeded, 0), parallelism)
}

function freeIndexes(job: Job, running: readonly Pod[], done: ReadonlySet<number>): number[] {
  const taken = new Set(running.map(indexOf))
  return Array.from({ length: job.spec?.completions ?? 0 }, (_, index) => index).filter(
    index => !taken.has(index) && !done.has(index),
  )
}

function indexOf(pod: Pod): number {
  return Number(pod.metadata.annotations?.[indexKey] ?? -1)
}

function newPods(job: Job, howMany: number, indexes: readonly number[] | undefined): Draft<V1Pod>[] {
  const { name, namespace } = job.metadata
  const base = { namespace, finalizers: [tracking], ownerReferences: [controllerReference(job)] }
  return Array.from({ length: Math.max(Math.min(howMany, indexes?.length ?? howMany), 0) }, (_, at) => {
    const index = indexes?.[at]
    if (index === undefined) return podOf(job.spec?.template, { ...base, generateName: `${name}-` })
    const key = { [indexKey]: String(index) }
    const pod = podOf(job.spec?.template, { ...base, generateName: `${name}-${index}-`, annotations: key, labels: key })
    const variable = {
      name: 'JOB_COMPLETION_INDEX',
      valueFrom: { fieldRef: { fieldPath: `metadata.labels['${indexKey}']` } },
    }
    const given = job.spec?.template.spec
    const withIndex = (containers: NonNullable<typeof given>['containers'] | undefined) =>
      containers?.map(one => ({
        ...one,
        env: [...(one.env ?? []).filter(env => env.name !== variable.name), variable],
      }))
    const initContainers = withIndex(given?.initContainers)
    const spec = { ...given, hostname: `${name}-${index}`, containers: withIndex(given?.containers) ?? [] }
    return { ...pod, spec: initContainers ? { ...spec, initContainers } : spec } as Draft<V1Pod>
  })
}

function hasEnded(pod: Pod): boolean {
  return hasFailed(pod) || hasSucceeded(pod)
}

function ongoing(conditions: readonly Condition[], type: string): Verdict | undefined {
  const found = conditionOf(conditions, type)
  return found?.status === 'True' ? { reason: found.reason ?? '', message: found.message ?? '' } : undefined
}

function put(
  conditions: readonly Condition[],
  type: string,
  { reason, message }: Verdict,
  at: string,
  status = 'True',
): Condition[] {
  const old = conditionOf(conditions, type)
  if (old?.status === status) return [...conditions]
  const next = { type, status, reason, message, lastProbeTime: at, lastTransitionTime: at }
  return old ? conditions.map(one => (one === old ? next : one)) : [...conditions, next]
}

function untilExpired(job: Job, now: number): number | undefined {
  const seconds = job.spec?.ttlSecondsAfterFinished
  const end = job.status?.conditions?.find(
    ({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True',
  )
  return seconds === undefined || !end ? undefined : Date.parse(end.lastTransitionTime ?? '') + seconds * 1000 - now
}
