/**
 * The core group but pods: namespaces, nodes, services, claims, secrets, config maps, events.
 */
import type { FieldError } from '../../problems.ts'
import { configKey } from '../../schema/names.ts'
import type { Obj, Strategy } from '../../types.ts'
import { validateClaim } from '../validation/claims.ts'
import { forbidden, immutable, required, ruled } from '../validation/mistakes.ts'
import { validateService, validateServiceStatus } from '../validation/services.ts'
import { list } from './lists.ts'
import { pod } from './pods.ts'
import { same, unchangedStatus } from './status.ts'

const namespace: Strategy = {
  hasGeneration: false,
  prepareForCreate: object => {
    object.spec = { ...object.spec, finalizers: [...new Set([...(object.spec?.finalizers ?? []), 'kubernetes'])] }
    object.status = { phase: 'Active' }
    object.metadata.labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name }
  },
  prepareForUpdate: (object, old, subresource) => {
    if (subresource !== 'status') object.status = structuredClone(old.status)
    if (subresource !== 'finalize') object.spec = structuredClone(old.spec)
    object.metadata.labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name }
  },
  fields: { 'status.phase': object => object.status?.phase ?? '', name: object => object.metadata.name },
}

const node: Strategy = {
  hasGeneration: false,
  // The one who registers a node says how it is.
  prepareForUpdate: (object, old, subresource) => {
    if (subresource === undefined) object.status = structuredClone(old.status)
  },
  fields: { 'spec.unschedulable': object => String(object.spec?.unschedulable ?? false) },
}

const service: Strategy = {
  hasGeneration: false,
  default: object => {
    const { spec } = object
    if (!spec) return
    spec.sessionAffinity ||= 'None'
    spec.type ||= 'ClusterIP'
    for (const port of list(spec.ports)) {
      port.protocol ||= 'TCP'
      port.targetPort ||= port.port
    }
    if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig
    if (spec.sessionAffinity === 'ClientIP') spec.sessionAffinityConfig ??= { clientIP: { timeoutSeconds: 10800 } }
    if (spec.type === 'ExternalName') return
    spec.internalTrafficPolicy ??= 'Cluster'
    if (spec.type !== 'ClusterIP') spec.externalTrafficPolicy ||= 'Cluster'
    if (spec.type !== 'LoadBalancer') return
    spec.allocateLoadBalancerNodePorts ??= true
    for (const one of list(object.status?.loadBalancer?.ingress)) if (one.ip) one.ipMode ??= 'VIP'
  },
  prepareForCreate: object => {
    object.status = { loadBalancer: {} }
  },
  prepareForUpdate: (object, old, subresource) => {
    if (subresource === undefined) object.status = structuredClone(old.status)
    // What balanced the load does so no more.
    if (object.spec?.type !== 'LoadBalancer' && old.spec?.type === 'LoadBalancer') object.status = { loadBalancer: {} }
    if (object.spec?.type === 'ExternalName') return
    if (object.spec) {
      if (object.spec.clusterIP && object.spec.clusterIP !== old.spec?.clusterIP)
        object.spec.clusterIPs ??= [object.spec.clusterIP]
      for (const name of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) {
        if (object.spec[name] === undefined && old.spec?.[name] !== undefined) object.spec[name] = old.spec[name]
      }
      dropPorts(object, old)
      dropOfOtherType(object, old)
    }
  },
  validate: validateService,
  validateStatus: validateServiceStatus,
  fields: { 'spec.clusterIP': object => object.spec?.clusterIP ?? '', 'spec.type': object => object.spec?.type ?? '' },
}

/** What only another type of service has goes with that type, unless the same write says it anew. */
function dropOfOtherType({ spec }: Obj, { spec: before = {} }: Obj): void {
  const drop = (name: string) => {
    if (same(spec[name], before[name])) delete spec[name]
  }
  if (!isOnNodes(spec)) drop('externalTrafficPolicy')
  if (spec.type !== 'LoadBalancer') {
    drop('allocateLoadBalancerNodePorts')
    drop('loadBalancerClass')
  }
}

const isOnNodes = (spec: Obj | undefined) => spec?.type === 'NodePort' || spec?.type === 'LoadBalancer'

/** Ports on nodes go with the type that has them, where they are still the ones that the server gave. */
function dropPorts(object: Obj, old: Obj): void {
  if (isOnNodes(object.spec) || !isOnNodes(old.spec)) return
  const given = new Set(list(old.spec.ports).map(({ nodePort }) => nodePort))
  if (list(object.spec.ports).some(({ nodePort }) => nodePort && !given.has(nodePort))) return
  for (const port of list(object.spec.ports)) delete port.nodePort
}

const claim: Strategy = {
  hasGeneration: false,
  default: object => {
    if (object.spec) object.spec.volumeMode ??= 'Filesystem'
    object.status = { ...object.status, phase: object.status?.phase || 'Pending' }
  },
  prepareForCreate: object => {
    object.status = { phase: 'Pending' }
  },
  prepareForUpdate: unchangedStatus.prepareForUpdate,
  validate: validateClaim,
  validateStatus: () => [],
}

const volume: Strategy = {
  hasGeneration: false,
  default: object => {
    if (!object.spec) return
    object.spec.persistentVolumeReclaimPolicy ||= 'Retain'
    object.spec.volumeMode ||= 'Filesystem'
  },
  prepareForCreate: object => {
    object.status = { phase: 'Pending' }
  },
  prepareForUpdate: unchangedStatus.prepareForUpdate,
}

const validateKeys = (field: string, data: object | undefined): FieldError[] =>
  Object.keys(data ?? {}).flatMap(key => ruled(`${field}[${key}]`, key, configKey))

function validateImmutable(object: Obj, old: Obj | undefined, fields: readonly string[]): FieldError[] {
  if (!old?.immutable) return []
  const what = 'field is immutable when `immutable` is set'
  const changed = fields.filter(field => !same(object[field], old[field]))
  const errors = changed.map(field => forbidden(field, what))
  if (!object.immutable) errors.unshift(forbidden('immutable', what))
  return errors
}

const configMap: Strategy = {
  hasGeneration: false,
  validate: (object, old) => [
    ...validateKeys('data', object.data),
    ...validateKeys('binaryData', object.binaryData),
    ...validateImmutable(object, old, ['data', 'binaryData']),
  ],
}

const requiredKeys: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
}

const secret: Strategy = {
  hasGeneration: false,
  default: object => {
    object.type ||= 'Opaque'
    if (!object.stringData) return
    const given = Object.entries(object.stringData as Record<string, string>)
    object.data = {
      ...object.data,
      ...Object.fromEntries(given.map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
    }
    delete object.stringData
  },
  validate: (object, old) => {
    const errors = [...validateKeys('data', object.data), ...validateImmutable(object, old, ['data'])]
    if (old && object.type !== old.type) errors.push(immutable('type', object.type))
    const has = (key: string) => object.data?.[key] !== undefined
    const keys = requiredKeys[object.type] ?? []
    errors.push(...keys.filter(key => !has(key)).map(key => required(`data[${key}]`)))
    // One of the two is enough.
    const either = ['username', 'password']
    if (object.type === 'kubernetes.io/basic-auth' && !either.some(has))
      errors.push(...either.map(key => required(`data[${key}]`)))
    return errors
  },
  fields: { type: object => object.type ?? '' },
}

const involved = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

const coreEvent: Strategy = {
  hasGeneration: false,
  fields: {
    ...Object.fromEntries(
      involved.map(part => [`involvedObject.${part}`, (object: Obj) => object.involvedObject?.[part] ?? '']),
    ),
    reason: object => object.reason ?? '',
    type: object => object.type ?? '',
    source: object => object.source?.component || object.reportingComponent || '',
    reportingComponent: object => object.reportingComponent ?? '',
  },
}

/** Selects among what is kept, which are events of the core group. */
const event: Strategy = {
  hasGeneration: false,
  fields: {
    ...Object.fromEntries(
      involved.map(part => [`regarding.${part}`, (object: Obj) => object.involvedObject?.[part] ?? '']),
    ),
    reason: object => object.reason ?? '',
    type: object => object.type ?? '',
    reportingController: object => object.reportingComponent ?? '',
  },
}

export const core: Record<string, Strategy> = {
  '/pods': pod,
  '/namespaces': namespace,
  '/nodes': node,
  '/services': service,
  '/persistentvolumeclaims': claim,
  '/persistentvolumes': volume,
  '/configmaps': configMap,
  '/secrets': secret,
  '/events': coreEvent,
  'events.k8s.io/events': event,
}
