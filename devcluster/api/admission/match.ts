/**
 * Which webhooks are asked about a write. Pure.
 */
import { isEmpty, type LabelSelector, selects } from '../../../controller/kube/labelselector.ts'
import type { Asked, Obj } from '../types.ts'

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'

export interface Webhook {
  name: string
  clientConfig: ClientConfig
  rules?: { operations: string[]; apiGroups: string[]; apiVersions: string[]; resources: string[]; scope?: string }[]
  failurePolicy?: 'Fail' | 'Ignore'
  matchPolicy?: 'Exact' | 'Equivalent'
  namespaceSelector?: LabelSelector
  objectSelector?: LabelSelector
  matchConditions?: { name: string; expression: string }[]
  sideEffects?: string
  timeoutSeconds?: number
  reinvocationPolicy?: 'Never' | 'IfNeeded'
}

export interface ClientConfig {
  url?: string
  service?: { namespace: string; name: string; path?: string; port?: number }
  caBundle?: string
}

const verbs: Record<string, Operation> = {
  create: 'CREATE',
  update: 'UPDATE',
  patch: 'UPDATE',
  delete: 'DELETE',
  deletecollection: 'DELETE',
}

/** A write that makes something new is a CREATE, whatever its verb. */
export function operationOf({ verb }: Asked, old: Obj | undefined, object: Obj | undefined): Operation | undefined {
  if (!object) return 'DELETE'
  if (!old) return 'CREATE'
  const operation = verbs[verb]
  return operation === 'CREATE' ? 'UPDATE' : operation
}

/** The version that the webhook wants to see, or undefined if it is not asked. */
export function wantedVersion(webhook: Webhook, operation: Operation, asked: Asked): string | undefined {
  const { type, version, subresource } = asked
  const resource = subresource ? `${type.resource}/${subresource}` : type.resource
  const others = webhook.matchPolicy === 'Exact' ? [] : type.versions.filter(one => one.served).map(one => one.version)
  for (const candidate of [version.version, ...others]) {
    const fits = (webhook.rules ?? []).some(
      rule =>
        has(rule.operations, operation) &&
        has(rule.apiGroups, type.group) &&
        has(rule.apiVersions, candidate) &&
        rule.resources.some(one => coversResource(one, resource, type.resource, subresource)) &&
        (!rule.scope || rule.scope === '*' || (rule.scope === 'Namespaced') === type.namespaced),
    )
    if (fits) return candidate
  }
  return undefined
}

function coversResource(pattern: string, resource: string, plain: string, subresource: string | undefined): boolean {
  if (pattern === '*/*' || pattern === resource) return true
  if (pattern === '*') return subresource === undefined
  if (subresource === undefined) return pattern === `${plain}/*`
  return pattern === `${plain}/*` || pattern === `*/${subresource}`
}

/** @param namespace the labels of the object's namespace; of a namespace: its own. Undefined where there is none */
export function isSelected(
  webhook: Webhook,
  namespace: Record<string, string> | undefined,
  object: Obj | undefined,
  old: Obj | undefined,
): boolean {
  const { namespaceSelector = {}, objectSelector = {} } = webhook
  if (namespace && !selects(namespaceSelector, namespace)) return false
  if (isEmpty(objectSelector)) return true
  return [object, old].some(one => one && selects(objectSelector, one.metadata.labels))
}

function has(list: readonly string[], wanted: string): boolean {
  return list.includes('*') || list.includes(wanted)
}
