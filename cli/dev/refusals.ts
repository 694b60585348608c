/**
 * Refused requests, each answered once with the rule to declare.
 */
import type { Answered, Api } from '../../devcluster/api/server.ts'
import { refusalText } from '../../devcluster/testing/rule.ts'

const reading = ['get', 'list', 'watch']

/** @param tell called with each rule that is missing, once until `forget` */
export function tellRefusals(api: Api, tell: (text: string) => void): { forget(): void; stop(): void } {
  const told = new Set<string>()
  const stop = api.onRequest(answered => {
    if (answered.code !== 403) return
    void missing(api, answered).then(verbs => {
      const { group, resource = '', subresource, namespace, user } = answered
      const name = subresource ? `${resource}/${subresource}` : resource
      const key = JSON.stringify([user.name, group, name, verbs])
      if (verbs.length === 0 || told.has(key)) return
      told.add(key)
      const full = group === '' ? name : `${resource}.${group}${subresource ? `/${subresource}` : ''}`
      const where = namespace ? ` in namespace ${namespace}` : ''
      const rule = { apiGroups: [group], resources: [name], verbs }
      tell(refusalText({ user: user.name, what: `${answered.verb} ${full}${where}`, rule, count: 1 }))
    })
  })
  return { forget: () => told.clear(), stop }
}

/** The verbs that a rule lacks; none where it was refused for another reason, such as a namespace that goes. */
async function missing(api: Api, answered: Answered): Promise<string[]> {
  const { user, code: _, ...attributes } = answered
  const { authorize } = api.hooks
  if (!authorize || attributes.resource === undefined) return []
  // An apply of something new is a creation too; whoever watches reads in all three ways.
  const { verb } = attributes
  const asked = verb === 'patch' ? ['patch', 'create'] : verb === 'list' || verb === 'watch' ? reading : [verb]
  const allowed = await Promise.all(
    asked.map(async one => (await authorize({ ...attributes, verb: one }, user)).allowed),
  )
  return asked.filter((_, index) => !allowed[index])
}
