/** Who may what. */
import { expect } from 'vitest'
import { type Case, configMap } from './case.ts'

const as = (user: string, ...groups: string[]) => ({
  headers: { 'impersonate-user': user, ...(groups.length > 0 ? { 'impersonate-group': groups.join(', ') } : {}) },
})
const rbac = 'rbac.authorization.k8s.io/v1'

export const access: readonly Case[] = [
  {
    name: 'who has no rule is refused, in words that say which rule is missing',
    async run({ ask, core, namespace }) {
      const refused = await ask(`GET ${core}/configmaps`, undefined, as('jane'))
      expect([refused.status, refused.body.reason]).toEqual([403, 'Forbidden'])
      expect(refused.body.message).toBe(
        `configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace "${namespace}"`,
      )
      const cluster = await ask('GET /api/v1/nodes', undefined, as('jane'))
      expect(cluster.body.message).toBe(
        'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope',
      )
      const path = await ask('GET /metrics', undefined, as('jane'))
      expect(path.body.message).toBe('forbidden: User "jane" cannot get path "/metrics"')
    },
  },
  {
    name: 'a role and a binding let somebody do that, and no more',
    async run({ ask, core, namespace }) {
      const path = `/apis/${rbac}/namespaces/${namespace}`
      await ask(`POST ${path}/roles`, {
        metadata: { name: 'r' },
        rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create'] }],
      })
      await ask(`POST ${path}/rolebindings`, {
        metadata: { name: 'b' },
        roleRef: { kind: 'Role', name: 'r', apiGroup: 'rbac.authorization.k8s.io' },
        subjects: [{ kind: 'User', name: `jane-${namespace}` }],
      })
      const jane = as(`jane-${namespace}`)
      // A real server learns of a new rule by a watch.
      await expect.poll(async () => (await ask(`POST ${core}/configmaps`, configMap('a'), jane)).status).toBe(201)
      expect((await ask(`GET ${core}/configmaps/a`, undefined, jane)).status).toBe(200)
      expect((await ask(`DELETE ${core}/configmaps/a`, undefined, jane)).status).toBe(403)
    },
  },
  {
    name: 'nobody grants what they may not do themselves',
    async run({ ask, namespace }) {
      const path = `/apis/${rbac}/namespaces/${namespace}`
      const user = `grantor-${namespace}`
      await ask(`POST ${path}/roles`, {
        metadata: { name: 'grantor' },
        rules: [{ apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['create'] }],
      })
      await ask(`POST ${path}/rolebindings`, {
        metadata: { name: 'grantor' },
        roleRef: { kind: 'Role', name: 'grantor', apiGroup: 'rbac.authorization.k8s.io' },
        subjects: [{ kind: 'User', name: user }],
      })
      const role = { metadata: { name: 'x' }, rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }] }
      await expect
        .poll(async () => (await ask(`POST ${path}/roles`, role, as(user))).body.message)
        .toContain('is attempting to grant RBAC permissions not currently held')
      const refused = await ask(`POST ${path}/roles`, role, as(user))
      expect(refused.body.message).toBe(
        `roles.rbac.authorization.k8s.io "x" is forbidden: user "${user}" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`,
      )
    },
  },
  {
    name: 'reviews answer who may what',
    async run({ ask, namespace }) {
      const review = (user: string, groups: string[]) =>
        ask('POST /apis/authorization.k8s.io/v1/subjectaccessreviews', {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: { user, groups, resourceAttributes: { namespace, verb: 'get', resource: 'pods' } },
        })
      const [no, yes] = [await review('jane', []), await review('root', ['system:masters'])]
      expect([no.status, no.body.status.allowed]).toEqual([201, false])
      expect([yes.status, yes.body.status.allowed]).toEqual([201, true])
      const self = await ask(
        'POST /apis/authentication.k8s.io/v1/selfsubjectreviews',
        { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
        as('jane', 'crew'),
      )
      expect(self.body.status.userInfo).toMatchObject({ username: 'jane', groups: ['crew', 'system:authenticated'] })
    },
  },
  {
    name: 'only who says for whom acts for others',
    async run({ ask, core }) {
      const refused = await ask(`GET ${core}/configmaps`, undefined, { headers: { 'impersonate-group': 'crew' } })
      expect([refused.status, refused.body.reason]).toEqual([400, 'BadRequest'])
    },
  },
  {
    name: "a token is its service account's",
    async run({ ask, core, namespace }) {
      await ask(`POST ${core}/serviceaccounts`, { metadata: { name: 'app' } })
      const { status, body } = await ask(`POST ${core}/serviceaccounts/app/token`, {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { expirationSeconds: 600 },
      })
      expect(status).toBe(201)
      const review = await ask('POST /apis/authentication.k8s.io/v1/tokenreviews', {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token: body.status.token },
      })
      expect(review.body.status).toMatchObject({
        authenticated: true,
        user: {
          username: `system:serviceaccount:${namespace}:app`,
          groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
        },
      })
      const short = await ask(`POST ${core}/serviceaccounts/app/token`, { spec: { expirationSeconds: 1 } })
      expect(short.status).toBe(422)
    },
  },
]
