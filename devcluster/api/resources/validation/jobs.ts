/**
 * What a server refuses of a Job or a CronJob.
 */
import { selects } from '../../../../controller/kube/labelselector.ts'
import type { FieldError } from '../../problems.ts'
import { dns1123Label } from '../../schema/names.ts'
import type { Obj } from '../../types.ts'
import { list } from '../strategies/lists.ts'
import { same } from '../strategies/status.ts'
import { immutable, invalid, nonNegative, notSupported, oneOf, required } from './mistakes.ts'
import { validateTemplate } from './pod-spec.ts'
import { isUsable, validateSelector } from './selectors.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

const counts = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
  'ttlSecondsAfterFinished',
]
const policies = ['OnFailure', 'Never']
const mostAtOnce = 100_000

/** In a job and in the template of one, where `path` is that of its spec. */
function validateJobSpec(spec: Any, path: string): FieldError[] {
  const { parallelism, completions, completionMode, template } = spec ?? {}
  const isIndexed = completionMode === 'Indexed'
  const errors = counts.flatMap(name => nonNegative(`${path}.${name}`, spec?.[name]))
  errors.push(...oneOf(`${path}.completionMode`, completionMode, ['NonIndexed', 'Indexed']))
  if (isIndexed && completions === undefined)
    errors.push(required(`${path}.completions`, 'when completion mode is Indexed'))
  if (isIndexed && parallelism > mostAtOnce) {
    const detail = `must be less than or equal to ${mostAtOnce} when completion mode is Indexed`
    errors.push(invalid(`${path}.parallelism`, parallelism, detail))
  }
  errors.push(...validateTemplate(template, `${path}.template`))
  // What is so by default is not so here: it has to be said.
  const policy = template?.spec?.restartPolicy ?? 'Always'
  const field = `${path}.template.spec.restartPolicy`
  if (policy === 'Always')
    errors.push(required(field, `valid values: ${policies.map(one => JSON.stringify(one)).join(', ')}`))
  else if (!policies.includes(policy)) errors.push(notSupported(field, policy, policies))
  return errors
}

export function validateJob(object: Obj, old: Obj | undefined): FieldError[] {
  const { spec = {}, metadata } = object
  const errors = [...validateJobSpec(spec, 'spec'), ...validateSelected(spec), ...validateGenerated(object)]
  if (old) return [...errors, ...validateChange(object, old)]
  if (spec.completionMode === 'Indexed' && spec.completions > 0) {
    const last = `${metadata.name}-${spec.completions - 1}`
    const detail = `will not able to create pod with invalid DNS label: ${last}`
    if (dns1123Label(last).length > 0) errors.push(invalid('metadata.name', metadata.name, detail))
  }
  return errors
}

function validateSelected({ selector, template }: Any): FieldError[] {
  const labels = template?.metadata?.labels
  const errors = selector ? validateSelector(selector, 'spec.selector') : [required('spec.selector')]
  if (isUsable(selector) && !(selector && selects(selector, labels))) {
    const detail = '`selector` does not match template `labels`'
    errors.push(invalid('spec.template.metadata.labels', labels ?? null, detail))
  }
  return errors
}

/** The labels that the server gives a job's pods, and the selector of them, unless it is said to be left alone. */
function validateGenerated({ spec = {}, metadata }: Obj): FieldError[] {
  if (spec.manualSelector || !spec.selector) return []
  const { uid, name = '' } = metadata
  const wanted = {
    'controller-uid': uid,
    'job-name': name,
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
  }
  return Object.entries(wanted).flatMap(([key, value]) => {
    const given = spec.template?.metadata?.labels?.[key]
    const field = `spec.template.metadata.labels[${key}]`
    const detail = `must be '${value}'`
    if (given === undefined) return [required(field, detail)]
    return given === value ? [] : [invalid(field, given, detail)]
  })
}

const frozen = [
  'selector',
  'completionMode',
  'podFailurePolicy',
  'backoffLimitPerIndex',
  'managedBy',
  'successPolicy',
] as const

function validateChange({ spec = {} }: Obj, old: Obj): FieldError[] {
  const errors = frozen
    .filter(name => !same(spec[name], old.spec[name]))
    .map(name => immutable(`spec.${name}`, spec[name]))
  if (!same(spec.completions, old.spec.completions)) {
    if (spec.completionMode !== 'Indexed') errors.push(immutable('spec.completions', spec.completions))
    else if (spec.completions !== undefined && spec.completions !== spec.parallelism) {
      const detail = 'can only be modified in tandem with spec.parallelism'
      errors.push(invalid('spec.completions', spec.completions, detail))
    }
  }
  return [...errors, ...validateTemplateChange(spec.template, old)]
}

/** A job that has not begun may change where its pods are to run, and what they are called. */
function validateTemplateChange(template: Any, old: Obj): FieldError[] {
  const before = old.spec.template
  const { startTime, active = 0 } = old.status ?? {}
  const isWaiting = old.spec.suspend === true && startTime === undefined && active === 0
  if (!isWaiting) return same(template, before) ? [] : [immutable('spec.template', template)]
  return same(placeless(template?.spec), placeless(before?.spec))
    ? []
    : [immutable('spec.template.spec', template?.spec)]
}

function placeless(spec: Any): Any {
  const { nodeSelector: _1, tolerations: _2, schedulingGates: _3, affinity, ...rest } = spec ?? {}
  const { nodeAffinity: _, ...others } = affinity ?? {}
  const plain = (containers: unknown) => list(containers).map(({ resources: _resources, ...container }) => container)
  return {
    ...rest,
    containers: plain(rest.containers),
    initContainers: plain(rest.initContainers),
    affinity: Object.keys(others).length > 0 ? others : undefined,
  }
}

/** What has been counted stays so; a job that runs has begun. */
export function validateJobStatus({ spec = {}, status = {} }: Obj, old: Obj): FieldError[] {
  const before = old.status ?? {}
  const errors = ['active', 'succeeded', 'failed'].flatMap(name => nonNegative(`status.${name}`, status[name]))
  for (const name of ['succeeded', 'failed']) {
    if ((status[name] ?? 0) < (before[name] ?? 0))
      errors.push(invalid(`status.${name}`, status[name] ?? 0, `cannot decrease the ${name} counter`))
  }
  if (before.startTime !== undefined && status.startTime !== before.startTime && !spec.suspend) {
    const detail = 'field is immutable for unsuspended job once set'
    errors.push(invalid('status.startTime', status.startTime ?? null, detail))
  }
  return errors
}

export function validateCronJob({ spec = {} }: Obj): FieldError[] {
  const errors = validateJobSpec(spec.jobTemplate?.spec, 'spec.jobTemplate.spec')
  const { schedule } = spec
  if (!schedule) errors.unshift(required('spec.schedule'))
  else if (schedule.split(/\s+/).length !== 5 && !schedule.startsWith('@')) {
    const found = schedule.trim().split(/\s+/).length
    const detail = `expected exactly 5 fields, found ${found}: ${JSON.stringify([schedule])}`
    errors.unshift(invalid('spec.schedule', schedule, detail))
  }
  for (const name of ['startingDeadlineSeconds', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit'])
    errors.push(...nonNegative(`spec.${name}`, spec[name]))
  errors.push(...oneOf('spec.concurrencyPolicy', spec.concurrencyPolicy, ['Allow', 'Forbid', 'Replace']))
  return errors
}
