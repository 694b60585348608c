/**
 * What the controller may do, from what it declares and no wider: everywhere, or in the namespaces that it watches alone. And what people may do with its kinds, added to
 * Kubernetes' own roles view, edit and admin.
 */
import { shipmateRbac } from '../../controller/app/rbac.ts'
import { callerRules } from '../../controller/runtime/index.ts'
import { group } from '../../shared/kinds/group.ts'
import { either, given, item, namespace, not, repeat, value, when } from './expression.ts'
import { controller, hasWebhooks, labels, registration, shardName, shards, watched, webhookSecret } from './names.ts'

const apiVersion = 'rbac.authorization.k8s.io/v1'
const apiGroup = 'rbac.authorization.k8s.io'
const subjects = [{ kind: 'ServiceAccount', name: controller, namespace }]
const { everywhere, cluster, own } = shipmateRbac('')
const hasReviews = either(value('metrics.auth'), hasWebhooks)

function clusterRole(name: string, rules: readonly unknown[], more: object = {}): object {
  return { apiVersion, kind: 'ClusterRole', metadata: { name, labels: { ...labels, ...more } }, rules }
}

function bound(name: string): object {
  const roleRef = { apiGroup, kind: 'ClusterRole', name }
  return { apiVersion, kind: 'ClusterRoleBinding', metadata: { name, labels }, roleRef, subjects }
}

function role(name: string, where: unknown, rules: readonly unknown[]): object[] {
  const metadata = { name, namespace: where, labels }
  return [
    { apiVersion, kind: 'Role', metadata, rules },
    { apiVersion, kind: 'RoleBinding', metadata, roleRef: { apiGroup, kind: 'Role', name }, subjects },
  ]
}

/** The rule for a lease names it: there is one for each shard. */
const ownRules = own.map(rule =>
  rule.resources.includes('leases') && rule.resourceNames
    ? { ...rule, resourceNames: [repeat(shards, shardName)] }
    : rule,
)
const webhookRules = [
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'],
    verbs: ['get', 'patch'],
    resourceNames: [registration],
  },
]

export const account: unknown[] = [
  {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: controller, namespace, labels, annotations: given('serviceAccountAnnotations') },
    imagePullSecrets: when(value('pullSecrets'), [repeat(value('pullSecrets'), { name: item })]),
  },
  clusterRole(`${controller}-cluster`, cluster),
  bound(`${controller}-cluster`),
  when(not(watched), clusterRole(controller, everywhere)),
  when(not(watched), bound(controller)),
  ...role(controller, item, everywhere).map(object => repeat(watched, object)),
  ...role(`${controller}-own`, namespace, ownRules),
  when(hasReviews, clusterRole(`${controller}-reviews`, callerRules)),
  when(hasReviews, bound(`${controller}-reviews`)),
  when(hasWebhooks, clusterRole(`${controller}-webhooks`, webhookRules)),
  when(hasWebhooks, bound(`${controller}-webhooks`)),
  ...role(`${controller}-webhooks`, namespace, [
    { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
    { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'update'], resourceNames: [webhookSecret] },
  ]).map(object => when(hasWebhooks, object)),
]

const reading = ['get', 'list', 'watch']
const writing = ['create', 'update', 'patch', 'delete', 'deletecollection']
const wishes = ['statefulapps', 'operations', 'operationschedules']
const kinds = ['lifecycles', ...wishes]

/** Who is added to which of Kubernetes' own roles. */
function forPeople(name: string, to: string, rules: readonly object[]): unknown {
  const label = `rbac.authorization.k8s.io/aggregate-to-${to}`
  return {
    apiVersion,
    kind: 'ClusterRole',
    metadata: { name, labels: { ...labels, [label]: when(value('rbac.aggregate'), 'true') } },
    rules,
  }
}

export const people: unknown[] = [
  forPeople('shipmate-viewer', 'view', [{ apiGroups: [group], resources: kinds, verbs: reading }]),
  forPeople('shipmate-editor', 'edit', [{ apiGroups: [group], resources: wishes, verbs: writing }]),
  // Who writes a lifecycle defines commands that pods run; who settles says what has happened.
  forPeople('shipmate-admin', 'admin', [
    { apiGroups: [group], resources: ['lifecycles'], verbs: writing },
    { apiGroups: [group], resources: ['operations'], verbs: ['settle'] },
  ]),
  clusterRole('shipmate-metrics-reader', [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }]),
]
