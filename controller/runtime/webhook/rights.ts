/**
 * What a process with webhooks may do on the cluster because of them: no rule is wider. Pure.
 *
 * - In its own namespace: its Secret, by name.
 * - Its registrations, by name: read, and the bundle written. Applying them from there needs `create` as well, which names cannot bound.
 * - The CRDs that it converts, by name.
 */
import { CustomResourceDefinition, Secret } from '../../kube/kinds.ts'
import type { Hook } from './hooks.ts'
import { registeredOf } from './registration.ts'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[]
}

export interface WebhookRights {
  /** Cluster-wide. */
  readonly rules: readonly Rule[]
  /** In the namespace of the Secret. */
  readonly own: readonly Rule[]
}

export function webhookRights(
  hooks: readonly Hook[],
  name: string,
  { secret, register = false }: { readonly secret: string; readonly register?: boolean | undefined },
): WebhookRights {
  if (hooks.length === 0) return { rules: [], own: [] }
  const secrets = { apiGroups: [Secret.group], resources: [Secret.plural] }
  const registered = Object.entries(Object.groupBy(registeredOf(hooks, name), ({ kind }) => kind.plural))
  const rules = registered.flatMap(([plural, all = []]) => {
    const [first] = all
    const on = { apiGroups: [first?.kind.group ?? ''], resources: [plural] }
    const isNew = register && plural !== CustomResourceDefinition.plural
    return [
      { ...on, verbs: ['get', 'list', 'watch', 'patch'], resourceNames: all.map(one => one.name) },
      ...(isNew ? [{ ...on, verbs: ['create'] }] : []),
    ]
  })
  return {
    rules,
    own: [
      { ...secrets, verbs: ['create'] },
      { ...secrets, verbs: ['get', 'list', 'watch', 'update'], resourceNames: [secret] },
    ],
  }
}
