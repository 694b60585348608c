/**
 * ClusterRoles that are put together from others: the rules of all that their aggregationRule selects, in the order of their names.
 */
import { isDeepStrictEqual } from 'node:util'
import type { V1ClusterRole } from '@kubernetes/client-node'
import type { Snapshot } from '../../controller/kube/kind.ts'
import { ClusterRole } from '../../controller/kube/kinds.ts'
import { selects } from '../../controller/kube/labelselector.ts'
import { type Install, named } from './common/surroundings.ts'

type Role = Snapshot<V1ClusterRole>

/** Pure. */
function aggregatedRules(role: Role, all: readonly Role[]): NonNullable<Role['rules']>[number][] {
  const selectors = role.aggregationRule?.clusterRoleSelectors ?? []
  const rules: NonNullable<Role['rules']>[number][] = []
  const byName = all.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  for (const selector of selectors)
    for (const other of byName) {
      if (other.metadata.name === role.metadata.name || !selects(selector, other.metadata.labels)) continue
      for (const rule of other.rules ?? []) if (!rules.some(one => isDeepStrictEqual(one, rule))) rules.push(rule)
    }
  return rules
}

export const installRoles: Install = ({ manager }) => {
  const roles = manager.cache.informer(ClusterRole)
  const aggregated = () => roles.list().filter(role => role.aggregationRule)
  manager
    .controller(ClusterRole, named('clusterrole-aggregation-controller'))
    .watches(ClusterRole, () => aggregated().map(role => role.metadata))
    .reconcile(async ({ object: role, client }) => {
      if (!role.aggregationRule || role.metadata.deletionTimestamp) return
      const rules = aggregatedRules(role, roles.list())
      if (isDeepStrictEqual(rules, role.rules ?? [])) return
      const { uid, resourceVersion } = role.metadata
      await client.patch(ClusterRole, role.metadata, { merge: { metadata: { uid, resourceVersion }, rules } })
    })
}
