/**
 * Fields that are null and may not be: to the server they are not there. Pure.
 */
import type { StructuralSchema } from './structural.ts'

/** The value as the server takes it. */
export function withoutNulls(value: unknown, schema: StructuralSchema): unknown {
  const { items, properties = {}, additionalProperties } = schema
  if (Array.isArray(value)) return items ? value.map(one => withoutNulls(one, items)) : value
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).flatMap(([name, one]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : additionalProperties
    if (!field) return [[name, one]]
    return one === null && !field.nullable ? [] : [[name, withoutNulls(one, field)]]
  })
  return Object.fromEntries(kept)
}
