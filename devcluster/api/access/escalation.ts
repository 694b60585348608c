/**
 * Nobody may grant what they do not have: a role is refused that has more than its writer, and so is a binding to one, unless the writer may `escalate` or `bind`.
 */
import { type ApiError, forbidden } from '../problems.ts'
import type { Obj, User } from '../types.ts'
import { mayDo, type RoleSource, rulesOf } from './rbac.ts'
import { coversRule, type PolicyRule } from './rules.ts'

const group = 'rbac.authorization.k8s.io'

/** Why `user` may not write this role or binding; undefined where they may. */
export function escalation(
  source: RoleSource,
  user: User,
  resource: string,
  object: Obj,
  old: Obj | undefined,
): ApiError | undefined {
  const { name, namespace } = object.metadata
  const may = (verb: string, what: string, which: string) =>
    mayDo(source, user, { verb, group, resource: what, namespace, name: which }).allowed
  if (resource === 'roles' || resource === 'clusterroles') {
    if (may('escalate', resource, name)) return undefined
    return missing(source, user, resource, object, added(object.rules, old?.rules))
  }
  if (resource !== 'rolebindings' && resource !== 'clusterrolebindings') return undefined
  const { kind, name: role } = object.roleRef ?? {}
  if (may('bind', kind === 'Role' ? 'roles' : 'clusterroles', role)) return undefined
  const granted = kind === 'Role' ? source.get('roles', role, namespace) : source.get('clusterroles', role)
  return missing(source, user, resource, object, granted?.rules ?? [])
}

function added(rules: PolicyRule[] = [], before: PolicyRule[] = []): PolicyRule[] {
  const known = new Set(before.map(rule => JSON.stringify(rule)))
  return rules.filter(rule => !known.has(JSON.stringify(rule)))
}

function missing(
  source: RoleSource,
  user: User,
  resource: string,
  object: Obj,
  rules: readonly PolicyRule[],
): ApiError | undefined {
  const own = rulesOf(source, user, object.metadata.namespace)
  const lacking = rules.filter(rule => !coversRule(own, rule))
  if (lacking.length === 0) return undefined
  const who = `user "${user.name}" (groups=${JSON.stringify(user.groups)})`
  return forbidden(
    { group, resource },
    object.metadata.name,
    `${who} is attempting to grant RBAC permissions not currently held:\n${lacking.map(ruleText).join('\n')}`,
  )
}

function ruleText({ apiGroups, resources, resourceNames, nonResourceURLs, verbs }: PolicyRule): string {
  const parts = Object.entries({
    APIGroups: apiGroups,
    Resources: resources,
    ResourceNames: resourceNames,
    NonResourceURLs: nonResourceURLs,
    Verbs: verbs,
  })
  const shown = parts
    .filter(([, values]) => values?.length)
    .map(([name, values]) => `${name}:[${values?.map(one => JSON.stringify(one)).join(' ')}]`)
  return `{${shown.join(', ')}}`
}
