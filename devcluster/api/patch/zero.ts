/**
 * What is there before anything is: a built-in kind's object always has some of its fields, a custom one only says what it is.
 */
import { zerosOf } from '../resources/zeros.ts'
import type { Schema } from '../schema/schema.ts'
import type { Json, Obj } from '../types.ts'

const zeros = new WeakMap<Schema, { [field: string]: Json }>()

/** An object of the kind with nothing in it. */
export function zeroObject(schema: Schema, apiVersion: string, kind: string): Obj {
  const fields = schema['x-name'] === undefined ? {} : zeroOf(schema)
  return { ...fields, apiVersion, kind, metadata: {} } as unknown as Obj
}

/** Fields that are no pointers, which the published schemas tell by a default of `{}`, `""`, 0 or false; and required ones. */
function zeroOf(schema: Schema): { [field: string]: Json } {
  let zero = zeros.get(schema)
  if (!zero) {
    zero = {}
    zeros.set(schema, zero)
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      const value = zeroField(field, schema.required?.includes(name) ?? false)
      if (value !== undefined) zero[name] = value
    }
    for (const [name, value] of Object.entries(zerosOf(schema).always ?? {})) zero[name] ??= value
  }
  return zero
}

function zeroField(field: Schema, required: boolean): Json | undefined {
  const given = field.default
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) {
    return Object.keys(given).length === 0 && field.properties ? zeroOf(field) : undefined
  }
  if (given === '' || given === 0 || given === false) return given
  return required ? null : undefined
}

/** The value without nulls in fields that cannot be null, as it is once it is decoded into its kind. */
export function withoutNulls<T>(schema: Schema | undefined, value: T): T {
  if (schema === undefined || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map(item => withoutNulls(schema.items, item))
    return (items.some((item, i) => item !== value[i]) ? items : value) as T
  }
  let out = value as Record<string, unknown>
  for (const [name, inner] of Object.entries(value)) {
    const field = schema.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
    const other = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
    const after = field && inner === null && !field.nullable ? undefined : withoutNulls(field ?? other, inner)
    if (after === inner) continue
    if (out === value) out = { ...out }
    if (after === undefined) delete out[name]
    else out[name] = after
  }
  return out as T
}
