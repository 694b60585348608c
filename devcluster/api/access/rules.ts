/**
 * Whether a rule allows what is asked, as RBAC decides it. Pure.
 */
import type { Target } from '../../../controller/kube/transport.ts'

export interface PolicyRule {
  verbs: string[]
  apiGroups?: string[]
  resources?: string[]
  resourceNames?: string[]
  nonResourceURLs?: string[]
}

/** What somebody wants to do. */
export interface Attempt extends Target {
  /** Of what is no resource. */
  readonly path?: string | undefined
}

export function allows(rule: PolicyRule, attempt: Attempt): boolean {
  if (!has(rule.verbs, attempt.verb)) return false
  if (attempt.resource === '') return (rule.nonResourceURLs ?? []).some(url => covers(url, attempt.path ?? ''))
  if (!has(rule.apiGroups ?? [], attempt.group)) return false
  if (!coversResource(rule.resources ?? [], attempt)) return false
  const names = rule.resourceNames ?? []
  return names.length === 0 || (attempt.name !== undefined && names.includes(attempt.name))
}

function coversResource(resources: readonly string[], { resource, subresource }: Attempt): boolean {
  const asked = subresource ? `${resource}/${subresource}` : resource
  return resources.some(
    one => one === '*' || one === asked || (subresource !== undefined && one === `*/${subresource}`),
  )
}

function has(list: readonly string[], wanted: string): boolean {
  return list.includes('*') || list.includes(wanted)
}

function covers(url: string, path: string): boolean {
  return url === '*' || url === path || (url.endsWith('*') && path.startsWith(url.slice(0, -1)))
}

/** Whether `rules` allow all that `rule` allows: nobody may grant what they do not have. */
export function coversRule(rules: readonly PolicyRule[], rule: PolicyRule): boolean {
  return pieces(rule).every(attempt => rules.some(one => coversPiece(one, attempt)))
}

interface Piece {
  verb: string
  group?: string
  resource?: string
  name?: string
  url?: string
}

function pieces(rule: PolicyRule): Piece[] {
  const names: (string | undefined)[] = rule.resourceNames?.length ? rule.resourceNames : [undefined]
  const urls = (rule.nonResourceURLs ?? []).flatMap(url => rule.verbs.map(verb => ({ verb, url })))
  const resources = rule.verbs.flatMap(verb =>
    (rule.apiGroups ?? []).flatMap(group =>
      (rule.resources ?? []).flatMap(resource =>
        names.map(name => ({ verb, group, resource, ...(name ? { name } : {}) })),
      ),
    ),
  )
  return [...urls, ...resources]
}

function coversPiece(rule: PolicyRule, { verb, group, resource, name, url }: Piece): boolean {
  if (!has(rule.verbs, verb)) return false
  if (url !== undefined) return (rule.nonResourceURLs ?? []).some(one => covers(one, url))
  if (!has(rule.apiGroups ?? [], group ?? '')) return false
  const [, subresource] = (resource ?? '').split('/')
  const isIn = (rule.resources ?? []).some(
    one => one === '*' || one === resource || (subresource && one === `*/${subresource}`),
  )
  if (!isIn) return false
  const names = rule.resourceNames ?? []
  return names.length === 0 || (name !== undefined && names.includes(name))
}
