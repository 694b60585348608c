/**
 * What a pod may know of itself: fields of its object and the resources of its containers. Pure.
 */
import { amountOf } from '../quantity.ts'
import { type ContainerSpec, containersOf, type Pod } from './spec.ts'

/** What is known of a pod before its status is written. */
export interface Place {
  readonly ip: string
  readonly hostIp: string
  /** What a container that has no limit may use. */
  readonly allocatable: Readonly<Record<string, string>>
}

/** `metadata.labels['x']`, `spec.nodeName`, `status.podIP` …; undefined for a path that the downward API does not have. */
export function fieldOf(pod: Pod, path: string, place: Place): string | undefined {
  const { metadata, spec } = pod
  const [, part, key] = /^metadata\.(labels|annotations)\['([^']*)'\]$/.exec(path) ?? []
  if (part === 'labels' || part === 'annotations') return metadata[part]?.[key ?? ''] ?? ''
  const fields: Readonly<Record<string, () => string>> = {
    'metadata.name': () => metadata.name,
    'metadata.namespace': () => metadata.namespace ?? '',
    'metadata.uid': () => metadata.uid,
    'metadata.labels': () => lines(metadata.labels),
    'metadata.annotations': () => lines(metadata.annotations),
    'spec.nodeName': () => spec?.nodeName ?? '',
    'spec.serviceAccountName': () => spec?.serviceAccountName ?? 'default',
    'status.podIP': () => place.ip,
    'status.podIPs': () => place.ip,
    'status.hostIP': () => place.hostIp,
    'status.hostIPs': () => place.hostIp,
  }
  return Object.hasOwn(fields, path) ? fields[path]?.() : undefined
}

/** Sorted, with the values quoted as Go quotes them. */
function lines(map: Readonly<Record<string, string>> | undefined): string {
  const sorted = Object.entries(map ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  return sorted.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join('\n')
}

/** `limits.memory`, `requests.cpu` …: of the container that is named, or of `own`. */
export function resourceOf(
  pod: Pod,
  own: ContainerSpec | undefined,
  ref: {
    readonly resource: string
    readonly containerName?: string | undefined
    readonly divisor?: string | undefined
  },
  place: Place,
): string | undefined {
  const named = containersOf(pod).find(({ spec }) => spec.name === ref.containerName)?.spec
  const { resources } = named ?? own ?? {}
  const [, part, resource = ''] = /^(limits|requests)\.(.+)$/.exec(ref.resource) ?? []
  if (part === undefined) return undefined
  const limit = resources?.limits?.[resource]
  const wished = part === 'limits' ? limit : (resources?.requests?.[resource] ?? limit)
  const quantity = wished ?? (part === 'limits' ? place.allocatable[resource] : '0') ?? '0'
  return amountOf(quantity, ref.divisor)
}
