/** Lists that are sets or maps hold each item, or each key, once. The second of two is the mistake. */
import type { FieldError } from '../problems.ts'
import type { Schema } from './schema.ts'
import { child, has, isObject, listKey, propertyOf, valuesOf } from './values.ts'

export function checkLists(schema: Schema, value: unknown, path = ''): FieldError[] {
  if (Array.isArray(value)) {
    const { items } = schema
    const below = items ? value.flatMap((item, index) => checkLists(items, item, `${path}[${index}]`)) : []
    return [...duplicatesOf(schema, value, path), ...below]
  }
  if (!isObject(value)) return []
  const values = valuesOf(schema)
  return Object.keys(value).flatMap(key => {
    const property = propertyOf(schema, key)
    if (property) return checkLists(property, value[key], child(path, key))
    return values ? checkLists(values, value[key], `${path}[${key}]`) : []
  })
}

function duplicatesOf(schema: Schema, list: unknown[], path: string): FieldError[] {
  const type = schema['x-kubernetes-list-type']
  if (type !== 'set' && type !== 'map') return []
  const seen = new Map<string, number>()
  const errors: FieldError[] = []
  for (const [index, item] of list.entries()) {
    if (type === 'map' && item !== null && !isObject(item)) {
      const detail = 'must be an object for an array of list-type map'
      errors.push({ mistake: 'FieldValueInvalid', field: `${path}[${index}]`, value: item, detail })
      continue
    }
    const key = type === 'set' ? canonical(item) : listKey(schema, item)
    if (key === undefined) continue
    const times = seen.get(key) ?? 0
    seen.set(key, times + 1)
    if (times === 1)
      errors.push({
        mistake: 'FieldValueDuplicate',
        field: `${path}[${index}]`,
        value: type === 'set' ? item : keysOf(schema, item),
      })
  }
  return errors
}

function keysOf(schema: Schema, item: unknown): unknown {
  if (!isObject(item)) return item
  const keys = [...(schema['x-kubernetes-list-map-keys'] ?? [])].sort()
  return Object.fromEntries(keys.filter(key => has(item, key)).map(key => [key, item[key]]))
}

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, inner) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  )
