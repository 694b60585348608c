/**
 * Who may do what: the roles that are bound to a user, looked up in the store. `system:masters` may do anything.
 */
import type { Obj, User } from '../types.ts'
import { type Attempt, allows, type PolicyRule } from './rules.ts'

/** What access is decided from: objects as they are now. */
export interface RoleSource {
  get(resource: 'roles' | 'clusterroles', name: string, namespace?: string): Obj | undefined
  list(resource: 'rolebindings' | 'clusterrolebindings', namespace?: string): readonly Obj[]
}

export interface Verdict {
  readonly allowed: boolean
  /** Which binding and role allowed it, or what could not be found out. */
  readonly reason: string
}

interface Subject {
  kind: string
  name: string
  namespace?: string
}

export function mayDo(source: RoleSource, user: User, attempt: Attempt): Verdict {
  if (user.groups.includes('system:masters')) return { allowed: true, reason: '' }
  for (const { rules, binding, role, subject } of grants(source, user, attempt.namespace)) {
    if (!rules.some(rule => allows(rule, attempt))) continue
    const bound = binding.metadata.namespace
      ? `RoleBinding "${binding.metadata.name}/${binding.metadata.namespace}"`
      : `ClusterRoleBinding "${binding.metadata.name}"`
    const to = `${subject.kind} "${subject.kind === 'ServiceAccount' ? `${subject.name}/${subject.namespace}` : subject.name}"`
    return { allowed: true, reason: `RBAC: allowed by ${bound} of ${role.kind} "${role.name}" to ${to}` }
  }
  return { allowed: false, reason: '' }
}

/** Every rule that holds for a user in a namespace; in none: everywhere. */
export function rulesOf(source: RoleSource, user: User, namespace: string | undefined): PolicyRule[] {
  if (user.groups.includes('system:masters')) {
    return [
      { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
      { verbs: ['*'], nonResourceURLs: ['*'] },
    ]
  }
  return grants(source, user, namespace).flatMap(({ rules }) => rules)
}

interface Grant {
  rules: PolicyRule[]
  binding: Obj
  role: { kind: string; name: string }
  subject: Subject
}

function grants(source: RoleSource, user: User, namespace: string | undefined): Grant[] {
  const bindings = [...source.list('clusterrolebindings'), ...(namespace ? source.list('rolebindings', namespace) : [])]
  return bindings.flatMap((binding): Grant[] => {
    const subject = ((binding.subjects ?? []) as Subject[]).find(one =>
      isSubject(one, user, binding.metadata.namespace),
    )
    if (!subject) return []
    const { kind, name } = binding.roleRef
    const role =
      kind === 'Role' ? source.get('roles', name, binding.metadata.namespace) : source.get('clusterroles', name)
    return role ? [{ rules: role.rules ?? [], binding, role: { kind, name }, subject }] : []
  })
}

function isSubject(subject: Subject, user: User, namespace: string | undefined): boolean {
  if (subject.kind === 'User') return subject.name === user.name
  if (subject.kind === 'Group') return user.groups.includes(subject.name)
  return user.name === `system:serviceaccount:${subject.namespace ?? namespace ?? ''}:${subject.name}`
}
