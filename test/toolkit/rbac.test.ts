import { expect, it } from 'vitest'
import { defineKind } from '../../controller/kube/kind.ts'
import { ConfigMap, Deployment } from '../../controller/kube/kinds.ts'
import {
  advancedReconciler,
  basicReconciler,
  mutable,
  rbacOf,
  rbacYaml,
  stepper,
} from '../../controller/toolkit/index.ts'

interface Site {
  spec: { size: number }
}
const Site = defineKind<Site>({ group: 'example.com', version: 'v1', kind: 'Site' })
const servers = mutable(Deployment, Site, { mutateWithInitialData: () => ({}) })
const rulesOf = (...options: Parameters<typeof advancedReconciler<Site>>[1][]) =>
  rbacOf(
    options.map(one => advancedReconciler(Site, one)),
    { lease: 'sites' },
  )
const usual = [
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  {
    apiGroups: ['apiextensions.k8s.io'],
    resources: ['customresourcedefinitions'],
    verbs: ['get', 'list', 'watch'],
  },
]

it('an operator may do what it declares, and nothing else', () => {
  expect(rulesOf({ resources: [servers] }).rules).toEqual([
    { apiGroups: ['example.com'], resources: ['sites'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['example.com'], resources: ['sites/status'], verbs: ['patch'] },
    { apiGroups: ['example.com'], resources: ['sites/finalizers'], verbs: ['update'] },
    { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'] },
    ...usual,
  ])
})

it('one that only looks may only look', () => {
  expect(rulesOf({}).rules.slice(0, 2)).toEqual([
    { apiGroups: ['example.com'], resources: ['sites'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['example.com'], resources: ['sites/status'], verbs: ['patch'] },
  ])
})

it('a finalizer, pods and what the hooks do are added, each verb once', () => {
  const { rules } = rulesOf({
    engine: stepper({ CRFinalizer() {} }),
    pods: true,
    owns: [ConfigMap],
    permissions: [{ apiGroups: [''], resources: ['configmaps', 'pods/exec'], verbs: ['create'] }],
  })
  const verbs = (resource: string) => rules.find(({ resources }) => resources.includes(resource))?.verbs
  expect(verbs('sites')).toEqual(['get', 'list', 'watch', 'patch'])
  expect(verbs('pods')).toEqual(['get', 'list', 'watch'])
  expect(verbs('pods/exec')).toEqual(['create'])
  expect(verbs('configmaps')).toEqual(['get', 'list', 'watch', 'create', 'patch', 'delete'])
})

it.each([
  [{ pods: true }, { pods: ['get', 'list', 'watch'] }],
  [{ pods: 'list' }, { pods: ['list'] }],
  [{ exec: true }, { pods: ['list'], 'pods/exec': ['get', 'create'] }],
  [
    { exec: true, pods: true },
    { pods: ['get', 'list', 'watch'], 'pods/exec': ['get', 'create'] },
  ],
] as const)('what is said of pods (%j) is what may be done to them', (said, verbs) => {
  const rules = rulesOf(said).rules.filter(({ resources }) => resources[0]?.startsWith('pods'))
  expect(Object.fromEntries(rules.map(({ resources, verbs }) => [resources[0], verbs]))).toEqual(verbs)
})

it('one that only creates may not delete', () => {
  const { rules } = rbacOf([basicReconciler(Site, { resources: [servers] })])
  expect(rules.find(({ resources }) => resources.includes('deployments'))?.verbs).toEqual([
    ...['get', 'list', 'watch', 'create', 'patch'],
  ])
})

it('one that owns none of its children may not block the deletion of its owner', () => {
  const free = mutable(Deployment, Site, { owner: false, mutateWithInitialData: () => ({}) })
  expect(rulesOf({ resources: [free] }).rules.flatMap(({ resources }) => resources)).not.toContain('sites/finalizers')
})

it('one whose children are declared while it runs may put its finalizer on, as they may need one', () => {
  const { rules } = rulesOf({ owns: [ConfigMap] })
  expect(rules.find(({ resources }) => resources.includes('sites'))?.verbs).toContain('patch')
})

it('its lease is its own alone', () => {
  expect(rulesOf({}).own).toEqual([
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'update'], resourceNames: ['sites'] },
  ])
})

it('as YAML it is an account, and what binds it to its roles', () => {
  const text = rbacYaml(rulesOf({}), { name: 'sites', namespace: 'operators' })
  expect([...text.matchAll(/^kind: (\w+)/gm)].map(([, kind]) => kind)).toEqual([
    'ServiceAccount',
    'ClusterRole',
    'ClusterRoleBinding',
    'Role',
    'RoleBinding',
  ])
})
