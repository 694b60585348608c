/**
 * Texts, numbers and lists of allowed values, as a structural schema has them. Pure.
 *
 * Guarantee: bounds that say no more than that a number is one (zod's safe integers, those of a format) become a format.
 */
import { shown } from '../../../shared/nearest.ts'
import type { Json } from './jsonschema.ts'
import { toRe2 } from './pattern.ts'
import { type FieldPath, refuse } from './refuse.ts'
import type { StructuralSchema } from './structural.ts'

/** Formats that the server checks. Others stand in zod's JSON schema beside a pattern, which says the same. */
const formats = new Set([
  ...[
    'byte',
    'cidr',
    'date',
    'date-time',
    'duration',
    'email',
    'hexcolor',
    'hostname',
    'ipv4',
    'ipv6',
    'mac',
    'password',
  ],
  ...['k8s-long-name', 'k8s-short-name', 'uri', 'uuid', 'uuid3', 'uuid4', 'uuid5'],
])
/** Where zod's pattern only checks the calendar, which the server's format does as well. */
const calendar = /^\^\(\?:\(\?:\\d\\d\[2468\]\[048\]/
const hostname = /^\^\(\?=\.\{1,253\}\\\.\?\$\)/

export function textOf(json: Json, path: FieldPath): StructuralSchema {
  const { minLength, maxLength, format, pattern, allOf } = json
  const result: StructuralSchema = { type: 'string' }
  if (typeof minLength === 'number') result.minLength = minLength
  if (typeof maxLength === 'number') result.maxLength = maxLength
  if (typeof format === 'string' && formats.has(format)) result.format = format
  else if (typeof format === 'string' && pattern === undefined && allOf === undefined) {
    refuse(path, `${shown(format)} is no format that the server knows: they are ${[...formats].join(', ')}`)
  }
  if (Array.isArray(json.enum)) result.enum = json.enum
  if (typeof pattern === 'string') Object.assign(result, patternOf(pattern, result, path))
  if (Array.isArray(allOf)) {
    result.allOf = allOf.map((part: Json) => patternOf(String(part.pattern), {}, path))
  }
  return result
}

function patternOf(
  source: string,
  { format, maxLength = Infinity }: StructuralSchema,
  path: FieldPath,
): StructuralSchema {
  if (calendar.test(source) && format === 'date') return {}
  if (calendar.test(source) && format === 'date-time') {
    if (source.includes('[+-]')) return {}
    if (!/\\d\{\d+\}\(\?:Z\)/.test(source)) return { pattern: 'Z$' }
  }
  const isHost = hostname.test(source)
  const translated = toRe2(isHost ? source.replace(hostname, '^') : source)
  if ('problem' in translated) {
    refuse(path, `the pattern ${shown(source)} ${translated.problem}: write another one, or a CEL rule`)
  }
  return { ...translated, ...(isHost ? { maxLength: Math.min(253, maxLength) } : {}) }
}

export const int32 = [-(2 ** 31), 2 ** 31 - 1] as const
const float32 = 3.4028234663852886e38

export function numberOf(json: Json): StructuralSchema {
  const { multipleOf, enum: values, allOf } = json
  const isWhole = json.type === 'integer' || (Array.isArray(values) && values.every(Number.isSafeInteger))
  const bounds = [json.minimum, json.maximum]
  const isAt = (limits: readonly (number | undefined)[]) => bounds.some((bound, i) => bound === limits[i])
  const [format, limits] = isWhole
    ? isAt(int32)
      ? ['int32', int32]
      : ['int64', [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]]
    : isAt([-float32, float32])
      ? ['float', [-float32, float32]]
      : isAt([-Number.MAX_VALUE, Number.MAX_VALUE])
        ? ['double', [-Number.MAX_VALUE, Number.MAX_VALUE]]
        : [undefined, []]
  const chosen = typeof json.format === 'string' ? json.format : format
  const result: StructuralSchema = { type: isWhole ? 'integer' : 'number' }
  if (chosen !== undefined && values === undefined) result.format = chosen
  if (typeof json.minimum === 'number' && json.minimum !== limits[0]) {
    result.minimum = json.minimum
    if (json.exclusiveMinimum === true) result.exclusiveMinimum = true
  }
  if (typeof json.maximum === 'number' && json.maximum !== limits[1]) {
    result.maximum = json.maximum
    if (json.exclusiveMaximum === true) result.exclusiveMaximum = true
  }
  if (typeof multipleOf === 'number') result.multipleOf = multipleOf
  if (Array.isArray(values)) result.enum = values
  if (Array.isArray(allOf)) result.allOf = allOf.map(({ type: _type, ...part }) => part)
  return result
}

/** Allowed values of more than one type. */
export function valuesOf(values: readonly unknown[], path: FieldPath): StructuralSchema {
  const given = values.filter(value => value !== null)
  const nullable = given.length < values.length ? { nullable: true } : {}
  const types = new Set(given.map(value => (Number.isSafeInteger(value) ? 'integer' : typeof value)))
  const [type] = types
  if (types.size === 1 && type !== undefined) return { type, ...nullable, enum: [...given] }
  if (types.size === 2 && types.has('integer') && types.has('string')) {
    return { 'x-kubernetes-int-or-string': true, ...nullable, enum: [...given] }
  }
  refuse(
    path,
    `the values ${given.map(shown).join(', ')} are of several types; a CRD allows one, or texts and integers`,
  )
}
