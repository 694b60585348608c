/**
 * JSON values as the server's own language sees them: an integer that fits 64 bits is one, every other number is a float.
 */
import type { Schema } from './schema.ts'

export type JsonObject = Record<string, unknown>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const largest = 2 ** 63

export const isInteger = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= -largest && value < largest

export type ValueType = 'null' | 'boolean' | 'string' | 'integer' | 'number' | 'array' | 'object'

export function typeOf(value: unknown): ValueType {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return isInteger(value) ? 'integer' : 'number'
  return typeof value as ValueType
}

export const copy = <T>(value: T): T => {
  if (Array.isArray(value)) return value.map(copy) as T
  if (!isObject(value)) return value
  const copied: JsonObject = {}
  for (const key in value) set(copied, key, copy(value[key]))
  return copied as T
}

/** `__proto__` is a key like any other to the server. */
export function set(object: JsonObject, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true })
  else object[key] = value
}

export const has = (object: object | undefined, key: string): boolean =>
  object !== undefined && Object.hasOwn(object, key)

export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => equal(item, b[index]))
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every(key => has(b, key) && equal(a[key], b[key]))
}

export const propertyOf = (schema: Schema, key: string): Schema | undefined =>
  has(schema.properties, key) ? schema.properties?.[key] : undefined

/** The schema of what a map holds; undefined where it has none of its own. */
export const valuesOf = (schema: Schema): Schema | undefined =>
  typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined

/** `spec` and `name` give `spec.name`. */
export const child = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`)

/** The key that tells the items of a list of type map apart; undefined for what is no item of it. */
export function listKey(schema: Schema, item: unknown): string | undefined {
  const keys = schema['x-kubernetes-list-map-keys']
  if (!keys || !isObject(item)) return undefined
  return JSON.stringify(
    keys.map(key => (has(item, key) ? item[key] : (schema.items?.properties?.[key]?.default ?? null))),
  )
}
