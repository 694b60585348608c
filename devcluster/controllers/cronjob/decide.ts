/**
 * When a CronJob starts its next Job, which of those under way it stops, and which of those that ended it forgets. Pure.
 */

import type { V1CronJob, V1Job } from '@kubernetes/client-node'
import { Cron } from 'croner'
import { controllerReference } from '../../../controller/kube/cached.ts'
import type { Draft, Snapshot } from '../../../controller/kube/kind.ts'
import { timeOf } from '../../../shared/clock.ts'
import { isTrue } from '../common/conditions.ts'

export type CronJob = Snapshot<V1CronJob>
type Job = Snapshot<V1Job>

export interface Decision {
  readonly create: Draft<V1Job> | undefined
  /** Under way, and in the way: Replace. */
  readonly replace: Job[]
  readonly forget: Job[]
  readonly status: Record<string, unknown>
  readonly after: number | undefined
  /** Said to a person: why nothing was started, or that the schedule cannot be read. */
  readonly note?: { readonly reason: string; readonly message: string } | undefined
}

const ended = (job: Job) => isTrue(job.status?.conditions, 'Complete') || isTrue(job.status?.conditions, 'Failed')

export function decideCronJob(cron: CronJob, jobs: readonly Job[], now: number): Decision {
  const active = jobs.filter(job => !ended(job))
  const forget = [
    ...oldest(
      jobs.filter(job => isTrue(job.status?.conditions, 'Complete')),
      cron.spec?.successfulJobsHistoryLimit ?? 3,
    ),
    ...oldest(
      jobs.filter(job => isTrue(job.status?.conditions, 'Failed')),
      cron.spec?.failedJobsHistoryLimit ?? 1,
    ),
  ]
  const base = { create: undefined, replace: [], forget, status: statusOf(cron, jobs, active), after: undefined }
  if (cron.spec?.suspend || cron.metadata.deletionTimestamp) return base
  let pattern: Cron
  try {
    pattern = patternOf(cron)
  } catch (error) {
    return {
      ...base,
      note: {
        reason: 'UnparseableSchedule',
        message: `unparseable schedule: ${cron.spec?.schedule}: ${(error as Error).message}`,
      },
    }
  }
  const next = pattern.nextRun(new Date(now))?.getTime()
  const after = next === undefined ? undefined : next - now
  const tick = due(cron, pattern, now)
  if (tick === undefined) return { ...base, after }
  const deadline = cron.spec?.startingDeadlineSeconds
  if (deadline !== undefined && tick + deadline * 1000 < now)
    return {
      ...base,
      after,
      note: { reason: 'MissSchedule', message: `Missed scheduled time to start a job: ${timeOf(tick)}` },
    }
  const name = jobName(cron, tick)
  if (jobs.some(job => job.metadata.name === name)) return { ...base, after }
  const policy = cron.spec?.concurrencyPolicy ?? 'Allow'
  if (policy === 'Forbid' && active.length > 0)
    return {
      ...base,
      after,
      note: {
        reason: 'JobAlreadyActive',
        message: 'Not starting job because prior execution is running and concurrency policy is Forbid',
      },
    }
  const replace = policy === 'Replace' ? active : []
  const left = policy === 'Replace' ? [] : active
  const status = { ...statusOf(cron, jobs, left), lastScheduleTime: timeOf(tick) }
  return { ...base, after, replace, create: newJob(cron, name, tick), status }
}

/** The newest time since the last one that was kept; undefined where there is none. */
function due(cron: CronJob, pattern: Cron, now: number): number | undefined {
  const since = Date.parse(cron.status?.lastScheduleTime ?? cron.metadata.creationTimestamp)
  // The library answers what is before its reference, in whole seconds.
  const tick = pattern.previousRuns(1, new Date((Math.floor(now / 1000) + 1) * 1000))[0]?.getTime()
  return tick !== undefined && tick > since ? tick : undefined
}

function patternOf(cron: CronJob): Cron {
  const timezone = cron.spec?.timeZone ?? 'Etc/UTC'
  return new Cron(cron.spec?.schedule ?? '', { mode: '5-part', timezone, paused: true })
}

/** The same for the same minute, so that a tick is never two Jobs. */
function jobName(cron: CronJob, tick: number): string {
  return `${cron.metadata.name}-${Math.floor(tick / 60_000)}`
}

function newJob(cron: CronJob, name: string, tick: number): Draft<V1Job> {
  const { metadata, spec } = cron.spec?.jobTemplate ?? {}
  const annotations = { ...metadata?.annotations, 'batch.kubernetes.io/cronjob-scheduled-timestamp': timeOf(tick) }
  return {
    metadata: {
      name,
      namespace: cron.metadata.namespace,
      ...(metadata?.labels ? { labels: metadata.labels } : {}),
      annotations,
      ownerReferences: [controllerReference(cron)],
    },
    ...(spec ? { spec } : {}),
  } as Draft<V1Job>
}

function statusOf(cron: CronJob, jobs: readonly Job[], active: readonly Job[]) {
  const times = jobs.flatMap(job => job.status?.completionTime ?? [])
  const last = [...times, ...(cron.status?.lastSuccessfulTime ? [cron.status.lastSuccessfulTime] : [])].sort().at(-1)
  const references = active.map(({ metadata }) => ({
    ...{ apiVersion: 'batch/v1', kind: 'Job', name: metadata.name, namespace: metadata.namespace },
    ...{ uid: metadata.uid, resourceVersion: metadata.resourceVersion },
  }))
  return { active: sameActive(cron, references), lastSuccessfulTime: last }
}

/** Versions of Jobs change all the time: a reference is as it was when it was made. */
function sameActive(cron: CronJob, references: readonly { uid: string }[]) {
  const before = cron.status?.active ?? []
  const list = references.map(one => before.find(({ uid }) => uid === one.uid) ?? one)
  return list.length > 0 ? list : undefined
}

function oldest(jobs: readonly Job[], keep: number): Job[] {
  const start = (job: Job) => job.status?.startTime ?? job.metadata.creationTimestamp
  return jobs.toSorted((a, b) => (start(a) < start(b) ? -1 : 1)).slice(0, Math.max(jobs.length - keep, 0))
}
