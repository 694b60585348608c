/**
 * Fields of a pod, and resources of its containers, that its containers may be told of: in variables, and in files.
 */
import type { FieldError } from '../../problems.ts'
import { qualifiedName } from '../../schema/names.ts'
import { invalid, notSupported, oneOf, required, ruled } from './mistakes.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

/** A variable cannot hold a map; a file is written before the pod has a node. */
const fields: Readonly<Record<'variable' | 'volume', readonly string[]>> = {
  variable: [
    'metadata.name',
    'metadata.namespace',
    'metadata.uid',
    'spec.nodeName',
    'spec.serviceAccountName',
    'status.hostIP',
    'status.hostIPs',
    'status.podIP',
    'status.podIPs',
  ],
  volume: ['metadata.annotations', 'metadata.labels', 'metadata.name', 'metadata.namespace', 'metadata.uid'],
}
const known = new Set([
  ...fields.variable,
  ...fields.volume,
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
  'spec.host',
])

export function validateFieldRef(ref: Any, path: string, place: 'variable' | 'volume'): FieldError[] {
  const { fieldPath = '', apiVersion } = ref
  const field = `${path}.fieldPath`
  if (!apiVersion) return [required(`${path}.apiVersion`)]
  if (fieldPath === '') return [required(field)]
  const [, map, key = ''] = /^(metadata\.(?:annotations|labels))\['(.*)'\]$/.exec(fieldPath) ?? []
  if (map) return ruled(path, map === 'metadata.annotations' ? key.toLowerCase() : key, qualifiedName)
  const refused = (why: string) => [invalid(field, fieldPath, `error converting fieldPath: ${why}`)]
  if (apiVersion !== 'v1') return refused(`unsupported pod version: ${apiVersion}`)
  if (!known.has(fieldPath)) return refused(`field label not supported: ${fieldPath}`)
  const name = fieldPath === 'spec.host' ? 'spec.nodeName' : fieldPath
  return oneOf(field, name, fields[place])
}

const resources = ['cpu', 'ephemeral-storage', 'memory']
const amounts = ['limits', 'requests'].flatMap(kind => resources.map(name => `${kind}.${name}`))

export function validateResourceRef(ref: Any, path: string, place: 'variable' | 'volume'): FieldError[] {
  const { resource = '', containerName = '' } = ref
  if (place === 'volume' && containerName === '') return [required(`${path}.containerName`)]
  if (resource === '') return [required(`${path}.resource`)]
  const isHuge = /^(limits|requests)\.hugepages-/.test(resource)
  return amounts.includes(resource) || isHuge ? [] : [notSupported(`${path}.resource`, resource, amounts)]
}
