/**
 * Where a pod may run: node selectors, affinity, tolerations, spread.
 */
import type { FieldError } from '../../problems.ts'
import { dns1123Label, labelValue, qualifiedName } from '../../schema/names.ts'
import { list } from '../strategies/lists.ts'
import { duplicate, invalid, notSupported, oneOf, required, ruled } from './mistakes.ts'
import { validateLabels, validateRequirement, validateSelector } from './selectors.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

export const validatePlacement = (spec: Any, path: string): FieldError[] => [
  ...validateLabels(spec.nodeSelector, `${path}.nodeSelector`),
  ...validateNodeAffinity(spec.affinity?.nodeAffinity, `${path}.affinity.nodeAffinity`),
  ...validatePodAffinity(spec.affinity?.podAffinity, `${path}.affinity.podAffinity`),
  ...validatePodAffinity(spec.affinity?.podAntiAffinity, `${path}.affinity.podAntiAffinity`),
  ...list(spec.tolerations).flatMap((one, at) => validateToleration(one, `${path}.tolerations[${at}]`)),
  ...validateSpread(list(spec.topologySpreadConstraints), `${path}.topologySpreadConstraints`),
]

const always = 'requiredDuringSchedulingIgnoredDuringExecution'
const rather = 'preferredDuringSchedulingIgnoredDuringExecution'

const weight = (value: number | undefined, field: string): FieldError[] =>
  value !== undefined && value >= 1 && value <= 100 ? [] : [invalid(field, value ?? 0, 'must be in the range 1-100')]

function validateNodeAffinity(affinity: Any, path: string): FieldError[] {
  const errors: FieldError[] = []
  const terms = affinity?.[always] && list(affinity[always].nodeSelectorTerms)
  if (terms?.length === 0)
    errors.push(required(`${path}.${always}.nodeSelectorTerms`, 'must have at least one node selector term'))
  for (const [at, term] of (terms ?? []).entries())
    errors.push(...validateTerm(term, `${path}.${always}.nodeSelectorTerms[${at}]`))
  for (const [at, one] of list(affinity?.[rather]).entries()) {
    errors.push(...weight(one.weight, `${path}.${rather}[${at}].weight`))
    errors.push(...validateTerm(one.preference, `${path}.${rather}[${at}].preference`))
  }
  return errors
}

const validateTerm = (term: Any, path: string): FieldError[] =>
  list(term?.matchExpressions).flatMap((one, at) => validateRequirement(one, `${path}.matchExpressions[${at}]`, true))

function validatePodAffinity(affinity: Any, path: string): FieldError[] {
  return [
    ...list(affinity?.[always]).flatMap((term, at) => validatePodTerm(term, `${path}.${always}[${at}]`)),
    ...list(affinity?.[rather]).flatMap((one, at) => [
      ...weight(one.weight, `${path}.${rather}[${at}].weight`),
      ...validatePodTerm(one.podAffinityTerm ?? {}, `${path}.${rather}[${at}].podAffinityTerm`),
    ]),
  ]
}

function validatePodTerm(term: Any, path: string): FieldError[] {
  const { topologyKey = '' } = term
  return [
    ...validateSelector(term.labelSelector, `${path}.labelSelector`),
    ...validateSelector(term.namespaceSelector, `${path}.namespaceSelector`),
    ...(term.namespaces ?? []).flatMap((name: string) => ruled(`${path}.namespace`, name, dns1123Label)),
    ...(topologyKey === '' ? [required(`${path}.topologyKey`, 'can not be empty')] : []),
    ...ruled(`${path}.topologyKey`, topologyKey, qualifiedName),
  ]
}

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

function validateToleration(toleration: Any, path: string): FieldError[] {
  const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = toleration
  const errors: FieldError[] = []
  if (key !== '') errors.push(...ruled(`${path}.key`, key, qualifiedName))
  else if (operator !== 'Exists') {
    const detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
    errors.push(invalid(`${path}.operator`, operator, detail))
  }
  if (tolerationSeconds !== undefined && effect !== 'NoExecute')
    errors.push(invalid(`${path}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
  if (operator === '' || operator === 'Equal') {
    const wrong = labelValue(value)
    if (wrong.length > 0) errors.push(invalid(`${path}.operator`, value, wrong.join(';')))
  } else if (operator === 'Exists') {
    if (value !== '')
      errors.push(invalid(`${path}.operator`, toleration, "value must be empty when `operator` is 'Exists'"))
  } else errors.push(notSupported(`${path}.operator`, operator, ['Equal', 'Exists']))
  if (effect !== '') errors.push(...oneOf(`${path}.effect`, effect, effects))
  return errors
}

function validateSpread(constraints: Any[], path: string): FieldError[] {
  const known = new Set<string>()
  return constraints.flatMap((one, at) => {
    const { maxSkew = 0, topologyKey = '', whenUnsatisfiable = '' } = one
    const where = `${path}[${at}]`
    const errors: FieldError[] = []
    if (maxSkew <= 0) errors.push(invalid(`${where}.maxSkew`, maxSkew, 'must be greater than zero'))
    if (topologyKey === '') errors.push(required(`${where}.topologyKey`, 'can not be empty'))
    errors.push(...oneOf(`${where}.whenUnsatisfiable`, whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway']))
    const both = `{${topologyKey}, ${whenUnsatisfiable}}`
    if (known.has(both)) errors.push(duplicate(`${where}.{topologyKey, whenUnsatisfiable}`, both))
    known.add(both)
    errors.push(...validateSelector(one.labelSelector, `${where}.labelSelector`))
    return errors
  })
}
