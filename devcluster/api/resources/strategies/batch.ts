/**
 * Jobs and CronJobs.
 */
import type { Obj, Strategy } from '../../types.ts'
import { validateCronJob, validateJob, validateJobStatus } from '../validation/jobs.ts'
import { defaultPodSpec, withoutRequestsFromLimits } from './podspec.ts'
import { same, unchangedStatus } from './status.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
function defaultTemplate(template: any): void {
  const given = structuredClone(template?.spec)
  defaultPodSpec(template?.spec)
  withoutRequestsFromLimits(template?.spec, given)
}

/** A job without labels has those of its pods. */
function copyLabels({ metadata, spec }: Obj): void {
  const { labels } = spec?.template?.metadata ?? {}
  if (labels && Object.keys(metadata.labels ?? {}).length === 0) metadata.labels = { ...labels }
}

const job: Strategy = {
  hasGeneration: true,
  default: object => {
    const { spec } = object
    if (!spec) return
    if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1
    spec.parallelism ??= 1
    spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : 2147483647
    spec.completionMode ??= 'NonIndexed'
    spec.suspend ??= false
    spec.podReplacementPolicy ??= spec.podFailurePolicy ? 'Failed' : 'TerminatingOrFailed'
    spec.manualSelector ??= false
    copyLabels(object)
    defaultTemplate(spec.template)
  },
  prepareForCreate: object => {
    object.status = {}
    const { spec, metadata } = object
    if (!spec || spec.manualSelector) return
    const { uid, name } = metadata
    // The labels of the template are its own where it has none, and stay the same.
    const isCopied = metadata.labels !== undefined && same(metadata.labels, spec.template?.metadata?.labels)
    const both = { 'batch.kubernetes.io/controller-uid': uid, 'batch.kubernetes.io/job-name': name }
    const labels = { ...both, 'controller-uid': uid, 'job-name': name }
    spec.selector = {
      ...spec.selector,
      matchLabels: { ...spec.selector?.matchLabels, 'batch.kubernetes.io/controller-uid': uid },
    }
    spec.template = {
      ...spec.template,
      metadata: { ...spec.template?.metadata, labels: { ...spec.template?.metadata?.labels, ...labels } },
    }
    if (isCopied) metadata.labels = { ...metadata.labels, ...labels }
  },
  prepareForUpdate: unchangedStatus.prepareForUpdate,
  settle: copyLabels,
  validate: validateJob,
  validateStatus: validateJobStatus,
  fields: { 'status.successful': object => String(object.status?.succeeded ?? 0) },
  // A job that goes leaves its pods, unless one says otherwise: kubectl does.
  defaultPropagation: 'Orphan',
}

const cronJob: Strategy = {
  ...unchangedStatus,
  hasGeneration: true,
  default: object => {
    const { spec } = object
    if (!spec) return
    spec.concurrencyPolicy ||= 'Allow'
    spec.suspend ??= false
    spec.successfulJobsHistoryLimit ??= 3
    spec.failedJobsHistoryLimit ??= 1
    defaultTemplate(spec.jobTemplate?.spec?.template)
  },
  validate: validateCronJob,
}

export const batch: Record<string, Strategy> = { 'batch/jobs': job, 'batch/cronjobs': cronJob }
