/**
 * The environment of a container, in the kubelet's order: the image's, services, `envFrom`, `env`. Pure: the objects come in.
 *
 * Guarantee: a config map, secret or key that must be there and is not, is named in the kubelet's words.
 */
import type { V1ConfigMap, V1Secret, V1Service } from '@kubernetes/client-node'
import type { Snapshot } from '../../controller/kube/kind.ts'
import { fieldOf, type Place, resourceOf } from './downward.ts'
import { expand } from './expand.ts'
import type { ContainerSpec, Pod } from './spec.ts'

/** The objects that a pod's environment and volumes are made of. */
export interface Objects {
  configMap(namespace: string, name: string): Snapshot<V1ConfigMap> | undefined
  secret(namespace: string, name: string): Snapshot<V1Secret> | undefined
  /** All of a namespace. */
  services(namespace: string): readonly Snapshot<V1Service>[]
}

/** The container cannot be made: waiting, with reason CreateContainerConfigError. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

type Variables = Record<string, string>
type Source = NonNullable<NonNullable<ContainerSpec['env']>[number]['valueFrom']>

export function environmentOf(
  pod: Pod,
  spec: ContainerSpec,
  place: Place,
  objects: Objects,
  /** The image's own, and what the node gives to every container. */
  { image = {}, node = {} }: { image?: Readonly<Variables> | undefined; node?: Readonly<Variables> | undefined } = {},
): Variables {
  const namespace = pod.metadata.namespace ?? ''
  const services = pod.spec?.enableServiceLinks === false ? {} : serviceVariables(objects.services(namespace))
  const result: Variables = { ...image, HOSTNAME: hostnameOf(pod), ...services, ...node }
  for (const { prefix = '', configMapRef, secretRef } of spec.envFrom ?? []) {
    const add = (data: Readonly<Variables>) => {
      for (const [name, value] of Object.entries(data)) result[prefix + name] = value
    }
    if (configMapRef)
      add(found(objects.configMap(namespace, configMapRef.name ?? ''), 'configmap', configMapRef)?.data ?? {})
    if (secretRef) add(decoded(found(objects.secret(namespace, secretRef.name ?? ''), 'secret', secretRef)?.data))
  }
  const valueFrom = (source: Source): string | undefined => {
    const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = source
    if (fieldRef) return known(fieldOf(pod, fieldRef.fieldPath, place), `fieldPath ${fieldRef.fieldPath}`)
    if (resourceFieldRef)
      return known(resourceOf(pod, spec, resourceFieldRef, place), `resource ${resourceFieldRef.resource}`)
    if (configMapKeyRef) {
      const map = found(objects.configMap(namespace, configMapKeyRef.name ?? ''), 'configmap', configMapKeyRef)
      return keyOf(map?.data, 'ConfigMap', namespace, configMapKeyRef)
    }
    if (secretKeyRef) {
      const secret = found(objects.secret(namespace, secretKeyRef.name ?? ''), 'secret', secretKeyRef)
      return keyOf(decoded(secret?.data), 'Secret', namespace, secretKeyRef)
    }
    throw new ConfigError('a source of a variable that is not supported here')
  }
  for (const { name, value, valueFrom: source } of spec.env ?? []) {
    const text = source ? valueFrom(source) : expand(value ?? '', result)
    if (text !== undefined) result[name] = text
  }
  return result
}

function hostnameOf(pod: Pod): string {
  return (pod.spec?.hostname ?? pod.metadata.name).slice(0, 63).replace(/[-.]+$/, '')
}

/** As docker links had them, for each service of the namespace that has an address. */
function serviceVariables(services: readonly Snapshot<V1Service>[]): Variables {
  const result: Variables = {}
  for (const { metadata, spec } of services) {
    const ip = spec?.clusterIP
    const [first] = spec?.ports ?? []
    if (!ip || ip === 'None' || !first) continue
    const name = metadata.name.toUpperCase().replaceAll('-', '_')
    result[`${name}_SERVICE_HOST`] = ip
    result[`${name}_SERVICE_PORT`] = String(first.port)
    for (const port of spec?.ports ?? [])
      if (port.name) result[`${name}_SERVICE_PORT_${port.name.toUpperCase().replaceAll('-', '_')}`] = String(port.port)
    result[`${name}_PORT`] = `${(first.protocol ?? 'TCP').toLowerCase()}://${ip}:${first.port}`
    for (const { port, protocol = 'TCP' } of spec?.ports ?? []) {
      const prefix = `${name}_PORT_${port}_${protocol}`
      result[prefix] = `${protocol.toLowerCase()}://${ip}:${port}`
      result[`${prefix}_PROTO`] = protocol.toLowerCase()
      result[`${prefix}_PORT`] = String(port)
      result[`${prefix}_ADDR`] = ip
    }
  }
  return result
}

interface Wanted {
  readonly name?: string | undefined
  readonly optional?: boolean | undefined
}

function found<T>(object: T | undefined, kind: string, { name, optional }: Wanted): T | undefined {
  if (object === undefined && !optional) throw new ConfigError(`${kind} "${name}" not found`)
  return object
}

function keyOf(
  data: Readonly<Variables> | undefined,
  kind: string,
  namespace: string,
  { key, name, optional }: Wanted & { readonly key: string },
): string | undefined {
  const value = data && Object.hasOwn(data, key) ? data[key] : undefined
  if (value === undefined && !optional)
    throw new ConfigError(`couldn't find key ${key} in ${kind} ${namespace}/${name}`)
  return value
}

function known(value: string | undefined, what: string): string {
  if (value === undefined) throw new ConfigError(`${what} is not supported`)
  return value
}

function decoded(data: Readonly<Variables> | undefined): Variables {
  return Object.fromEntries(
    Object.entries(data ?? {}).map(([name, text]) => [name, Buffer.from(text, 'base64').toString()]),
  )
}
