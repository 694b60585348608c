/**
 * Roles that every cluster has: those that people bind (cluster-admin, admin, edit, view) and those that let anybody ask what is served.
 */
import type { PolicyRule } from './rules.ts'

interface Bound {
  name: string
  role: string
  groups: string[]
}

const read = ['get', 'list', 'watch']
const write = ['create', 'delete', 'deletecollection', 'patch', 'update']
const toEdit = 'rbac.authorization.k8s.io/aggregate-to-edit'
const toAdmin = 'rbac.authorization.k8s.io/aggregate-to-admin'
const toView = 'rbac.authorization.k8s.io/aggregate-to-view'

/** Resources that people who work in a namespace use; secrets and rights apart. */
const everyday: [string, string[]][] = [
  [
    '',
    [
      'configmaps',
      'endpoints',
      'events',
      'persistentvolumeclaims',
      'pods',
      'podtemplates',
      'serviceaccounts',
      'services',
      'pods/log',
      'pods/status',
      'services/status',
      'persistentvolumeclaims/status',
    ],
  ],
  [
    'apps',
    ['controllerrevisions', 'daemonsets', 'deployments', 'replicasets', 'statefulsets'].flatMap(name => [
      name,
      `${name}/status`,
      `${name}/scale`,
    ]),
  ],
  ['autoscaling', ['horizontalpodautoscalers', 'horizontalpodautoscalers/status']],
  ['batch', ['cronjobs', 'cronjobs/status', 'jobs', 'jobs/status']],
  ['discovery.k8s.io', ['endpointslices']],
  ['events.k8s.io', ['events']],
  ['networking.k8s.io', ['ingresses', 'ingresses/status', 'networkpolicies']],
  ['policy', ['poddisruptionbudgets', 'poddisruptionbudgets/status']],
]

const viewing: PolicyRule[] = everyday.map(([group, resources]) => ({ apiGroups: [group], resources, verbs: read }))
const editing: PolicyRule[] = [
  ...everyday.map(([group, resources]) => ({
    apiGroups: [group],
    resources: resources.filter(one => !/\/(status|log)$/.test(one)),
    verbs: write,
  })),
  { apiGroups: [''], resources: ['secrets'], verbs: [...read, ...write] },
  {
    apiGroups: [''],
    resources: ['pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy', 'services/proxy'],
    verbs: ['get', ...write],
  },
  { apiGroups: [''], resources: ['pods/eviction', 'serviceaccounts/token'], verbs: ['create'] },
  { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['impersonate'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...read, ...write] },
]
const administering: PolicyRule[] = [
  { apiGroups: ['authorization.k8s.io'], resources: ['localsubjectaccessreviews'], verbs: ['create'] },
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['rolebindings', 'roles'], verbs: [...read, ...write] },
]

const documents = [
  '/api',
  '/api/*',
  '/apis',
  '/apis/*',
  '/healthz',
  '/livez',
  '/openapi',
  '/openapi/*',
  '/readyz',
  '/version',
  '/version/',
]

const roles: Record<string, { rules: PolicyRule[]; labels?: Record<string, string>; selects?: string }> = {
  'cluster-admin': {
    rules: [
      { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
      { nonResourceURLs: ['*'], verbs: ['*'] },
    ],
  },
  admin: { rules: [...administering, ...editing, ...viewing], selects: toAdmin },
  edit: { rules: [...editing, ...viewing], selects: toEdit, labels: { [toAdmin]: 'true' } },
  view: { rules: viewing, selects: toView, labels: { [toEdit]: 'true' } },
  'system:aggregate-to-admin': { rules: administering, labels: { [toAdmin]: 'true' } },
  'system:aggregate-to-edit': { rules: editing, labels: { [toEdit]: 'true' } },
  'system:aggregate-to-view': { rules: viewing, labels: { [toView]: 'true' } },
  'system:basic-user': {
    rules: [
      {
        apiGroups: ['authorization.k8s.io'],
        resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
        verbs: ['create'],
      },
      { apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'], verbs: ['create'] },
    ],
  },
  'system:discovery': { rules: [{ nonResourceURLs: documents, verbs: ['get'] }] },
  'system:public-info-viewer': {
    rules: [{ nonResourceURLs: ['/healthz', '/livez', '/readyz', '/version', '/version/'], verbs: ['get'] }],
  },
  'system:auth-delegator': {
    rules: [
      { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
      { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
    ],
  },
}

const bindings: Bound[] = [
  { name: 'cluster-admin', role: 'cluster-admin', groups: ['system:masters'] },
  { name: 'system:basic-user', role: 'system:basic-user', groups: ['system:authenticated'] },
  { name: 'system:discovery', role: 'system:discovery', groups: ['system:authenticated'] },
  {
    name: 'system:public-info-viewer',
    role: 'system:public-info-viewer',
    groups: ['system:authenticated', 'system:unauthenticated'],
  },
]

const apiVersion = 'rbac.authorization.k8s.io/v1'
const own = { 'kubernetes.io/bootstrapping': 'rbac-defaults' }

/** As they are created at the start. */
export function bootstrapRoles(): object[] {
  const made = Object.entries(roles).map(([name, { rules, labels, selects }]) => ({
    apiVersion,
    kind: 'ClusterRole',
    metadata: { name, labels: { ...own, ...labels } },
    ...(selects ? { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [selects]: 'true' } }] } } : {}),
    rules,
  }))
  const bound = bindings.map(({ name, role, groups }) => ({
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata: { name, labels: own },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: groups.map(group => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group })),
  }))
  return [...made, ...bound]
}
