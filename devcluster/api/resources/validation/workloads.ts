/**
 * What a server refuses of a Deployment, ReplicaSet, StatefulSet or DaemonSet, and of their status.
 */
import { isEmpty, selects } from '../../../../controller/kube/labelselector.ts'
import type { FieldError } from '../../problems.ts'
import { dns1123Label } from '../../schema/names.ts'
import type { Obj } from '../../types.ts'
import { list } from '../strategies/lists.ts'
import { same } from '../strategies/status.ts'
import { validateClaimSpec } from './claims.ts'
import {
  amount,
  atMostAll,
  forbidden,
  immutable,
  invalid,
  isNone,
  nonNegative,
  oneOf,
  required,
  ruled,
} from './mistakes.ts'
import { validateLastingTemplate } from './pod-spec.ts'
import { isUsable, validateSelector } from './selectors.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

const counts = (spec: Any, ...names: string[]): FieldError[] =>
  names.flatMap(name => nonNegative(`spec.${name}`, spec?.[name]))

const mismatch = (labels: Any) =>
  invalid('spec.template.metadata.labels', labels ?? null, '`selector` does not match template `labels`')

/** A selector that has to be there, and the template that it selects. */
function validateSelected(spec: Any, kind: string, unusable: string, template: () => FieldError[]): FieldError[] {
  const { selector } = spec ?? {}
  const errors = selector ? validateSelector(selector, 'spec.selector') : [required('spec.selector')]
  if (selector && isEmpty(selector))
    errors.push(invalid('spec.selector', selector, `empty selector is invalid for ${kind}`))
  // Of one that cannot be used, the template is not looked at.
  if (!isUsable(selector)) return [...errors, invalid('spec.selector', selector, unusable)]
  const { labels } = spec?.template?.metadata ?? {}
  // No selector selects nothing; an empty one everything.
  if (!selector || !(isEmpty(selector) || selects(selector, labels))) errors.push(mismatch(labels))
  return [...errors, ...template()]
}

const lasting = (spec: Any, claims?: readonly string[]) => () =>
  validateLastingTemplate(spec?.template, 'spec.template', claims ? 'StatefulSet' : 'ReplicaSet', claims)

function keptSelector(object: Obj, old: Obj | undefined): FieldError[] {
  if (!old || same(object.spec.selector, old.spec.selector)) return []
  return [immutable('spec.selector', object.spec.selector)]
}

export const validateReplicaSet = (object: Obj, old: Obj | undefined): FieldError[] => [
  ...counts(object.spec, 'replicas', 'minReadySeconds'),
  ...validateSelected(object.spec, 'deployment', 'invalid label selector', lasting(object.spec)),
  ...keptSelector(object, old),
]

export function validateDeployment(object: Obj, old: Obj | undefined): FieldError[] {
  const { spec } = object
  const errors = [
    ...counts(spec, 'replicas', 'minReadySeconds', 'revisionHistoryLimit', 'progressDeadlineSeconds'),
    ...validateSelected(spec, 'deployment', 'invalid label selector', lasting(spec)),
    ...keptSelector(object, old),
    ...validateStrategy(spec?.strategy ?? {}, 'spec.strategy'),
  ]
  const deadline = spec?.progressDeadlineSeconds
  if (deadline !== undefined && deadline <= (spec.minReadySeconds ?? 0))
    errors.push(invalid('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds'))
  return errors
}

function validateStrategy({ type = '', rollingUpdate }: Any, path: string): FieldError[] {
  const field = `${path}.rollingUpdate`
  if (type === 'Recreate')
    return rollingUpdate ? [forbidden(field, "may not be specified when strategy `type` is 'Recreate'")] : []
  if (type !== 'RollingUpdate') return oneOf(`${path}.type`, type, ['Recreate', 'RollingUpdate'])
  const { maxUnavailable, maxSurge } = rollingUpdate ?? {}
  const errors = [...amount(`${field}.maxUnavailable`, maxUnavailable), ...amount(`${field}.maxSurge`, maxSurge)]
  if (isNone(maxUnavailable) && isNone(maxSurge))
    errors.push(invalid(`${field}.maxUnavailable`, maxUnavailable ?? 0, 'may not be 0 when `maxSurge` is 0'))
  return [...errors, ...atMostAll(`${field}.maxUnavailable`, maxUnavailable)]
}

export function validateDaemonSet(object: Obj, old: Obj | undefined): FieldError[] {
  const { spec = {} } = object
  const { selector } = spec
  const labels = spec.template?.metadata?.labels
  const errors = [...counts(spec, 'minReadySeconds', 'revisionHistoryLimit')]
  errors.push(...validateSelector(selector, 'spec.selector'))
  if (isUsable(selector) && !(selector && (isEmpty(selector) || selects(selector, labels))))
    errors.push(mismatch(labels))
  if (selector && isEmpty(selector))
    errors.push(invalid('spec.selector', selector, 'empty selector is invalid for daemonset'))
  errors.push(...validateLastingTemplate(spec.template, 'spec.template', 'DaemonSet'))
  errors.push(...validateDaemonStrategy(spec.updateStrategy ?? {}, 'spec.updateStrategy'))
  return [...errors, ...keptSelector(object, old)]
}

function validateDaemonStrategy(strategy: Any, path: string): FieldError[] {
  const { type = '', rollingUpdate } = strategy
  if (type === 'OnDelete') return []
  if (type !== 'RollingUpdate') {
    // The whole strategy is told, as Go has it.
    const value = { Type: type, RollingUpdate: rollingUpdate ?? null }
    const detail = 'supported values: "RollingUpdate", "OnDelete"'
    return [{ mistake: 'FieldValueNotSupported', field: path, value, detail }]
  }
  const field = `${path}.rollingUpdate`
  const { maxUnavailable, maxSurge } = rollingUpdate ?? {}
  const errors = [maxUnavailable, maxSurge].flatMap((value, at) => {
    const name = `${field}.${at === 0 ? 'maxUnavailable' : 'maxSurge'}`
    return [...amount(name, value), ...atMostAll(name, value)]
  })
  if (!isNone(maxUnavailable) && !isNone(maxSurge))
    errors.push(invalid(`${field}.maxSurge`, maxSurge, 'may not be set when maxUnavailable is non-zero'))
  if (isNone(maxUnavailable) && isNone(maxSurge))
    errors.push(required(`${field}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'))
  return errors
}

/** What of a StatefulSet's spec may change. */
const mutable = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
]

export function validateStatefulSet(object: Obj, old: Obj | undefined): FieldError[] {
  const { spec = {} } = object
  const claims = list(spec.volumeClaimTemplates).map(({ metadata }) => metadata?.name ?? '')
  const errors = [
    ...counts(spec, 'replicas', 'minReadySeconds'),
    ...nonNegative('spec.ordinals.start', spec.ordinals?.start),
    ...eitherOf('spec.podManagementPolicy', spec.podManagementPolicy, ['OrderedReady', 'Parallel']),
    ...validateUpdateStrategy(spec.updateStrategy ?? {}, 'spec.updateStrategy'),
    ...['whenDeleted', 'whenScaled'].flatMap(name => {
      const field = `spec.persistentVolumeClaimRetentionPolicy.${name}`
      return oneOf(field, spec.persistentVolumeClaimRetentionPolicy?.[name], ['Retain', 'Delete'])
    }),
    ...validateSelected(spec, 'statefulset', '', lasting(spec, claims)),
  ]
  if (!old) {
    if (spec.serviceName) errors.push(...ruled('spec.serviceName', spec.serviceName, dns1123Label))
    for (const [at, claim] of list(spec.volumeClaimTemplates).entries())
      errors.push(...validateClaimSpec(claim.spec, `spec.volumeClaimTemplates[${at}].spec`))
    return errors
  }
  const isFrozen = (key: string) => !mutable.includes(key) && !same(spec[key], old.spec[key])
  if (Object.keys({ ...spec, ...old.spec }).some(isFrozen)) {
    const names = mutable.map(name => `'${name}'`)
    const allowed = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
    errors.push(forbidden('spec', `updates to statefulset spec for fields other than ${allowed} are forbidden`))
  }
  return errors
}

const eitherOf = (field: string, value: Any, [one, other]: readonly [string, string]): FieldError[] =>
  value === one || value === other ? [] : [invalid(field, value ?? '', `must be '${one}' or '${other}'`)]

function validateUpdateStrategy(strategy: Any, path: string): FieldError[] {
  const { type, rollingUpdate } = strategy
  if (type === 'OnDelete') {
    const detail = "only allowed for updateStrategy 'RollingUpdate'"
    return rollingUpdate ? [invalid(`${path}.rollingUpdate`, rollingUpdate, detail)] : []
  }
  if (type !== 'RollingUpdate') return [invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'")]
  const { partition, maxUnavailable } = rollingUpdate ?? {}
  const field = `${path}.rollingUpdate.maxUnavailable`
  return [
    ...nonNegative(`${path}.rollingUpdate.partition`, partition),
    ...amount(field, maxUnavailable),
    ...(maxUnavailable !== undefined && isNone(maxUnavailable) ? [invalid(field, maxUnavailable, 'cannot be 0')] : []),
    ...atMostAll(field, maxUnavailable),
  ]
}

/** Of those that are there, some are ready; of those that are ready, some are available. */
export function validateStatus(...parts: readonly string[]): (object: Obj) => FieldError[] {
  return ({ status = {} }) => {
    const errors: FieldError[] = ['replicas', ...parts].flatMap(name => nonNegative(`status.${name}`, status[name]))
    for (const name of parts) {
      if ((status[name] ?? 0) > (status.replicas ?? 0))
        errors.push(invalid(`status.${name}`, status[name], 'cannot be greater than status.replicas'))
    }
    const { availableReplicas = 0, readyReplicas = 0 } = status
    if (availableReplicas > readyReplicas)
      errors.push(invalid('status.availableReplicas', availableReplicas, 'cannot be greater than readyReplicas'))
    return errors
  }
}
