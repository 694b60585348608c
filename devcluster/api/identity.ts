/**
 * Who asks: by the certificate of the connection, or by a bearer token; and for whom, where they act for somebody else.
 */
import { badRequest, forbidden, unauthorized } from './problems.ts'
import type { Api } from './server.ts'
import type { User } from './types.ts'

type Headers = Readonly<Record<string, string | string[] | undefined>>

const anonymous: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

export interface Subject {
  readonly CN?: string | string[]
  readonly O?: string | string[]
}

const several = (value: string | string[] | undefined) => (value === undefined ? [] : [value].flat())

/** @param tokens of persons, by token */
export function userOf(
  api: Api,
  headers: Headers,
  subject: Subject | undefined,
  tokens: ReadonlyMap<string, User>,
): User {
  const [name] = several(subject?.CN)
  if (name) return { name, groups: [...several(subject?.O), 'system:authenticated'] }
  const header = several(headers.authorization)[0]
  const token = header && /^bearer\s+(\S+)\s*$/i.exec(header)?.[1]
  if (!token) return anonymous
  const user = tokens.get(token) ?? api.tokens.check(token, api.clock.now())
  if (!user) throw unauthorized()
  return user
}

/** The one that the request is to be answered as. Throws 403 where that is not allowed. */
export async function impersonated(api: Api, user: User, headers: Headers): Promise<User> {
  const names = Object.keys(headers).filter(name => name.startsWith('impersonate-'))
  if (names.length === 0) return user
  const [name] = several(headers['impersonate-user'])
  const groups = several(headers['impersonate-group']).flatMap(text => text.split(/,\s*/))
  const [uid] = several(headers['impersonate-uid'])
  const extra: Record<string, string[]> = {}
  for (const header of names.filter(one => one.startsWith('impersonate-extra-'))) {
    extra[decodeURIComponent(header.slice('impersonate-extra-'.length))] = several(headers[header])
  }
  if (!name) {
    const list = groups.length > 0 ? `[]string{${groups.map(one => JSON.stringify(one)).join(', ')}}` : '[]string(nil)'
    throw badRequest(
      `requested &user.DefaultInfo{Name:"", UID:${JSON.stringify(uid ?? '')}, Groups:${list}, Extra:map[string][]string(nil)} without impersonating a user name`,
    )
  }
  const account = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(name)
  if (account) await allow(api, user, '', 'serviceaccounts', account[2] ?? '', account[1])
  else await allow(api, user, '', 'users', name)
  for (const group of groups) await allow(api, user, '', 'groups', group)
  if (uid) await allow(api, user, 'authentication.k8s.io', 'uids', uid)
  for (const [key, values] of Object.entries(extra)) {
    for (const value of values) await allow(api, user, 'authentication.k8s.io', `userextras/${key}`, value)
  }
  const own = account ? ['system:serviceaccounts', `system:serviceaccounts:${account[1]}`] : []
  const all = new Set([
    ...(groups.length > 0 ? groups : own),
    name === anonymous.name ? 'system:unauthenticated' : 'system:authenticated',
  ])
  return { name, uid, groups: [...all], extra }
}

async function allow(
  api: Api,
  user: User,
  group: string,
  resource: string,
  name: string,
  namespace?: string,
): Promise<void> {
  const [plural = '', subresource] = resource.split('/')
  const verdict = await api.hooks.authorize?.(
    { verb: 'impersonate', group, version: 'v1', resource: plural, subresource, namespace, name, path: '' },
    user,
  )
  if (!verdict || verdict.allowed) return
  const where = namespace ? `in the namespace ${JSON.stringify(namespace)}` : 'at the cluster scope'
  throw forbidden(
    { group, resource: plural },
    name,
    `User ${JSON.stringify(user.name)} cannot impersonate resource ${JSON.stringify(resource)} in API group ${JSON.stringify(group)} ${where}`,
  )
}
