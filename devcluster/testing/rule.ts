/**
 * A refused request as the rule that is missing, in the words of a declaration and of a Role. Pure.
 */
import type { PolicyRule } from './operator.ts'

/** What was refused, and to whom. */
export interface Refusal {
  readonly user: string
  /** As `create configmaps in namespace default`. */
  readonly what: string
  readonly rule: PolicyRule
  /** How often. */
  readonly count: number
}

/** One for each rule, with all verbs that it lacks. */
export function merged(refusals: readonly Refusal[]): Refusal[] {
  const byResource = Map.groupBy(refusals, ({ user, rule }) => JSON.stringify([user, rule.apiGroups, rule.resources]))
  return [...byResource.values()].flatMap(all => {
    const [first] = all
    if (!first) return []
    const verbs = [...new Set(all.flatMap(({ rule }) => rule.verbs))]
    const count = all.reduce((sum, one) => sum + one.count, 0)
    return { ...first, rule: { ...first.rule, verbs }, count }
  })
}

const quoted = (texts: readonly string[], quote: string) => texts.map(text => `${quote}${text}${quote}`).join(', ')

/** For `permissions` of a reconciler. */
function ruleCode({ apiGroups, resources, verbs }: PolicyRule): string {
  const list = (texts: readonly string[]) => `[${quoted(texts, "'")}]`
  return `{ apiGroups: ${list(apiGroups)}, resources: ${list(resources)}, verbs: ${list(verbs)} }`
}

/** For `rules` of a Role or ClusterRole. */
function ruleYaml({ apiGroups, resources, verbs }: PolicyRule): string {
  const list = (texts: readonly string[]) => `[${quoted(texts, '"')}]`
  return `- apiGroups: ${list(apiGroups)}\n  resources: ${list(resources)}\n  verbs: ${list(verbs)}`
}

/** For a person: what was refused, and what to declare. */
export function refusalText({ user, what, rule }: Refusal): string {
  const yaml = ruleYaml(rule).replaceAll('\n', '\n    ')
  return `${user} may not ${what}. Declare it:\n    permissions: [${ruleCode(rule)}]\n  or, in a ClusterRole:\n    ${yaml}`
}
