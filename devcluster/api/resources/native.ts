/**
 * A built-in object in the form that a server keeps it in: without nulls, empty lists and empty maps, and without zeros where they say nothing; with what is
 * always there; quantities canonical; times in whole seconds of UTC. Custom resources are kept as they are sent.
 */

import { canonicalQuantity } from '../../quantity.ts'
import type { Schema } from '../schema/schema.ts'
import { zerosOf } from './zeros.ts'

/** A copy. @param isStored once it is kept: a list that is always there, and empty, is null */
export function nativeForm<T>(schema: Schema, value: T, isStored = false): T {
  return form(schema, value, isStored) as T
}

function form(schema: Schema | undefined, value: unknown, isStored: boolean): unknown {
  if (!schema || schema['x-kubernetes-preserve-unknown-fields']) return value
  if (schema.format === 'byte' && Array.isArray(value)) return Buffer.from(value).toString('base64')
  if (Array.isArray(value)) return value.map(item => form(schema.items, item ?? zeroOf(schema.items), isStored))
  if (value !== null && typeof value === 'object')
    return formOfObject(schema, value as Record<string, unknown>, isStored)
  if (schema.format === 'quantity' && (typeof value === 'string' || typeof value === 'number')) {
    return canonicalQuantity(value)
  }
  if (schema.format === 'date-time' && typeof value === 'string' && isMicro(schema) === false) return inSeconds(value)
  return value
}

function formOfObject(schema: Schema, value: Record<string, unknown>, isStored: boolean): Record<string, unknown> {
  const { properties, additionalProperties } = schema
  const { leftOut = [], always = {} } = zerosOf(schema)
  const out: Record<string, unknown> = {}
  for (const [name, item] of Object.entries(value)) {
    const values = typeof additionalProperties === 'object' ? additionalProperties : undefined
    const of = properties?.[name] ?? values
    const isValue = values !== undefined && properties?.[name] === undefined
    if (item === null && !isValue && !(name in always)) continue
    const next = form(of, isValue ? (item ?? zeroOf(values)) : item, isStored)
    if (properties && of && isEmpty(of, next)) {
      if (name in always) out[name] = isStored ? null : next
      continue
    }
    if (isZero(next) && leftOut.includes(name)) continue
    out[name] = next
  }
  for (const name in always) out[name] ??= always[name]
  return out
}

/** What a null in a list or in a map becomes, where a field would be left out. */
function zeroOf(schema: Schema | undefined): unknown {
  if (schema?.format === 'quantity') return '0'
  switch (schema?.type) {
    case 'object':
      return {}
    case 'string':
      return ''
    case 'integer':
    case 'number':
      return 0
    case 'boolean':
      return false
    default:
      return null
  }
}

const isZero = (value: unknown) => value === 0 || value === '' || value === false

/** Of a list or a map, not of a struct, nor where anything may stand: an empty one of those says something. */
function isEmpty(schema: Schema, value: unknown): boolean {
  if (schema.type === undefined && !schema.items && !schema.additionalProperties) return false
  if (Array.isArray(value)) return value.length === 0
  if (schema.properties || !schema.additionalProperties) return false
  return value !== null && typeof value === 'object' && Object.keys(value).length === 0
}

function isMicro(schema: Schema): boolean {
  return schema['x-name']?.endsWith('.MicroTime') ?? false
}

function inSeconds(text: string): string {
  const time = Date.parse(text)
  return Number.isNaN(time) ? text : `${new Date(time).toISOString().slice(0, 19)}Z`
}
