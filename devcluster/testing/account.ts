/**
 * An operator's service account with the roles that follow from what it declares, as objects to apply: so that a rule that is missing is missing here too. Pure.
 */
import type { User } from '../api/types.ts'
import type { Manifest } from './manifests.ts'
import type { Operator, PolicyRule } from './operator.ts'

export interface Account {
  readonly name: string
  readonly namespace: string
  readonly objects: readonly Manifest[]
}

const apiGroup = 'rbac.authorization.k8s.io'
const apiVersion = `${apiGroup}/v1`

/** Undefined where one of them does not say what it may do. */
export function accountOf(operators: readonly Operator[], namespace: string): Account | undefined {
  const [first] = operators
  if (!first || operators.some(({ rbac }) => !rbac)) return undefined
  const all = operators.map(operator => operator.rbac?.() ?? { rules: [] })
  const { name } = first
  const metadata = { name, namespace }
  const subjects = [{ kind: 'ServiceAccount', name, namespace }]
  const role = (kind: string, place: object, rules: readonly PolicyRule[]) => [
    { apiVersion, kind, metadata: place, rules },
    { apiVersion, kind: `${kind}Binding`, metadata: place, roleRef: { apiGroup, kind, name }, subjects },
  ]
  return {
    name,
    namespace,
    objects: [
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
      ...role(
        'ClusterRole',
        { name },
        all.flatMap(({ rules }) => rules),
      ),
      ...role(
        'Role',
        metadata,
        all.flatMap(({ own = [] }) => own),
      ),
    ] as Manifest[],
  }
}

export function userOf({ name, namespace }: Pick<Account, 'name' | 'namespace'>): User {
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  }
}
