/**
 * What the app controller may do on the cluster: what its reconcilers declare, and no more.
 */
import { mergedRules, type PolicyRule, type Rbac, rbacOf } from '../toolkit/rbac.ts'
import { lifecycleReconciler } from './lifecycles.ts'
import { orphanPermissions } from './orphans/controller.ts'
import { appReconciler } from './reconciler.ts'
import { scheduleOperator } from './schedule/operator.ts'
import { rootSecret } from './trust/trust.ts'

export interface ShipmateRbac extends Rbac {
  /** Of the rules, those for what is in namespaces: for a ClusterRole, or for a Role in each namespace that is watched. */
  readonly everywhere: PolicyRule[]
  /** Of the rules, those for what is in no namespace: for a ClusterRole, whatever is watched. */
  readonly cluster: PolicyRule[]
}

/** The certificates of apps, the root of trust, and parameters that come from Secrets. */
const secrets: PolicyRule = {
  apiGroups: [''],
  resources: ['secrets'],
  verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
}

/** What is done in its own namespace, whatever is watched: the root of trust is kept, and who leads is said in an event. */
const atHome: PolicyRule[] = [
  { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'update'], resourceNames: [rootSecret] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
]

/** Resources that are in no namespace. */
const unplaced = ['nodes', 'customresourcedefinitions']

/** @param lease the name of its Lease */
export function shipmateRbac(lease: string): ShipmateRbac {
  // Rules follow from what is declared; nothing is reconciled here.
  const nowhere = {} as never
  const found = rbacOf([appReconciler(nowhere), lifecycleReconciler(nowhere), scheduleOperator()], { lease })
  const rules = mergedRules([...found.rules, ...orphanPermissions, secrets])
  const isUnplaced = ({ resources }: PolicyRule) => resources.some(resource => unplaced.includes(resource))
  return {
    rules,
    everywhere: rules.filter(rule => !isUnplaced(rule)),
    cluster: rules.filter(isUnplaced),
    own: [...found.own, ...atHome],
  }
}
