/**
 * What the app controller may do on the cluster: what its reconcilers declare, and no more.
 */
import { type PolicyRule, type Rbac, rbacOf } from '../toolkit/rbac.ts'
import { lifecycleReconciler } from './lifecycles.ts'
import { orphanPermissions } from './orphans/controller.ts'
import { appReconciler } from './reconciler.ts'
import { scheduleOperator } from './schedule/operator.ts'

/** The certificates of apps, the root of trust, and parameters that come from Secrets. */
const secrets: PolicyRule = {
  apiGroups: [''],
  resources: ['secrets'],
  verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
}

/** @param lease the name of its Lease */
export function shipmateRbac(lease: string): Rbac {
  // Rules follow from what is declared; nothing is reconciled here.
  const nowhere = {} as never
  const { rules, own } = rbacOf([appReconciler(nowhere), lifecycleReconciler(nowhere), scheduleOperator()], { lease })
  return { rules: [...rules, ...orphanPermissions, secrets], own }
}
