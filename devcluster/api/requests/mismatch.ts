/**
 * The first value that does not have the type its schema says, in the words of a server that reads JSON into structs of Go. Pure.
 */
import { fitsFormat } from '../schema/formats.ts'
import type { Schema } from '../schema/schema.ts'

/** Undefined where everything fits. */
export function mismatch(schema: Schema, value: unknown, kind: string): string | undefined {
  // What a type reads by itself ends the reading; other mistakes are told once everything is read.
  return find(schema, value, kind, '', true) ?? find(schema, value, kind, '', false)
}

/** @param ending whether the mistakes that end the reading are looked for, or the others */
function find(
  schema: Schema | undefined,
  value: unknown,
  owner: string,
  path: string,
  ending: boolean,
): string | undefined {
  if (!schema || value === null || value === undefined) return undefined
  const told = (expected: string, isInteger = false) => {
    const what = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value
    const shown = what === 'number' && isInteger ? `number ${value}` : what
    return `json: cannot unmarshal ${shown} into Go struct field ${owner}.${path} of type ${expected}`
  }
  if (schema.format === 'quantity') return !ending || isQuantity.test(String(value)) ? undefined : noQuantity
  if (schema.format === 'int-or-string' || schema['x-kubernetes-int-or-string'])
    return !ending || typeof value === 'string' || Number.isInteger(value) ? undefined : told('int32', true)
  if (schema.format === 'date-time') {
    if (!ending) return undefined
    return typeof value === 'string' ? illegalTime(value, schema) : told(goType(schema))
  }
  const type = schema.type
  if (type === undefined) return undefined
  if (schema.format === 'byte' && isBytes(value)) return undefined
  if (!fits(type, value)) return ending ? undefined : told(goType(schema), type === 'integer')
  if (schema.format === 'byte') return ending ? undefined : illegalBase64(value as string)
  if (Array.isArray(value)) {
    for (const item of value) {
      const why = find(schema.items, item, owner, path, ending)
      if (why) return why
    }
    return undefined
  }
  if (typeof value !== 'object') return undefined
  const { properties, additionalProperties } = schema
  const name = properties ? structName(schema, owner) : owner
  for (const [key, item] of Object.entries(value)) {
    const property = properties?.[key]
    const below = property ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
    const why = find(
      below,
      item,
      name,
      property ? [path, inlined(name, key), key].filter(Boolean).join('.') : path,
      ending,
    )
    if (why) return why
  }
  return undefined
}

const isQuantity = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?\s*$/
const noQuantity = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

/** Bytes may be numbers, too. */
const isBytes = (value: unknown) => Array.isArray(value) && value.every(Number.isInteger)

/** Structs whose fields stand in another's JSON are named in the path all the same. */
const handlers = new Set(['exec', 'httpGet', 'tcpSocket', 'grpc'])
const references = new Set([
  'ConfigMapEnvSource',
  'SecretEnvSource',
  'ConfigMapKeySelector',
  'SecretKeySelector',
  'ConfigMapVolumeSource',
  'ConfigMapProjection',
  'SecretProjection',
])

function inlined(struct: string, field: string): string {
  if (struct === 'Probe') return handlers.has(field) ? 'ProbeHandler' : ''
  if (struct === 'Volume') return field === 'name' ? '' : 'VolumeSource'
  if (struct === 'EphemeralContainer') return field === 'targetContainerName' ? '' : 'EphemeralContainerCommon'
  return references.has(struct) && field === 'name' ? 'LocalObjectReference' : ''
}

function illegalTime(text: string, schema: Schema): string | undefined {
  if (text === '' ? !isMicro(schema) : fitsFormat('date-time', text)) return undefined
  const layout = isMicro(schema) ? '2006-01-02T15:04:05.000000Z07:00' : '2006-01-02T15:04:05Z07:00'
  return `parsing time ${JSON.stringify(text)} as "${layout}": cannot parse ${JSON.stringify(text)} as "2006"`
}

const isMicro = (schema: Schema) => schema['x-name']?.endsWith('.MicroTime') ?? false

function illegalBase64(text: string): string | undefined {
  const data = text.replace(/[\r\n]/g, '')
  const wrong = data.replace(/={1,2}$/, '').search(/[^A-Za-z0-9+/]/)
  if (wrong < 0 && data.length % 4 === 0) return undefined
  return `illegal base64 data at input byte ${wrong < 0 ? data.length - (data.length % 4) : wrong}`
}

function fits(type: NonNullable<Schema['type']>, value: unknown): boolean {
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && !Array.isArray(value)
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}

const structName = (schema: Schema, other: string) => schema['x-name']?.split('.').at(-1) ?? other

function goType(schema: Schema): string {
  const { type, format, items, additionalProperties } = schema
  if (schema['x-name']) return schema['x-name'].split('.').slice(-2).join('.')
  if (type === 'array') return `[]${items ? goType(items) : 'interface {}'}`
  if (type === 'object') {
    return `map[string]${typeof additionalProperties === 'object' ? goType(additionalProperties) : 'interface {}'}`
  }
  if (type === 'integer') return format ?? 'int64'
  if (type === 'boolean') return 'bool'
  if (type === 'number') return 'float64'
  return format === 'byte' ? '[]uint8' : 'string'
}
