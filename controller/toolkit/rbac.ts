/**
 * What an operator may do on the cluster, from what it declares that it watches and writes: no rule is wider. Pure.
 *
 * - Its custom resource: read, the status written, and patched where there is a finalizer, or where children that are declared while it runs may need one.
 * - Pods: read with `pods: true`, listed with `pods: 'list'`, and listed to run commands in them with `exec: true`.
 * - Each kind of child: read, applied (create and patch), and deleted unless it is only created.
 * - Where its kind has webhooks: their Secret, their registrations and the CRD that they convert, each by name.
 * - Besides: its lease, events, and the CRDs, to notice one that comes later or differs.
 * What its hooks do beyond that stands in `permissions`.
 */
import type { Kind } from '../kube/kind.ts'
import { Pod } from '../kube/kinds.ts'
import { secretNameOf, webhookRights } from '../runtime/index.ts'
import { webhooksOf } from './admission.ts'
import { yaml } from './libraries.ts'
import type { Reconciler, ReconcilerOptions } from './reconciler.ts'

export interface PolicyRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[] | undefined
}

export interface Rbac {
  /** For a ClusterRole, or for a Role in each namespace that is watched. */
  readonly rules: PolicyRule[]
  /** For a Role in the operator's own namespace: its lease, by default that of `run`. */
  readonly own: PolicyRule[]
}

export interface RbacOptions {
  /** The name of its lease, and of its webhooks. Default: the first operator's. */
  readonly lease?: string | undefined
  /** Whether it applies the registrations of its webhooks itself: `webhooks: { register: true }` of `run`. Default false. */
  readonly register?: boolean | undefined
}

const reading = ['get', 'list', 'watch']

// biome-ignore lint/suspicious/noExplicitAny: rules follow from reconcilers of any kind.
export function rbacOf(operators: readonly Reconciler<any>[], options: RbacOptions = {}): Rbac {
  const lease = options.lease ?? operators[0]?.name ?? 'shipmate'
  const rules = operators.flatMap(({ kind, kinds, mayHold, mayDelete, options: declared }) => [
    rule(kind, mayHold ? [...reading, 'patch'] : reading),
    rule(kind, ['patch'], 'status'),
    // Where the server enforces it, owning something that blocks its owner's deletion needs this.
    ...(ownsSome(declared) ? [rule(kind, ['update'], 'finalizers')] : []),
    ...kinds.map(child => rule(child, [...reading, 'create', 'patch', ...(mayDelete ? ['delete'] : [])])),
    ...podRules(declared),
    ...(declared.watches ?? []).map(({ kind: other }) => rule(other, reading)),
    ...(declared.permissions ?? []),
  ])
  const hooks = operators.flatMap(({ kind }) => webhooksOf(kind))
  const rights = webhookRights(hooks, lease, { secret: secretNameOf(lease), register: options.register })
  return {
    rules: mergedRules([
      ...rules,
      ...rights.rules,
      { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
      { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: reading },
    ]),
    own: [
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'update'], resourceNames: [lease] },
      ...rights.own,
    ],
  }
}

/** The account of an operator, and what it may do, as objects to apply. @param namespace the operator's own */
export function rbacManifests(
  { rules, own }: Rbac,
  { name, namespace }: { readonly name: string; readonly namespace: string },
): object[] {
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const apiGroup = 'rbac.authorization.k8s.io'
  const subjects = [{ kind: 'ServiceAccount', name, namespace }]
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    { apiVersion, kind: 'ClusterRole', metadata: { name }, rules },
    {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup, kind: 'ClusterRole', name },
      subjects,
    },
    { apiVersion, kind: 'Role', metadata: { name, namespace }, rules: own },
    {
      apiVersion,
      kind: 'RoleBinding',
      metadata: { name, namespace },
      roleRef: { apiGroup, kind: 'Role', name },
      subjects,
    },
  ]
}

/** The same as YAML, marked as generated. */
export function rbacYaml(rbac: Rbac, place: { readonly name: string; readonly namespace: string }): string {
  const documents = rbacManifests(rbac, place).map(object => yaml().stringify(object, { lineWidth: 0 }))
  return `# Generated from what the operator declares: shipmate gen rbac. Do not edit.\n${documents.join('---\n')}`
}

// biome-ignore lint/suspicious/noExplicitAny: whatever the kind is.
function podRules({ pods, exec }: ReconcilerOptions<any>): PolicyRule[] {
  const read = pods === true ? [rule(Pod, reading)] : pods || exec ? [rule(Pod, ['list'])] : []
  // A WebSocket begins as a GET; newer servers ask for `create` besides.
  return exec ? [...read, rule(Pod, ['get', 'create'], 'exec')] : read
}

/** Whether some child may have the custom resource as its owner. */
// biome-ignore lint/suspicious/noExplicitAny: whatever the kind is.
function ownsSome({ resources = [], owns = [] }: ReconcilerOptions<any>): boolean {
  return owns.length > 0 || resources.some(({ options }) => options.owner !== false)
}

function rule({ group, plural }: Kind, verbs: readonly string[], subresource?: string): PolicyRule {
  return { apiGroups: [group], resources: [subresource ? `${plural}/${subresource}` : plural], verbs }
}

/** One rule for each resource, with all its verbs; those that name objects stay as they are. */
export function mergedRules(rules: readonly PolicyRule[]): PolicyRule[] {
  const named = rules.filter(({ resourceNames }) => resourceNames)
  const verbs = new Map<string, Set<string>>()
  for (const { apiGroups, resources, verbs: given } of rules.filter(({ resourceNames }) => !resourceNames)) {
    for (const group of apiGroups)
      for (const resource of resources) {
        const key = `${group} ${resource}`
        verbs.set(key, new Set([...(verbs.get(key) ?? []), ...given]))
      }
  }
  const all = [...verbs].map(([key, given]): PolicyRule => {
    const [group = '', resource = ''] = key.split(' ')
    return { apiGroups: [group], resources: [resource], verbs: [...given] }
  })
  return [...all, ...named]
}
