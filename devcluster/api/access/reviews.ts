/**
 * Answers to those who ask about rights and identities: the reviews of authorization.k8s.io and authentication.k8s.io. Nothing of them is stored.
 */
import type { Obj, User } from '../types.ts'
import { mayDo, type RoleSource, rulesOf } from './rbac.ts'
import type { Attempt } from './rules.ts'

export interface ReviewSource {
  readonly roles: RoleSource
  /** Whose token it is; undefined for one that nobody has. */
  userOf(token: string): User | undefined
}

/** The review with its status, or undefined for a resource that is none. */
export function review(source: ReviewSource, resource: string, object: Obj, asker: User): Obj | undefined {
  const answer = answers[resource]
  return answer && { ...object, metadata: object.metadata ?? {}, status: answer(source, object, asker) }
}

type Answer = (source: ReviewSource, object: Obj, asker: User) => object

const answers: Record<string, Answer> = {
  selfsubjectaccessreviews: ({ roles }, { spec }, asker) => verdict(roles, asker, spec),
  subjectaccessreviews: ({ roles }, { spec }) => verdict(roles, subjectOf(spec), spec),
  localsubjectaccessreviews: ({ roles }, { spec }) => verdict(roles, subjectOf(spec), spec),
  selfsubjectrulesreviews: ({ roles }, { spec }, asker) => {
    const rules = rulesOf(roles, asker, spec?.namespace)
    return {
      resourceRules: rules.filter(rule => rule.resources?.length).map(({ nonResourceURLs: _, ...rule }) => rule),
      nonResourceRules: rules
        .filter(rule => rule.nonResourceURLs?.length)
        .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
      incomplete: false,
    }
  },
  selfsubjectreviews: (_, __, asker) => ({ userInfo: infoOf(asker) }),
  tokenreviews: ({ userOf }, { spec }) => {
    const user = userOf(spec?.token ?? '')
    if (!user) return { authenticated: false, user: {}, error: 'invalid bearer token' }
    return { authenticated: true, user: infoOf(user), audiences: spec?.audiences ?? ['https://kubernetes.default.svc'] }
  },
}

interface AccessSpec {
  user?: string
  uid?: string
  groups?: string[]
  extra?: Record<string, string[]>
  resourceAttributes?: {
    namespace?: string
    verb?: string
    group?: string
    resource?: string
    subresource?: string
    name?: string
  }
  nonResourceAttributes?: { path?: string; verb?: string }
}

function verdict(roles: RoleSource, user: User, spec: AccessSpec = {}): object {
  const { allowed, reason } = mayDo(roles, user, attemptOf(spec))
  return { allowed, ...(reason ? { reason } : {}) }
}

function attemptOf({ resourceAttributes: about, nonResourceAttributes: other }: AccessSpec): Attempt {
  if (!about) return { verb: other?.verb ?? '', group: '', resource: '', path: other?.path ?? '' }
  return {
    verb: about.verb ?? '',
    group: about.group ?? '',
    resource: about.resource ?? '',
    subresource: about.subresource || undefined,
    namespace: about.namespace || undefined,
    name: about.name || undefined,
  }
}

function subjectOf({ user = '', uid, groups = [], extra }: AccessSpec = {}): User {
  return { name: user, uid, groups, extra }
}

function infoOf({ name, uid, groups, extra }: User): object {
  return { username: name, ...(uid ? { uid } : {}), groups, ...(extra ? { extra } : {}) }
}
