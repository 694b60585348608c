/**
 * Fields of an object that its kind does not have: the server drops them, or refuses them where it is asked to be strict. Pure.
 */
import { shown, suggestion } from '../../../shared/nearest.ts'
import { textOfPath } from './refuse.ts'
import type { StructuralSchema } from './structural.ts'

/** A sentence for each. */
export function unknownFields(value: unknown, schema: StructuralSchema, path: readonly (string | number)[]): string[] {
  if (Array.isArray(value)) {
    const { items } = schema
    return items ? value.flatMap((one, index) => unknownFields(one, items, [...path, index])) : []
  }
  if (typeof value !== 'object' || value === null) return []
  const { properties = {}, additionalProperties } = schema
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true
  return Object.entries(value).flatMap(([name, one]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : additionalProperties
    if (field) return unknownFields(one, field, [...path, name])
    if (isOpen || schema.type !== 'object') return []
    const known = Object.keys(properties)
    return [`${textOfPath(path)} has no field ${shown(name)}${suggestion(name, known)}`]
  })
}
