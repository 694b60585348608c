/**
 * Built-in kinds, and metadata of all, are decoded into types before anything is checked: a value of another type is a bad request, not an
 * invalid object. Told as the server's decoder does, the first mistake alone.
 */
import { fitsFormat } from './formats.ts'
import { objectMeta, standing } from './object-meta.ts'
import type { Schema } from './schema.ts'
import { isInteger, isObject, propertyOf, typeOf, valuesOf } from './values.ts'

/** Empty where the value can be decoded. */
export function decodeErrors(schema: Schema, value: unknown): string[] {
  const found = decode(schema, value, { owner: shortName(schema), path: [], isRoot: true })
  return found === undefined ? [] : [found]
}

/** Of a custom resource only metadata is decoded; the rest is what its schema says. */
export function decodeMetaErrors(metadata: unknown): string[] {
  if (metadata === undefined || metadata === null) return []
  const found = decode(objectMeta, metadata, { owner: 'ObjectMeta', path: [], isRoot: false })
  return found === undefined ? [] : [found]
}

interface Place {
  /** The type whose field it is. */
  readonly owner: string
  readonly path: readonly string[]
  readonly isRoot: boolean
}

const shortName = (schema: Schema) => schema['x-name']?.split('.').at(-1) ?? ''

function decode(schema: Schema, value: unknown, place: Place): string | undefined {
  if (value === null || value === undefined) return undefined
  if (schema['x-kubernetes-int-or-string'] || schema.format === 'int-or-string') {
    return typeof value === 'string' || isInteger(value) ? undefined : mismatch(value, place, 'int32')
  }
  if (schema['x-name']?.endsWith('.resource.Quantity')) return quantity(value)
  switch (schema.type) {
    case 'object':
      return isObject(value) ? decodeObject(schema, value, place) : mismatch(value, place, typeText(schema))
    case 'array':
      return Array.isArray(value)
        ? first(value, item => (schema.items ? decode(schema.items, item, { ...place, isRoot: false }) : undefined))
        : mismatch(value, place, typeText(schema))
    case 'string':
      if (typeof value !== 'string') return mismatch(value, place, typeText(schema))
      return decodeString(schema, value)
    case 'boolean':
      return typeof value === 'boolean' ? undefined : mismatch(value, place, 'bool')
    case 'integer': {
      const fits = isInteger(value) && (schema.format !== 'int32' || (value >= -(2 ** 31) && value < 2 ** 31))
      return fits ? undefined : mismatch(value, place, typeText(schema), true)
    }
    case 'number':
      return typeof value === 'number' ? undefined : mismatch(value, place, typeText(schema))
    default:
      return undefined
  }
}

function decodeObject(schema: Schema, object: Record<string, unknown>, place: Place): string | undefined {
  const owner = shortName(schema) || place.owner
  const values = valuesOf(schema)
  return first(Object.keys(object), key => {
    const property = (place.isRoot ? standing(schema, key) : undefined) ?? propertyOf(schema, key)
    if (property) return decode(property, object[key], { owner, path: [...place.path, key], isRoot: false })
    return values ? decode(values, object[key], { ...place, isRoot: false }) : undefined
  })
}

function first<T>(items: readonly T[], check: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = check(item)
    if (found !== undefined) return found
  }
  return undefined
}

function decodeString(schema: Schema, value: string): string | undefined {
  if (schema.format === 'date-time' && value !== '' && !fitsFormat('date-time', value)) {
    return `parsing time ${JSON.stringify(value)} as "2006-01-02T15:04:05Z07:00": cannot parse ${JSON.stringify(value)} as "2006"`
  }
  if (schema.format === 'byte' && value !== '' && !fitsFormat('byte', value)) {
    const at = /[^A-Za-z0-9+/]/.exec(value)?.index ?? value.length - (value.length % 4)
    return `illegal base64 data at input byte ${at}`
  }
  return undefined
}

function quantity(value: unknown): string | undefined {
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/.test(String(value))) return undefined
  return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
}

const words: Record<string, string> = { boolean: 'bool', integer: 'number' }

function mismatch(value: unknown, { owner, path }: Place, type: string, isNumber = false): string {
  const got = typeOf(value)
  const what = isNumber && typeof value === 'number' ? `number ${value}` : (words[got] ?? got)
  if (path.length === 0) return `json: cannot unmarshal ${what} into Go value of type v1.${owner}`
  return `json: cannot unmarshal ${what} into Go struct field ${owner}.${path.join('.')} of type ${type}`
}

/** The type in the server's own language. */
function typeText(schema: Schema): string {
  switch (schema.type) {
    case 'array':
      return `[]${schema.items ? typeText(schema.items) : 'interface {}'}`
    case 'object': {
      const values = valuesOf(schema)
      if (values) return `map[string]${typeText(values)}`
      const parts = schema['x-name']?.split('.') ?? []
      return parts.length > 1 ? parts.slice(-2).join('.') : 'map[string]interface {}'
    }
    case 'integer':
      return schema.format === 'int32' ? 'int32' : 'int64'
    case 'number':
      return 'float64'
    case 'boolean':
      return 'bool'
    default:
      return schema.format === 'byte' ? '[]uint8' : 'string'
  }
}
