/**
 * Selectors as a scale subresource has them, as text, read into the form that workloads and budgets have. Pure.
 */
import { selects } from '../../toolkit/pods.ts'

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined
  readonly matchExpressions?: readonly Requirement[] | undefined
}

interface Requirement {
  readonly key: string
  readonly operator: string
  readonly values?: readonly string[] | undefined
}

const key = String.raw`([\w./-]+)`
const forms: readonly [RegExp, (key: string, values: string[]) => Requirement][] = [
  [new RegExp(`^${key}$`), key => ({ key, operator: 'Exists' })],
  [new RegExp(`^!\\s*${key}$`), key => ({ key, operator: 'DoesNotExist' })],
  [new RegExp(`^${key}\\s*==?\\s*([\\w.-]*)$`), (key, values) => ({ key, operator: 'In', values })],
  [new RegExp(`^${key}\\s*!=\\s*([\\w.-]*)$`), (key, values) => ({ key, operator: 'NotIn', values })],
  [new RegExp(`^${key}\\s+in\\s*\\(([^()]*)\\)$`), (key, values) => ({ key, operator: 'In', values })],
  [new RegExp(`^${key}\\s+notin\\s*\\(([^()]*)\\)$`), (key, values) => ({ key, operator: 'NotIn', values })],
]

/** Undefined for what cannot be understood, and for an empty one: a workload's selector is never meant to be everything. */
export function parseSelector(text: string): LabelSelector | undefined {
  if (text.trim() === '') return undefined
  const all = text.split(/,(?![^(]*\))/).map(part => requirementOf(part.trim()))
  if (!all.every(one => one !== undefined)) return undefined
  const isPlain = ({ operator, values }: Requirement) => operator === 'In' && values?.length === 1
  const matchExpressions = all.filter(one => !isPlain(one))
  const plain = all.filter(isPlain).map(({ key, values }) => [key, values?.[0] ?? ''])
  return {
    ...(plain.length > 0 && { matchLabels: Object.fromEntries(plain) }),
    ...(matchExpressions.length > 0 && { matchExpressions }),
  }
}

function requirementOf(text: string): Requirement | undefined {
  for (const [form, make] of forms) {
    const found = form.exec(text)
    if (found) return make(found[1] ?? '', found[2] === undefined ? [] : found[2].split(',').map(one => one.trim()))
  }
  return undefined
}

/** Whether a PodDisruptionBudget's selector means a pod with these labels: an empty one means all of them, none at all means none. */
export function budgetSelects(selector: LabelSelector | undefined, labels: Readonly<Record<string, string>> = {}) {
  if (!selector) return false
  const { matchLabels = {}, matchExpressions = [] } = selector
  return Object.keys(matchLabels).length + matchExpressions.length === 0 || selects(selector, labels)
}
