/** The kinds of lists that a definition may declare: atomic ones, sets of scalars, maps by keys that every item has. */
import type { FieldError } from '../problems.ts'
import type { Schema } from './schema.ts'

const scalars = ['string', 'integer', 'number', 'boolean']
const kinds = ['atomic', 'set', 'map']

export function checkList(schema: Schema, path: string): FieldError[] {
  const kind = schema['x-kubernetes-list-type']
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const errors: FieldError[] = []
  const invalid = (field: string, value: unknown, detail: string) =>
    errors.push({ mistake: 'FieldValueInvalid', field, value, detail })
  const required = (field: string, detail: string) => errors.push({ mistake: 'FieldValueRequired', field, detail })
  if (kind === undefined) {
    if (keys.length > 0)
      required(`${path}.x-kubernetes-list-type`, 'must be map if x-kubernetes-list-map-keys is non-empty')
    return errors
  }
  if (!kinds.includes(kind)) {
    const detail = `supported values: ${kinds.map(one => `"${one}"`).join(', ')}`
    errors.push({ mistake: 'FieldValueNotSupported', field: `${path}.x-kubernetes-list-type`, value: kind, detail })
    return errors
  }
  if (schema.type !== 'array') {
    const detail = 'must be array if x-kubernetes-list-type is specified'
    if (schema.type) invalid(`${path}.type`, schema.type, detail)
    else required(`${path}.type`, detail)
  }
  const { items } = schema
  if (kind === 'set' && items) checkSetItems(items, `${path}.items`, invalid)
  if (kind !== 'map') {
    if (keys.length > 0) {
      invalid(`${path}.x-kubernetes-list-type`, kind, 'must be map if x-kubernetes-list-map-keys is non-empty')
    }
    return errors
  }
  if (keys.length === 0) {
    required(`${path}.x-kubernetes-list-map-keys`, 'must not be empty if x-kubernetes-list-type is map')
  }
  if (!items) {
    required(`${path}.items`, 'must have a schema if x-kubernetes-list-type is map')
    return errors
  }
  if (items.type !== 'object') {
    invalid(`${path}.items.type`, items.type ?? '', "must be object if parent array's x-kubernetes-list-type is map")
  }
  if (keys.some(key => !items.properties?.[key])) {
    invalid(`${path}.x-kubernetes-list-map-keys`, keys, 'entries must all be names of item properties')
  }
  for (const key of keys) {
    const property = items.properties?.[key]
    if (!property) continue
    const at = `${path}.items.properties[${key}]`
    if (!property.type || !scalars.includes(property.type)) {
      invalid(
        `${at}.type`,
        property.type ?? '',
        `must be a scalar type if parent array's x-kubernetes-list-type is map`,
      )
    }
    if (property.default === undefined && !items.required?.includes(key)) {
      const detail =
        'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property'
      required(`${at}.default`, detail)
    }
  }
  return errors
}

function checkSetItems(
  items: Schema,
  path: string,
  invalid: (field: string, value: unknown, detail: string) => void,
): void {
  if (items.nullable) {
    invalid(`${path}.nullable`, true, 'cannot be nullable when x-kubernetes-list-type is "set"')
  }
  if (items.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic') {
    const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set'
    invalid(`${path}.x-kubernetes-map-type`, items['x-kubernetes-map-type'] ?? null, detail)
  }
  if (items.type === 'array' && items['x-kubernetes-list-type'] && items['x-kubernetes-list-type'] !== 'atomic') {
    const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set'
    invalid(`${path}.x-kubernetes-list-type`, items['x-kubernetes-list-type'], detail)
  }
}
