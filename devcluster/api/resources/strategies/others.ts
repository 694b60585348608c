/**
 * Access rules, budgets, webhooks, network and storage: kinds with few defaults.
 */
import { conditionOf } from '../../admission/conditions.ts'
import type { FieldError } from '../../problems.ts'
import { dns1123Subdomain, pathSegment } from '../../schema/names.ts'
import type { Strategy } from '../../types.ts'
import {
  amount,
  atMostAll,
  invalid,
  nonNegative,
  notSupported,
  oneOf,
  required,
  ruled,
} from '../validation/mistakes.ts'
import { validateSelector } from '../validation/selectors.ts'
import { definition } from './definition.ts'
import { list } from './lists.ts'
import { same, unchangedStatus } from './status.ts'

const rbac = 'rbac.authorization.k8s.io'

const binding: Strategy = {
  hasGeneration: false,
  default: object => {
    if (object.roleRef) object.roleRef.apiGroup ||= rbac
    for (const subject of list(object.subjects)) {
      if (subject.kind === 'User' || subject.kind === 'Group') subject.apiGroup ||= rbac
    }
  },
  validate: (object, old) => {
    const errors: FieldError[] = []
    const isNamespaced = object.kind === 'RoleBinding'
    const kinds = isNamespaced ? ['Role', 'ClusterRole'] : ['ClusterRole']
    const { apiGroup = '', kind = '', name = '' } = object.roleRef ?? {}
    if (apiGroup !== rbac) errors.push(notSupported('roleRef.apiGroup', apiGroup, [rbac]))
    if (!kinds.includes(kind)) errors.push(notSupported('roleRef.kind', kind, kinds))
    if (name) errors.push(...ruled('roleRef.name', name, pathSegment))
    else errors.push(required('roleRef.name'))
    for (const [at, subject] of list(object.subjects).entries()) {
      errors.push(...validateSubject(subject, `subjects[${at}]`, isNamespaced))
    }
    if (old && !same(object.roleRef, old.roleRef)) {
      errors.push(invalid('roleRef', object.roleRef, 'cannot change roleRef'))
    }
    return errors
  },
}

interface Subject {
  kind?: string
  apiGroup?: string
  name?: string
  namespace?: string
}

function validateSubject(
  { kind = '', apiGroup = '', name, namespace }: Subject,
  at: string,
  isNamespaced: boolean,
): FieldError[] {
  const errors: FieldError[] = []
  if (!name) errors.push(required(`${at}.name`))
  if (kind === 'ServiceAccount') {
    if (name) errors.push(...ruled(`${at}.name`, name, dns1123Subdomain))
    if (apiGroup !== '') errors.push(notSupported(`${at}.apiGroup`, apiGroup, ['']))
    if (!isNamespaced && !namespace) errors.push(required(`${at}.namespace`))
  } else if (kind === 'User' || kind === 'Group') {
    if (apiGroup !== rbac) errors.push(notSupported(`${at}.apiGroup`, apiGroup, [rbac]))
  } else errors.push(notSupported(`${at}.kind`, kind, ['ServiceAccount', 'User', 'Group']))
  return errors
}

const role: Strategy = {
  hasGeneration: false,
  validate: object => {
    const errors: FieldError[] = []
    for (const [at, rule] of list(object.rules).entries()) {
      if (!rule.verbs?.length)
        errors.push({
          mistake: 'FieldValueRequired',
          field: `rules[${at}].verbs`,
          detail: 'verbs must contain at least one value',
        })
      if (rule.nonResourceURLs?.length) continue
      if (!rule.apiGroups?.length) {
        errors.push({
          mistake: 'FieldValueRequired',
          field: `rules[${at}].apiGroups`,
          detail: 'resource rules must supply at least one api group',
        })
      }
      if (!rule.resources?.length) {
        errors.push({
          mistake: 'FieldValueRequired',
          field: `rules[${at}].resources`,
          detail: 'resource rules must supply at least one resource',
        })
      }
    }
    return errors
  },
}

const budget: Strategy = {
  ...unchangedStatus,
  hasGeneration: true,
  validate: ({ spec = {} }) => {
    const errors: FieldError[] = []
    if (spec.minAvailable !== undefined && spec.maxUnavailable !== undefined)
      errors.push(invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set'))
    for (const name of ['minAvailable', 'maxUnavailable']) {
      errors.push(...amount(`spec.${name}`, spec[name]), ...atMostAll(`spec.${name}`, spec[name]))
    }
    errors.push(...validateSelector(spec.selector, 'spec.selector'))
    const policies = ['AlwaysAllow', 'IfHealthyBudget']
    return [...errors, ...oneOf('spec.unhealthyPodEvictionPolicy', spec.unhealthyPodEvictionPolicy, policies)]
  },
}

function webhooks(mutating: boolean): Strategy {
  return {
    hasGeneration: true,
    default: object => {
      for (const webhook of list(object.webhooks)) {
        webhook.failurePolicy ??= 'Fail'
        webhook.matchPolicy ??= 'Equivalent'
        webhook.namespaceSelector ??= {}
        webhook.objectSelector ??= {}
        webhook.timeoutSeconds ??= 10
        if (mutating) webhook.reinvocationPolicy ??= 'Never'
        for (const rule of list(webhook.rules)) rule.scope ??= '*'
        if (webhook.clientConfig?.service) webhook.clientConfig.service.port ??= 443
      }
    },
    validate: object => {
      const errors: FieldError[] = []
      for (const [at, webhook] of list(object.webhooks).entries()) {
        if (!webhook.name) errors.push({ mistake: 'FieldValueRequired', field: `webhooks[${at}].name` })
        if (!webhook.admissionReviewVersions?.length) {
          const detail = 'must specify one of v1, v1beta1'
          errors.push({ mistake: 'FieldValueRequired', field: `webhooks[${at}].admissionReviewVersions`, detail })
        }
        if (!['None', 'NoneOnDryRun'].includes(webhook.sideEffects)) {
          errors.push({
            mistake: 'FieldValueRequired',
            field: `webhooks[${at}].sideEffects`,
            detail: 'must specify one of None, NoneOnDryRun',
          })
        }
        for (const [index, { expression }] of list(webhook.matchConditions).entries()) {
          const detail = conditionOf(String(expression))
          const field = `webhooks[${at}].matchConditions[${index}].expression`
          if (typeof detail === 'string')
            errors.push({ mistake: 'FieldValueInvalid', field, value: expression, detail })
        }
      }
      return errors
    },
  }
}

const networkPolicy: Strategy = {
  hasGeneration: true,
  default: object => {
    const { spec } = object
    if (!spec) return
    for (const rule of [...list(spec.ingress), ...list(spec.egress)])
      for (const port of list(rule.ports)) port.protocol ??= 'TCP'
    if (!spec.policyTypes?.length) spec.policyTypes = spec.egress?.length ? ['Ingress', 'Egress'] : ['Ingress']
  },
}

const storageClass: Strategy = {
  hasGeneration: false,
  default: object => {
    object.reclaimPolicy ??= 'Delete'
    object.volumeBindingMode ??= 'Immediate'
  },
}

const priorityClass: Strategy = {
  hasGeneration: true,
  default: object => {
    object.preemptionPolicy ??= 'PreemptLowerPriority'
  },
}

const slice: Strategy = {
  hasGeneration: true,
  default: object => {
    for (const port of list(object.ports)) {
      port.name ??= ''
      port.protocol ??= 'TCP'
    }
  },
}

const autoscaler: Strategy = {
  ...unchangedStatus,
  hasGeneration: false,
  default: object => {
    if (object.spec) object.spec.minReplicas ??= 1
  },
}

const ingress: Strategy = { ...unchangedStatus, hasGeneration: true }

const lease: Strategy = {
  hasGeneration: false,
  validate: ({ spec = {} }) => {
    const errors: FieldError[] = []
    const { leaseDurationSeconds: seconds } = spec
    if (seconds !== undefined && seconds <= 0)
      errors.push(invalid('spec.leaseDurationSeconds', seconds, 'must be greater than 0'))
    return [...errors, ...nonNegative('spec.leaseTransitions', spec.leaseTransitions)]
  },
}

export const others: Record<string, Strategy> = {
  [`${rbac}/roles`]: role,
  [`${rbac}/clusterroles`]: role,
  [`${rbac}/rolebindings`]: binding,
  [`${rbac}/clusterrolebindings`]: binding,
  'policy/poddisruptionbudgets': budget,
  'coordination.k8s.io/leases': lease,
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': webhooks(true),
  'admissionregistration.k8s.io/validatingwebhookconfigurations': webhooks(false),
  'apiextensions.k8s.io/customresourcedefinitions': definition,
  'networking.k8s.io/networkpolicies': networkPolicy,
  'networking.k8s.io/ingresses': ingress,
  'storage.k8s.io/storageclasses': storageClass,
  'scheduling.k8s.io/priorityclasses': priorityClass,
  'discovery.k8s.io/endpointslices': slice,
  'autoscaling/horizontalpodautoscalers': autoscaler,
}
