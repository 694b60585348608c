/** Objects embedded in another say what they are, and their metadata is metadata. Their names may be anything that a path can hold. */
import type { FieldError } from '../problems.ts'
import { validateMeta } from './meta.ts'
import { dns1035Label, pathSegment } from './names.ts'
import type { Schema } from './schema.ts'
import { child, isObject, type JsonObject, propertyOf, valuesOf } from './values.ts'

export function checkResources(schema: Schema, value: unknown, path = ''): FieldError[] {
  if (!mayEmbed(schema)) return []
  if (Array.isArray(value)) {
    const { items } = schema
    return items ? value.flatMap((item, index) => checkResources(items, item, `${path}[${index}]`)) : []
  }
  if (!isObject(value)) return []
  const own = schema['x-kubernetes-embedded-resource'] && path !== '' ? checkResource(value, path) : []
  const values = valuesOf(schema)
  const below = Object.keys(value).flatMap(key => {
    const property = propertyOf(schema, key)
    if (property) return checkResources(property, value[key], child(path, key))
    return values ? checkResources(values, value[key], `${path}[${key}]`) : []
  })
  return [...own, ...below]
}

function checkResource(object: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = []
  const { apiVersion, kind, metadata } = object
  if (typeof apiVersion !== 'string' || apiVersion === '') {
    errors.push({ mistake: 'FieldValueRequired', field: `${path}.apiVersion` })
  } else if (apiVersion.split('/').length > 2) {
    errors.push({
      mistake: 'FieldValueInvalid',
      field: `${path}.apiVersion`,
      value: apiVersion,
      detail: `unexpected GroupVersion string: ${apiVersion}`,
    })
  }
  if (typeof kind !== 'string' || kind === '') {
    errors.push({ mistake: 'FieldValueRequired', field: `${path}.kind` })
  } else {
    const wrong = dns1035Label(kind.toLowerCase())
    if (wrong.length > 0) {
      const detail = `may have mixed case, but should otherwise match: ${wrong.join(',')}`
      errors.push({ mistake: 'FieldValueInvalid', field: `${path}.kind`, value: kind, detail })
    }
  }
  if (!isObject(metadata)) return errors
  const named = { ...metadata, name: metadata.name || 'any' }
  const namespaced = typeof metadata.namespace === 'string' && metadata.namespace !== ''
  const wrong = validateMeta(named, { namespaced, generated: false, nameRule: pathSegment })
  return [...errors, ...wrong.map(error => ({ ...error, field: `${path}.${error.field}` }))]
}

const known = new WeakMap<Schema, boolean>()

/** Whether anything below may be one; most schemas have none, and need no walk. */
function mayEmbed(schema: Schema): boolean {
  const before = known.get(schema)
  if (before !== undefined) return before
  // While a type is looked through, it has none: it may contain itself.
  known.set(schema, false)
  const values = valuesOf(schema)
  const may =
    schema['x-kubernetes-embedded-resource'] === true ||
    (schema.items !== undefined && mayEmbed(schema.items)) ||
    (values !== undefined && mayEmbed(values)) ||
    Object.values(schema.properties ?? {}).some(mayEmbed)
  known.set(schema, may)
  return may
}
