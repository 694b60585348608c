/**
 * What the schema of a CustomResourceDefinition may not say. It has to be structural: every field has a type, in one place, and what stands below
 * `allOf`, `anyOf`, `oneOf` and `not` only narrows values. Pure.
 */
import { type FieldError, mistakeText } from '../problems.ts'
import { checkDefault } from './default-values.ts'
import { checkList } from './list-types.ts'
import { compile } from './pattern.ts'
import type { Schema } from './schema.ts'
import { valuesOf } from './values.ts'

type Level = 'root' | 'item' | 'field'

const forbidden = (field: string, detail: string): FieldError => ({ mistake: 'FieldValueForbidden', field, detail })
const required = (field: string, detail: string): FieldError => ({ mistake: 'FieldValueRequired', field, detail })
const invalid = (field: string, value: unknown, detail: string): FieldError => ({
  mistake: 'FieldValueInvalid',
  field,
  value,
  detail,
})
const notSupported = (field: string, value: unknown, supported: readonly string[]): FieldError => ({
  mistake: 'FieldValueNotSupported',
  field,
  value,
  detail: `supported values: ${supported.map(one => `"${one}"`).join(', ')}`,
})

const types = ['array', 'boolean', 'integer', 'number', 'object', 'string']
const unsupported = ['$ref', 'patternProperties', 'definitions', 'dependencies', 'additionalItems', 'id', '$schema']

/** @param path where the schema stands: of several versions, each has its own */
export function checkStructural(schema: Schema, path = 'spec.validation.openAPIV3Schema'): FieldError[] {
  const errors = [...checkWords(schema, path), ...checkSchema(schema, 'root', path)]
  const text = (error: FieldError) => `${error.field}: ${mistakeText(error)}`
  return errors.sort((a, b) => (text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : 0))
}

/** Words of JSON Schema that are not supported, or not together. */
function checkWords(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = []
  for (const word of unsupported) {
    if (Object.hasOwn(schema, word)) errors.push(forbidden(`${path}.${word}`, `${word} is not supported`))
  }
  if (schema.uniqueItems) {
    errors.push(
      forbidden(
        `${path}.uniqueItems`,
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ),
    )
  }
  if (schema.additionalProperties && schema.properties && Object.keys(schema.properties).length > 0) {
    errors.push(forbidden(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'))
  }
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    errors.push(invalid(`${path}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'))
  }
  if (schema.type && !types.includes(schema.type)) errors.push(notSupported(`${path}.type`, schema.type, types))
  const mapType = schema['x-kubernetes-map-type']
  if (mapType && !['atomic', 'granular'].includes(mapType)) {
    errors.push(notSupported(`${path}.x-kubernetes-map-type`, mapType, ['atomic', 'granular']))
  } else if (mapType && schema.type !== 'object') {
    errors.push(invalid(`${path}.type`, schema.type ?? '', 'must be object if x-kubernetes-map-type is specified'))
  }
  return [...errors, ...checkList(schema, path)]
}

function checkSchema(schema: Schema, level: Level, path: string): FieldError[] {
  const errors: FieldError[] = []
  if (schema.type === 'array' && !schema.items) errors.push(required(`${path}.items`, 'must be specified'))
  const below = (inner: Schema, inLevel: Level, at: string) => {
    errors.push(...checkWords(inner, at), ...checkSchema(inner, inLevel, at))
  }
  if (schema.items) below(schema.items, 'item', `${path}.items`)
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    if (level === 'root' && key === 'metadata') continue
    below(property, 'field', `${path}.properties[${key}]`)
  }
  if (schema.additionalProperties !== undefined && level === 'root') {
    errors.push(forbidden(`${path}.additionalProperties`, 'must not be used at the root'))
  }
  const values = valuesOf(schema)
  if (values) below(values, 'field', `${path}.additionalProperties`)
  errors.push(...checkExtensions(schema, path), ...checkType(schema, level, path))
  errors.push(...checkNarrowing(schema, path, isIntOrString(schema)))
  if (level === 'root') errors.push(...checkRootMeta(schema, path))
  if (schema.default !== undefined) errors.push(...checkDefault(schema, `${path}.default`))
  return errors
}

function checkExtensions(schema: Schema, path: string): FieldError[] {
  if (!schema['x-kubernetes-int-or-string']) return []
  return (['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'] as const)
    .filter(word => schema[word])
    .map(word => invalid(`${path}.${word}`, true, 'must be false if x-kubernetes-int-or-string is true'))
}

const missing: Record<Level, string> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
}

function checkType(schema: Schema, level: Level, path: string): FieldError[] {
  const errors: FieldError[] = []
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true
  const keeps = schema['x-kubernetes-preserve-unknown-fields'] === true
  if (isEmbedded && schema.type !== 'object') {
    const detail = 'must be object if x-kubernetes-embedded-resource is true'
    errors.push(schema.type ? invalid(`${path}.type`, schema.type, detail) : required(`${path}.type`, detail))
  } else if (!schema.type && !schema['x-kubernetes-int-or-string'] && !keeps && !Object.hasOwn(schema, '$ref')) {
    errors.push(required(`${path}.type`, missing[level]))
  }
  if (isEmbedded && schema.additionalProperties !== undefined) {
    errors.push(forbidden(`${path}.additionalProperties`, 'must not be used if x-kubernetes-embedded-resource is set'))
  }
  if (isEmbedded && !keeps && Object.keys(schema.properties ?? {}).length === 0) {
    const detail =
      'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields'
    errors.push(required(`${path}.properties`, detail))
  }
  if (level === 'root' && schema.type && schema.type !== 'object') {
    errors.push(invalid(`${path}.type`, schema.type, 'must be object at the root'))
  }
  if (isEmbedded || level === 'root') {
    for (const key of ['kind', 'apiVersion']) {
      const property = schema.properties?.[key]
      if (property && property.type !== 'string') {
        errors.push(invalid(`${path}.properties[${key}].type`, property.type ?? '', 'must be string'))
      }
    }
    const metadata = schema.properties?.metadata
    if (metadata && metadata.type !== 'object') {
      errors.push(invalid(`${path}.properties[metadata].type`, metadata.type ?? '', 'must be object'))
    }
  }
  return errors
}

/** Of metadata a kind may narrow the name. */
function checkRootMeta(schema: Schema, path: string): FieldError[] {
  const metadata = schema.properties?.metadata
  if (!metadata) return []
  const { type: _, default: __, properties = {}, ...more } = metadata
  const onlyNames = Object.keys(properties).every(key => key === 'name' || key === 'generateName')
  if (onlyNames && Object.keys(more).length === 0) return []
  const detail = 'must not specify anything other than name and generateName, but metadata is implicitly specified'
  return [forbidden(`${path}.properties[metadata]`, detail)]
}

/** The one place where a type may stand below anyOf: it says no more than the extension. */
function isIntOrString(schema: Schema): Schema[] {
  const fits = (list: Schema[] | undefined) =>
    list?.length === 2 &&
    Object.keys(list[0] ?? {}).length === 1 &&
    list[0]?.type === 'integer' &&
    list[1]?.type === 'string'
  if (fits(schema.anyOf)) return schema.anyOf ?? []
  return fits(schema.allOf?.[0]?.anyOf) ? (schema.allOf?.[0]?.anyOf ?? []) : []
}

function checkNarrowing(schema: Schema, path: string, exempt: readonly Schema[]): FieldError[] {
  const errors: FieldError[] = []
  for (const word of ['anyOf', 'allOf', 'oneOf'] as const) {
    for (const [index, one] of (schema[word] ?? []).entries()) {
      if (!exempt.includes(one)) errors.push(...checkNested(one, `${path}.${word}[${index}]`, exempt))
    }
  }
  if (schema.not) errors.push(...checkNested(schema.not, `${path}.not`, exempt))
  if (schema.pattern) {
    const compiled = compile(schema.pattern)
    if (compiled instanceof Error) {
      const detail = `must be a valid regular expression, but isn't: ${compiled.message}`
      errors.push(invalid(`${path}.pattern`, schema.pattern, detail))
    }
  }
  return errors
}

const outside: [keyof Schema, string][] = [
  ['type', 'must be empty to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
]

function checkNested(schema: Schema, path: string, exempt: readonly Schema[]): FieldError[] {
  const errors = checkNarrowing(schema, path, exempt)
  for (const [word, detail] of outside) {
    const value = schema[word]
    const isSet =
      word === 'default' || word === 'additionalProperties'
        ? value !== undefined
        : Array.isArray(value)
          ? value.length > 0
          : Boolean(value)
    if (isSet) errors.push(forbidden(`${path}.${word}`, detail))
  }
  if (schema.items) errors.push(...checkNested(schema.items, `${path}.items`, []))
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    const at = `${path}.properties[${key}]`
    errors.push(...checkNested(property, at, []))
    if (key === 'metadata') errors.push(forbidden(at, 'must not be specified in a nested context'))
  }
  return errors
}
