/**
 * A pod, or a pod template, as injection reads and writes it: its metadata and its spec. Pure.
 */
import type { V1Container, V1PodSpec } from '@kubernetes/client-node'
import type { Frozen, Wire } from '../../kube/kind.ts'

export type Container = Frozen<Wire<V1Container>>
export type PodSpec = Frozen<Wire<V1PodSpec>>
export type Volume = NonNullable<PodSpec['volumes']>[number]
export type Mount = NonNullable<Container['volumeMounts']>[number]
export type Security = NonNullable<Container['securityContext']>
export type Resources = NonNullable<Container['resources']>

export interface Owner {
  readonly kind: string
  readonly name: string
  readonly controller?: boolean | undefined
}

export interface Metadata {
  readonly name?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly ownerReferences?: readonly Owner[] | undefined
}

export interface PodTemplate {
  readonly metadata?: Metadata | undefined
  readonly spec?: PodSpec | undefined
}

/** What is wrong with the shape of a template that nobody has checked, such as one in a file; undefined if nothing that injection would stumble over. */
export function shapeProblem(value: unknown): string | undefined {
  const template = mapOf(value)
  const metadata = template && mapOf(template['metadata'] ?? {})
  const spec = template && mapOf(template['spec'])
  if (!metadata) return 'metadata is no map'
  if (!spec) return 'there is no `spec` of a pod'
  for (const field of ['labels', 'annotations']) {
    const texts = mapOf(metadata[field] ?? {})
    if (!texts) return `metadata.${field} is no map`
    const wrong = Object.keys(texts).find(key => typeof texts[key] !== 'string')
    if (wrong !== undefined) return `metadata.${field}: the value of ${wrong} has to be a text: put it in quotes`
  }
  if (!Array.isArray(spec['containers']) || spec['containers'].length === 0)
    return 'spec.containers is no list of containers'
  for (const field of ['containers', 'initContainers', 'volumes', 'imagePullSecrets']) {
    const list = spec[field] ?? []
    if (!Array.isArray(list)) return `spec.${field} is no list`
    const unnamed = list.findIndex(one => typeof mapOf(one)?.['name'] !== 'string')
    if (unnamed >= 0) return `spec.${field}[${unnamed}] has no name`
  }
  for (const field of ['containers', 'initContainers']) {
    for (const container of (spec[field] ?? []) as Record<string, unknown>[]) {
      const list = ['ports', 'volumeMounts', 'env'].find(
        one =>
          !Array.isArray(container[one] ?? []) || (container[one] as unknown[] | undefined)?.some(item => !mapOf(item)),
      )
      if (list) return `spec.${field}: ${list} of ${container['name']} is no list of maps`
      const map = ['lifecycle', 'securityContext', 'resources'].find(one => !mapOf(container[one] ?? {}))
      if (map) return `spec.${field}: ${map} of ${container['name']} is no map`
    }
  }
  const grace = spec['terminationGracePeriodSeconds'] ?? 0
  if (!Number.isInteger(grace)) return 'spec.terminationGracePeriodSeconds is no whole number'
  return mapOf(spec['securityContext'] ?? {}) ? undefined : 'spec.securityContext is no map'
}

function mapOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}
