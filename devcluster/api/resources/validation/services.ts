/**
 * What a server refuses of a service.
 */
import { isIP } from 'node:net'
import type { FieldError } from '../../problems.ts'
import { dns1123Label, dns1123Subdomain, qualifiedName } from '../../schema/names.ts'
import type { Obj } from '../../types.ts'
import { list } from '../strategies/lists.ts'
import { protocols } from './containers.ts'
import { duplicate, forbidden, invalid, oneOf, port, required, ruled } from './mistakes.ts'
import { portOrName } from './probes.ts'
import { validateLabels } from './selectors.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
const longestAffinity = 86_400

export function validateService(object: Obj, old: Obj | undefined): FieldError[] {
  const { spec = {} } = object
  const ports = list(spec.ports)
  const isHeadless = spec.clusterIP === 'None'
  const isOutside = spec.type === 'ExternalName'
  const errors: FieldError[] = []
  if (ports.length === 0 && !isHeadless && !isOutside) errors.push(required('spec.ports'))
  if (isOutside) errors.push(...validateExternalName(spec))
  else errors.push(...validateAddress(spec))
  errors.push(...validatePorts(ports, spec.type, 'spec.ports'))
  errors.push(...validateLabels(spec.selector, 'spec.selector'))
  errors.push(...oneOf('spec.type', spec.type, types))
  errors.push(...oneOf('spec.sessionAffinity', spec.sessionAffinity, ['ClientIP', 'None']))
  errors.push(...validateAffinity(spec))
  errors.push(...oneOf('spec.internalTrafficPolicy', spec.internalTrafficPolicy, ['Cluster', 'Local']))
  if (old?.spec?.clusterIP && !isOutside && spec.clusterIP !== old.spec.clusterIP)
    errors.push(invalid('spec.clusterIPs[0]', spec.clusterIPs ?? [], 'may not change once set'))
  return errors
}

function validateAddress({ clusterIP, clusterIPs, type }: Any): FieldError[] {
  const field = 'spec.clusterIPs[0]'
  if (!clusterIP) return []
  if (!clusterIPs?.length) return [required('spec.clusterIPs')]
  if (clusterIP === 'None') {
    const isOutward = type === 'NodePort' || type === 'LoadBalancer'
    return isOutward ? [invalid(field, 'None', `may not be set to 'None' for ${type} services`)] : []
  }
  if (isIP(clusterIP) > 0) return []
  return [invalid(field, clusterIP, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
}

function validateExternalName({ externalName = '', clusterIPs }: Any): FieldError[] {
  const name = externalName.replace(/\.$/, '')
  return [
    ...(clusterIPs?.length ? [forbidden('spec.clusterIPs', 'may not be set for ExternalName services')] : []),
    ...(name === '' ? [required('spec.externalName')] : ruled('spec.externalName', name, dns1123Subdomain)),
  ]
}

function validateAffinity({ sessionAffinity, sessionAffinityConfig }: Any): FieldError[] {
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds
  if (sessionAffinity !== 'ClientIP' || seconds === undefined || (seconds > 0 && seconds <= longestAffinity)) return []
  const detail = `must be greater than 0 and less than or equal ${longestAffinity}`
  return [invalid('spec.sessionAffinityConfig.clientIP.timeoutSeconds', seconds, detail)]
}

function validatePorts(ports: Any[], type: string | undefined, path: string): FieldError[] {
  const names = new Set<string>()
  const pairs = new Set<string>()
  const onNodes = new Set<string>()
  return ports.flatMap((one, at) => {
    const { name = '', protocol, appProtocol, nodePort } = one
    const where = `${path}[${at}]`
    const errors: FieldError[] = []
    if (name !== '') {
      errors.push(...ruled(`${where}.name`, name, dns1123Label))
      if (names.has(name)) errors.push(duplicate(`${where}.name`, name))
      names.add(name)
    } else if (ports.length > 1) errors.push(required(`${where}.name`))
    errors.push(...port(`${where}.port`, one.port), ...oneOf(`${where}.protocol`, protocol, protocols))
    errors.push(...portOrName(`${where}.targetPort`, one.targetPort))
    if (appProtocol !== undefined) errors.push(...ruled(`${where}.appProtocol`, appProtocol, qualifiedName))
    if (nodePort && type === 'ClusterIP')
      errors.push(forbidden(`${where}.nodePort`, "may not be used when `type` is 'ClusterIP'"))
    if (nodePort && onNodes.has(`${protocol} ${nodePort}`)) errors.push(duplicate(`${where}.nodePort`, nodePort))
    onNodes.add(`${protocol} ${nodePort}`)
    const pair = `${protocol} ${one.port}`
    // As Go has it.
    const told = { Name: '', Protocol: protocol, AppProtocol: null, Port: one.port ?? 0, TargetPort: 0, NodePort: 0 }
    if (pairs.has(pair)) errors.push(duplicate(where, told))
    pairs.add(pair)
    return errors
  })
}

export function validateServiceStatus({ spec, status }: Obj): FieldError[] {
  const isBalanced = spec?.type === 'LoadBalancer'
  if (isBalanced || list(status?.loadBalancer?.ingress).length === 0) return []
  return [forbidden('status.loadBalancer.ingress', "may only be used when `spec.type` is 'LoadBalancer'")]
}
