/**
 * From the JSON schema that zod makes to a structural schema, the part of OpenAPI 3.0 in which a CRD is written. Pure.
 *
 * Guarantees: what comes out is structural; what a CRD cannot say is refused with the field's path and what to do instead, and no constraint is left
 * out in silence. The order of keywords depends on nothing but the schema.
 */
import { suggestion } from '../../../shared/nearest.ts'
import type { Json } from './jsonschema.ts'
import { checkListType } from './lists.ts'
import { type FieldPath, preserveInstead, refuse } from './refuse.ts'
import { rulesOf } from './rules.ts'
import { numberOf, textOf, valuesOf } from './scalars.ts'
import { unionOf } from './union.ts'

/** What every sort of value may have beside its type, as zod or `.meta` give it. */
const common = ['description', 'title', 'default', 'nullable', 'examples', 'deprecated', 'rules', 'type']
/** Understood, and then without a place or a need in a CRD. */
const dropped = ['readOnly', 'contentEncoding', 'namesUnchecked']
const extensions = [
  'x-kubernetes-embedded-resource',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-list-type',
  'x-kubernetes-map-type',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
]
const numeric = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'format', 'enum', 'allOf']
/** The keywords of each type. */
const byType: Record<string, readonly string[]> = {
  string: ['minLength', 'maxLength', 'pattern', 'format', 'enum', 'allOf'],
  integer: numeric,
  number: numeric,
  boolean: ['enum'],
  array: ['items', 'minItems', 'maxItems'],
  object: ['properties', 'required', 'additionalProperties', 'minProperties', 'maxProperties'],
}

export interface StructuralSchema {
  description?: string
  title?: string
  type?: string
  format?: string
  nullable?: boolean
  default?: unknown
  example?: unknown
  enum?: unknown[]
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  exclusiveMinimum?: boolean
  maximum?: number
  exclusiveMaximum?: boolean
  multipleOf?: number
  minItems?: number
  maxItems?: number
  minProperties?: number
  maxProperties?: number
  required?: string[]
  items?: StructuralSchema
  properties?: Record<string, StructuralSchema>
  additionalProperties?: StructuralSchema
  allOf?: StructuralSchema[]
  anyOf?: StructuralSchema[]
  oneOf?: StructuralSchema[]
  'x-kubernetes-embedded-resource'?: boolean
  'x-kubernetes-int-or-string'?: boolean
  'x-kubernetes-list-map-keys'?: string[]
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  'x-kubernetes-map-type'?: 'atomic' | 'granular'
  'x-kubernetes-preserve-unknown-fields'?: boolean
  'x-kubernetes-validations'?: ValidationRule[]
}

/** A rule in CEL, as a CRD has it. */
export interface ValidationRule {
  /** What has to hold: `self` is the value, `oldSelf` what it was. */
  readonly rule: string
  /** What is said when it does not hold. */
  readonly message?: string
  /** The same, as a CEL expression. */
  readonly messageExpression?: string
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate'
  readonly fieldPath?: string
  /** Also checked when there was no value before. */
  readonly optionalOldSelf?: boolean
}

export function structural(json: Json, path: FieldPath): StructuralSchema {
  return ordered(translated(json, path))
}

function translated(json: Json, path: FieldPath): StructuralSchema {
  const isAnything = json['x-kubernetes-preserve-unknown-fields'] === true
  if (typeof json.obstacle === 'string') refuse(path, json.obstacle)
  if (isAnything && json.type === undefined) {
    checkKeywords(json, path, ['anyOf', 'oneOf', 'allOf', '$ref', 'enum'])
    return { ...around(json, path), ...extended(json) }
  }
  if (json.$ref !== undefined) {
    refuse(path, `it holds itself, and a CRD is finite: give it a depth, or ${preserveInstead}`)
  }
  const options = (json.anyOf ?? json.oneOf) as Json[] | undefined
  if (options) {
    checkKeywords(json, path, ['anyOf', 'oneOf'])
    const keyword = json.anyOf ? 'anyOf' : 'oneOf'
    const united = unionOf(
      keyword,
      flat(options, keyword).map(option => whole(option, path)),
      path,
    )
    return merged(united, { ...around(json, path), ...extended(json) })
  }
  if (json.nothing === true) refuse(path, 'nothing but null fits: make the field nullable, or leave it out')
  if (json.type === undefined) return untyped(json, path)
  return { ...body(json, path), ...around(json, path), ...extended(json) }
}

/** An option of a union; null has a place there. */
function whole(json: Json, path: FieldPath): StructuralSchema {
  return json.nothing === true ? { nullable: true } : structural(json, path)
}

/** A union in a union is one union. */
function flat(options: readonly Json[], keyword: string): Json[] {
  return options.flatMap(option => {
    const inner = option[keyword]
    return Array.isArray(inner) && Object.keys(option).length === 1 ? flat(inner, keyword) : [option]
  })
}

function merged(united: StructuralSchema, outer: StructuralSchema): StructuralSchema {
  const description = [outer.description, united.description].filter(text => text !== undefined).join(' ')
  return nullableValues({ ...united, ...outer, ...(description === '' ? {} : { description }) })
}

/** Without a type: values of several types, parts that all have to fit, or anything. */
function untyped(json: Json, path: FieldPath): StructuralSchema {
  checkKeywords(json, path, ['enum', 'allOf'])
  if (json.allOf !== undefined) {
    refuse(path, 'an intersection cannot be told as one schema: extend one object by the other, with .extend()')
  }
  const outer = { ...around(json, path), ...extended(json) }
  if (Array.isArray(json.enum)) return nullableValues({ ...valuesOf(json.enum, path), ...outer })
  return { ...outer, 'x-kubernetes-preserve-unknown-fields': true }
}

function body(json: Json, path: FieldPath): StructuralSchema {
  const type = String(json.type)
  const keywords = byType[type]
  if (!keywords) refuse(path, `${JSON.stringify(type)} is no type of a CRD${suggestion(type, Object.keys(byType))}`)
  checkKeywords(json, path, keywords)
  switch (type) {
    case 'string':
      return nullableValues({ ...textOf(json, path), ...nullability(json) })
    case 'integer':
    case 'number':
      return nullableValues({ ...numberOf(json), ...nullability(json) })
    case 'array': {
      const { items, minItems, maxItems } = json
      const list = { type, items: structural((items ?? {}) as Json, [...path, '[]']), ...given({ minItems, maxItems }) }
      checkListType({ ...list, ...extended(json) }, path)
      return list
    }
    case 'object':
      return objectOf(json, path)
    default:
      return nullableValues({ type, ...nullability(json), ...given({ enum: json.enum }) })
  }
}

function objectOf(json: Json, path: FieldPath): StructuralSchema {
  const { properties = {}, required, additionalProperties: others, minProperties, maxProperties } = json
  const fields = Object.entries(properties as Record<string, Json>)
  const result: StructuralSchema = {
    type: 'object',
    ...given({ minProperties, maxProperties, required }),
  }
  if (fields.length > 0) {
    result.properties = Object.fromEntries(fields.map(([name, one]) => [name, structural(one, [...path, name])]))
  }
  if (typeof others !== 'object' || others === null) return result
  const value = structural(others as Json, [...path, '*'])
  if (isAnything(value)) return { ...result, 'x-kubernetes-preserve-unknown-fields': true }
  if (fields.length > 0) {
    refuse(path, 'an object has either fields or values under any name: put the latter into a z.record of their own')
  }
  return { ...result, additionalProperties: value }
}

const isAnything = (schema: StructuralSchema) =>
  schema['x-kubernetes-preserve-unknown-fields'] === true && schema.type === undefined

/** The server compares null with allowed values that stand beside the type, and finds it among none; it does not look at `allOf` for null. */
function nullableValues(schema: StructuralSchema): StructuralSchema {
  const { enum: values, allOf = [], ...rest } = schema
  if (!schema.nullable || !values) return schema
  return { ...rest, allOf: [...allOf, { enum: values }] }
}

const nullability = (json: Json): StructuralSchema => (json.nullable === true ? { nullable: true } : {})

/** What stands around a schema's own constraints: description, default, rules. */
function around(json: Json, path: FieldPath): StructuralSchema {
  const { description, title, examples, deprecated } = json
  const words = [deprecated === true ? 'Deprecated.' : undefined, description].filter(text => text !== undefined)
  const rules = [...rulesOf(json.rules, path), ...rulesOf(json['x-kubernetes-validations'], path)]
  return {
    ...given({ title, description: words.length > 0 ? words.join(' ') : undefined }),
    ...nullability(json),
    ...given({ default: json.default, example: Array.isArray(examples) ? examples[0] : undefined }),
    ...(rules.length > 0 ? { 'x-kubernetes-validations': rules } : {}),
  }
}

function extended(json: Json): StructuralSchema {
  const names = extensions.filter(name => name !== 'x-kubernetes-validations')
  return given(Object.fromEntries(names.map(name => [name, json[name]])))
}

function checkKeywords(json: Json, path: FieldPath, keywords: readonly string[]): void {
  const known = [...keywords, ...common, ...extensions]
  for (const keyword of Object.keys(json)) {
    if (known.includes(keyword) || dropped.includes(keyword)) continue
    const what = json.type === undefined ? 'of its schema' : `of a schema of type ${json.type}`
    refuse(path, `${JSON.stringify(keyword)} is no keyword ${what} in a CRD${suggestion(keyword, known)}`)
  }
}

/** As a person reads it: what it is, what it accepts, what is in it. */
function ordered(schema: StructuralSchema): StructuralSchema {
  const rank = (keyword: string) => {
    const found = order.indexOf(keyword)
    return found < 0 ? order.length : found
  }
  return Object.fromEntries(Object.entries(schema).sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1)))
}

const order = [
  ...['title', 'description', 'type', 'format', 'nullable', 'default', 'example', 'enum', 'required'],
  ...['minLength', 'maxLength', 'pattern', 'minimum', 'exclusiveMinimum', 'maximum', 'exclusiveMaximum', 'multipleOf'],
  ...['minItems', 'maxItems', 'minProperties', 'maxProperties'],
  ...['allOf', 'anyOf', 'oneOf', ...extensions, 'items', 'properties', 'additionalProperties'],
]

function given(values: Record<string, unknown>): StructuralSchema {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}
