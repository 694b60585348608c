/**
 * What a server itself adds to new objects beyond their defaults: a pod's service account and its token, tolerations, priority; a service's address.
 */
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { compareQuantity } from '../../quantity.ts'
import { ApiError, type FieldError, forbidden, invalid } from '../problems.ts'
import { list } from '../resources/strategies/lists.ts'
import type { Obj } from '../types.ts'

export interface PluginSource {
  get(resource: string, namespace: string | undefined, name: string): Obj | undefined
  all(resource: string): readonly Obj[]
  /** The first two numbers of services' addresses: `127.96`. */
  readonly serviceRange: string
  /** Whether a pod needs its service account, and gets its token. */
  readonly hasAccounts: boolean
}

/** Changes `object`, which is new, in place. */
export function complete(source: PluginSource, resource: string, object: Obj, isDryRun: boolean): void {
  if (resource === '/pods') completePod(source, object)
  if (resource === '/services') giveAddress(source, object, isDryRun)
  if (resource === '/persistentvolumeclaims') hold(object, 'kubernetes.io/pvc-protection')
}

/** Somebody takes that away once nobody uses it any more. */
function hold({ metadata }: Obj, finalizer: string): void {
  const known = metadata.finalizers ?? []
  if (!known.includes(finalizer)) metadata.finalizers = [...known, finalizer]
}

const mounted = '/var/run/secrets/kubernetes.io/serviceaccount'

function completePod(source: PluginSource, pod: Obj): void {
  if (!pod.spec) return
  if (source.hasAccounts) giveAccount(source, pod)
  givePriority(source, pod.spec)
  tolerateNodes(pod)
}

function giveAccount(source: PluginSource, { spec, metadata }: Obj): void {
  spec.serviceAccountName ||= 'default'
  spec.serviceAccount = spec.serviceAccountName
  const account = source.get('/serviceaccounts', metadata.namespace, spec.serviceAccountName)
  if (!account) {
    const which = `${metadata.namespace}/${spec.serviceAccountName}`
    throw forbidden(
      { group: '', resource: 'pods' },
      metadata.name,
      `error looking up service account ${which}: serviceaccount "${spec.serviceAccountName}" not found`,
    )
  }
  if (!spec.imagePullSecrets?.length && account.imagePullSecrets?.length)
    spec.imagePullSecrets = account.imagePullSecrets
  if (spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true) mountToken(spec)
}

/** Nodes that are away for a while, unless the pod says how long: when it is made, and when it is changed. */
export function tolerateNodes({ spec }: Obj): void {
  for (const key of ['not-ready', 'unreachable']) if (spec) tolerate(spec, `node.kubernetes.io/${key}`)
}

// biome-ignore lint/suspicious/noExplicitAny: the spec of a pod, as a client sent it.
type Spec = any

function mountToken(spec: Spec): void {
  const containers = [...list(spec.initContainers), ...list(spec.containers)]
  const lacking = containers.filter(
    ({ volumeMounts }) => !list(volumeMounts).some(({ mountPath }) => mountPath === mounted),
  )
  if (lacking.length === 0) return
  const name = `kube-api-access-${suffix()}`
  for (const container of lacking) {
    container.volumeMounts = [...list(container.volumeMounts), { name, readOnly: true, mountPath: mounted }]
  }
  const sources = [
    { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
    { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
    {
      downwardAPI: { items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }] },
    },
  ]
  spec.volumes = [...list(spec.volumes), { name, projected: { sources, defaultMode: 420 } }]
}

function givePriority(source: PluginSource, spec: Spec): void {
  const classes = source.all('scheduling.k8s.io/priorityclasses')
  const found = spec.priorityClassName
    ? classes.find(({ metadata }) => metadata.name === spec.priorityClassName)
    : classes.find(({ globalDefault }) => globalDefault)
  if (found) spec.priorityClassName = found.metadata.name
  spec.priority ??= found?.value ?? 0
  spec.preemptionPolicy ??= found?.preemptionPolicy ?? 'PreemptLowerPriority'
}

function tolerate(spec: Spec, key: string): void {
  const known = list(spec.tolerations)
  const isTolerated = known.some(one => (!one.key || one.key === key) && (!one.effect || one.effect === 'NoExecute'))
  if (!isTolerated)
    spec.tolerations = [...known, { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }]
}

function giveAddress(source: PluginSource, service: Obj, isDryRun: boolean): void {
  const { spec, metadata } = service
  if (!spec || spec.type === 'ExternalName') return
  giveFamilies(service)
  const taken = new Set(source.all('/services').map(one => one.spec?.clusterIP))
  if (!spec.clusterIP) {
    spec.clusterIP = freeAddress(source.serviceRange, taken)
    // An address belongs to somebody.
    const owner = `IPAddress.networking.k8s.io "${spec.clusterIP}" is invalid: spec.parentRef.name: Required value`
    if (!metadata.name && !isDryRun) throw refused(service, 'spec.clusterIPs', [''], `failed to allocate IP: ${owner}`)
  } else if (spec.clusterIP !== 'None') checkAddress(service, taken)
  spec.clusterIPs = [spec.clusterIP]
  if (isOnNodes(spec)) givePorts(source, spec)
}

const refused = ({ metadata }: Obj, field: string, value: unknown, detail: string): ApiError =>
  invalid({ group: '', kind: 'Service' }, metadata.name ?? '', [{ mistake: 'FieldValueInvalid', field, value, detail }])

function checkAddress(service: Obj, taken: ReadonlySet<string>): void {
  const { clusterIP, clusterIPs = [clusterIP] } = service.spec
  if (isIP(clusterIP) === 0) {
    const detail = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
    throw refused(service, 'spec.clusterIPs[0]', clusterIP, detail)
  }
  if (taken.has(clusterIP))
    throw refused(service, 'spec.clusterIPs', clusterIPs, 'failed to allocate IP: provided IP is already allocated')
}

/** Whoever lists its endpoints knows of which families they are. */
const isOpen = (spec: Spec) => spec.clusterIP === 'None' && Object.keys(spec.selector ?? {}).length === 0

function giveFamilies(service: Obj): void {
  const { spec } = service
  if (isOpen(spec)) {
    if (spec.ipFamilies || spec.ipFamilyPolicy) return
    spec.ipFamilies = ['IPv4', 'IPv6']
    spec.ipFamilyPolicy = 'RequireDualStack'
    return
  }
  checkFamilies(service)
  spec.ipFamilies ??= ['IPv4']
  spec.ipFamilyPolicy ||= 'SingleStack'
}

/** There is one family here. */
function checkFamilies({ spec, metadata }: Obj): void {
  if (isOpen(spec)) return
  const errors: FieldError[] = []
  const told = (field: string, value: unknown, detail: string) =>
    errors.push({ mistake: 'FieldValueInvalid', field, value, detail })
  if (spec.ipFamilyPolicy === 'RequireDualStack')
    told('spec.ipFamilyPolicy', spec.ipFamilyPolicy, 'this cluster is not configured for dual-stack services')
  for (const [at, family] of (spec.ipFamilies ?? []).entries())
    if (family !== 'IPv4') told(`spec.ipFamilies[${at}]`, family, 'not configured on this cluster')
  if (errors.length > 0) throw invalid({ group: '', kind: 'Service' }, metadata.name, errors)
}

const isOnNodes = (spec: Spec) => spec?.type === 'NodePort' || spec?.type === 'LoadBalancer'

function freeAddress(range: string, taken: ReadonlySet<string>): string {
  for (let at = 10; at < 65_000; at++) {
    const address = `${range}.${at >> 8}.${at & 255}`
    if (!taken.has(address)) return address
  }
  throw new Error('range is full')
}

/** Of a service that is changed: a port keeps the one it has on nodes, known by its name; those that have none get one. */
export function allotPorts(source: PluginSource, service: Obj, old: Obj): void {
  const { spec } = service
  if (!spec || spec.type === 'ExternalName') return
  const { clusterIP = old.spec?.clusterIP, ipFamilyPolicy = old.spec?.ipFamilyPolicy } = spec
  checkFamilies({ ...service, spec: { ...spec, clusterIP, ipFamilyPolicy } })
  if (!old.spec?.ipFamilies) giveFamilies(service)
  if (!isOnNodes(spec)) return
  if (isOnNodes(old.spec)) {
    const before = list(old.spec?.ports)
    const kept = new Set(list(spec.ports).map(({ nodePort }) => nodePort))
    const byName = new Map(before.map(({ name = '', nodePort }) => [name, nodePort]))
    for (const port of list(spec.ports)) {
      const known = byName.get(port.name ?? '')
      if (known && !port.nodePort && !kept.has(known)) port.nodePort = known
    }
    refuseShared(list(spec.ports))
  }
  givePorts(source, spec)
}

/** Ports without names are one and the same, to whoever looks for the port that each had. */
function refuseShared(ports: Spec[]): void {
  const seen = new Set<string>()
  for (const { protocol, nodePort } of ports.filter(port => port.nodePort)) {
    const pair = `{${protocol} ${nodePort}}`
    if (seen.has(pair)) throw new ApiError(500, '', `duplicate nodePort: ${pair}`)
    seen.add(pair)
  }
}

function givePorts(source: PluginSource, spec: Spec): void {
  const taken = new Set(source.all('/services').flatMap(one => list(one.spec?.ports).map(({ nodePort }) => nodePort)))
  for (const port of list(spec.ports)) {
    if (port.nodePort) continue
    let candidate = 30_000
    while (taken.has(candidate)) candidate++
    port.nodePort = candidate
    taken.add(candidate)
  }
}

/** A claim grows where the class of its volume says that it can. Throws. */
export function checkGrowth(source: PluginSource, { metadata, spec }: Obj, old: Obj): void {
  const size = (one: Spec) => one?.resources?.requests?.storage ?? '0'
  if (compareQuantity(size(spec), size(old.spec)) <= 0) return
  const found = source
    .all('storage.k8s.io/storageclasses')
    .find(one => one.metadata.name === (spec?.storageClassName ?? ''))
  if (found?.allowVolumeExpansion) return
  throw forbidden(
    { group: '', resource: 'persistentvolumeclaims' },
    metadata.name,
    'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
  )
}

const letters = 'bcdfghjklmnpqrstvwxz2456789'

function suffix(): string {
  return [...randomBytes(5)].map(byte => letters[byte % letters.length]).join('')
}
