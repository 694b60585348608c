/**
 * Defaults of a schema, filled in on a copy: for a field that is absent, or null where null is not allowed; then for what was filled in.
 * A null that is not allowed and has no default is as if it were not there, unless it is applied.
 */
import type { Schema } from './schema.ts'
import { copy, has, isObject, type JsonObject, propertyOf, valuesOf } from './values.ts'

/** @param keepsNulls whether a null that is not allowed and has no default stays, to be found by validation */
export function applyDefaults<T>(schema: Schema, value: T, keepsNulls = false): T {
  const filled = copy(value)
  fill(schema, filled, keepsNulls)
  return filled
}

const isForbiddenNull = (schema: Schema, value: unknown) => value === null && !schema.nullable

/** Whether there is a null where none is allowed. */
export function hasForbiddenNull(schema: Schema, value: unknown): boolean {
  if (isForbiddenNull(schema, value)) return true
  const { items } = schema
  if (Array.isArray(value)) return items !== undefined && value.some(item => hasForbiddenNull(items, item))
  if (!isObject(value)) return false
  return Object.entries(value).some(([key, inner]) => {
    const below = propertyOf(schema, key) ?? valuesOf(schema)
    return below !== undefined && hasForbiddenNull(below, inner)
  })
}

function fill(schema: Schema, value: unknown, keepsNulls: boolean): void {
  if (Array.isArray(value)) fillList(schema.items, value, keepsNulls)
  else if (isObject(value)) fillObject(schema, value, keepsNulls)
}

function fillList(items: Schema | undefined, list: unknown[], keepsNulls: boolean): void {
  if (!items) return
  for (const [index, item] of list.entries()) {
    if (isForbiddenNull(items, item) && items.default !== undefined) list[index] = copy(items.default)
    fill(items, list[index], keepsNulls)
  }
}

function fillObject(schema: Schema, object: JsonObject, keepsNulls: boolean): void {
  for (const key in schema.properties) {
    const property = schema.properties[key]
    if (property?.default === undefined) continue
    if (!has(object, key) || isForbiddenNull(property, object[key])) object[key] = copy(property.default)
  }
  const values = valuesOf(schema)
  for (const key of Object.keys(object)) {
    const below = propertyOf(schema, key) ?? values
    if (!below) continue
    if (isForbiddenNull(below, object[key])) {
      if (below.default === undefined) {
        if (!keepsNulls) delete object[key]
        continue
      }
      object[key] = copy(below.default)
    }
    fill(below, object[key], keepsNulls)
  }
}
