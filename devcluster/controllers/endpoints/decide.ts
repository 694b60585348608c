/**
 * The EndpointSlices of a Service: where its pods answer, and which of them are ready. Pure.
 *
 * Guarantee: what is right already stays as it is; slices are only made, changed or deleted where they differ.
 */
import { isDeepStrictEqual } from 'node:util'
import type { V1EndpointSlice, V1Service } from '@kubernetes/client-node'
import { controllerReference } from '../../../controller/kube/cached.ts'
import type { Draft, Frozen, Snapshot, Wire } from '../../../controller/kube/kind.ts'
import { canonicalJson } from '../../../shared/canonical.ts'
import { hasFailed, hasSucceeded, isReady, isTerminating, type Pod } from '../common/pods.ts'

export type Service = Snapshot<V1Service>
export type Slice = Snapshot<V1EndpointSlice>
type Endpoint = NonNullable<Frozen<Wire<V1EndpointSlice>>['endpoints']>[number]
type Port = NonNullable<Frozen<Wire<V1EndpointSlice>>['ports']>[number]

export const managedBy = { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' }
const mostEndpoints = 100

export interface Decision {
  readonly create: Draft<V1EndpointSlice>[]
  readonly change: { readonly slice: Slice; readonly to: Wished }[]
  readonly remove: Slice[]
}

interface Wished {
  readonly addressType: 'IPv4' | 'IPv6'
  readonly ports: readonly Port[]
  readonly endpoints: readonly Endpoint[]
  readonly labels: Record<string, string>
}

export function decideSlices(
  service: Service,
  pods: readonly Pod[],
  zones: ReadonlyMap<string, string>,
  slices: readonly Slice[],
): Decision {
  const wished = wishedSlices(service, pods, zones)
  const left = slices.filter(slice => slice.metadata.deletionTimestamp === undefined)
  const create: Draft<V1EndpointSlice>[] = []
  const change: Decision['change'] = []
  for (const to of wished) {
    const at = left.findIndex(
      slice => slice.addressType === to.addressType && canonicalJson(slice.ports ?? []) === canonicalJson(to.ports),
    )
    const [slice] = at < 0 ? [] : left.splice(at, 1)
    if (!slice) create.push(draft(service, to))
    else if (!isSame(slice, to)) change.push({ slice, to })
  }
  return { create, change, remove: left }
}

function isSame(slice: Slice, to: Wished): boolean {
  const labels = slice.metadata.labels ?? {}
  const hasLabels = isDeepStrictEqual({ ...labels }, to.labels)
  return hasLabels && canonicalJson(slice.endpoints ?? []) === canonicalJson(to.endpoints)
}

function draft(service: Service, { addressType, ports, endpoints, labels }: Wished): Draft<V1EndpointSlice> {
  return {
    metadata: {
      generateName: `${service.metadata.name}-`,
      namespace: service.metadata.namespace,
      labels,
      ownerReferences: [controllerReference(service)],
    },
    addressType,
    ports,
    endpoints,
  } as Draft<V1EndpointSlice>
}

function wishedSlices(service: Service, pods: readonly Pod[], zones: ReadonlyMap<string, string>): Wished[] {
  const labels = labelsOf(service)
  const families = service.spec?.ipFamilies?.length ? service.spec.ipFamilies : ['IPv4']
  const result: Wished[] = []
  for (const family of families) {
    const addressType = family === 'IPv6' ? 'IPv6' : 'IPv4'
    const groups = new Map<string, { ports: Port[]; endpoints: Endpoint[] }>()
    for (const pod of pods) {
      const address = addressOf(pod, addressType)
      const ports = address === undefined ? undefined : portsOf(service, pod)
      if (address === undefined || !ports) continue
      const key = canonicalJson(ports)
      const group = groups.get(key) ?? { ports, endpoints: [] }
      group.endpoints.push(endpointOf(service, pod, address, zones))
      groups.set(key, group)
    }
    // A Service without pods has a slice all the same, so that it can be told from one that nobody looks after.
    if (groups.size === 0) groups.set('', { ports: [], endpoints: [] })
    for (const { ports, endpoints } of groups.values())
      for (let at = 0; at === 0 || at < endpoints.length; at += mostEndpoints)
        result.push({ addressType, ports, endpoints: endpoints.slice(at, at + mostEndpoints), labels })
  }
  return result
}

function labelsOf(service: Service): Record<string, string> {
  const headless = service.spec?.clusterIP === 'None' ? { 'service.kubernetes.io/headless': '' } : {}
  const given = { ...service.metadata.labels }
  return { ...given, ...headless, ...managedBy, 'kubernetes.io/service-name': service.metadata.name }
}

function addressOf(pod: Pod, type: 'IPv4' | 'IPv6'): string | undefined {
  if (hasFailed(pod) || hasSucceeded(pod)) return undefined
  const all = pod.status?.podIPs?.map(({ ip }) => ip) ?? (pod.status?.podIP ? [pod.status.podIP] : [])
  return all.find(ip => ip.includes(':') === (type === 'IPv6'))
}

/** In the order of the Service; a named port that the pod does not have is left out. */
function portsOf(service: Service, pod: Pod): Port[] {
  return (service.spec?.ports ?? []).flatMap(({ name, port, protocol = 'TCP', targetPort, appProtocol }) => {
    const number = portNumber(pod, targetPort ?? port, protocol)
    if (number === undefined) return []
    return [{ name: name ?? '', port: number, protocol, ...(appProtocol ? { appProtocol } : {}) }]
  })
}

function portNumber(pod: Pod, target: number | string | object, protocol: string): number | undefined {
  if (typeof target === 'number') return target
  const sidecars = (pod.spec?.initContainers ?? []).filter(one => one.restartPolicy === 'Always')
  for (const { ports } of [...(pod.spec?.containers ?? []), ...sidecars])
    for (const port of ports ?? [])
      if (port.name === target && (port.protocol ?? 'TCP') === protocol) return port.containerPort
  return undefined
}

function endpointOf(service: Service, pod: Pod, address: string, zones: ReadonlyMap<string, string>): Endpoint {
  const { name, namespace, uid } = pod.metadata
  const serving = isReady(pod)
  const terminating = isTerminating(pod)
  const ready = service.spec?.publishNotReadyAddresses === true || (serving && !terminating)
  const { nodeName, hostname, subdomain } = pod.spec ?? {}
  const zone = nodeName ? zones.get(nodeName) : undefined
  return {
    addresses: [address],
    conditions: { ready, serving, terminating },
    targetRef: { kind: 'Pod', namespace, name, uid },
    ...(nodeName ? { nodeName } : {}),
    ...(zone ? { zone } : {}),
    ...(hostname && subdomain === service.metadata.name ? { hostname } : {}),
  } as Endpoint
}
