/**
 * Strategic merge patch: a merge that knows from the kind's schema which lists are merged, and by what; with directives in the patch for what a merge
 * cannot say ($patch, $retainKeys, $setElementOrder, $deleteFromPrimitiveList).
 */
import { ApiError, badRequest } from '../problems.ts'
import type { Schema } from '../schema/schema.ts'
import type { Json, Obj } from '../types.ts'
import { goText, goType } from './go-text.ts'
import {
  deletedFrom,
  type Merging,
  mergedItems,
  ofMaps,
  ordered,
  removeDirectives,
  sameOrder,
} from './strategic-lists.ts'
import { isMap } from './typed.ts'

type Fields = { [field: string]: Json }

const directive = '$patch'
const retainKeys = '$retainKeys'
const elementOrder = '$setElementOrder/'
const deleteFromList = '$deleteFromPrimitiveList/'

/** The document with the patch in it. `schema` is of a built-in kind: custom ones have no strategies. */
export function strategicMerge(document: Obj, patch: unknown, schema: Schema): Obj {
  if (schema['x-name'] === undefined) throw badRequest('strategic merge patch format is not supported')
  if (!isMap(patch)) {
    const kind =
      patch === null ? 'null' : Array.isArray(patch) ? 'array' : typeof patch === 'boolean' ? 'bool' : typeof patch
    throw badRequest(`json: cannot unmarshal ${kind} into Go value of type map[string]interface {}`)
  }
  return mergeMap(document as unknown as Fields, patch, schema) as unknown as Obj
}

const unexpected = (message: string) => new ApiError(500, '', message)

function mergeMap(document: Fields, given: Fields, schema: Schema | undefined): Fields {
  if (Object.hasOwn(given, directive)) return directed(given)
  const patch = { ...given }
  const original = retained({ ...document }, patch)
  inOrder(original, patch, schema)
  for (const [key, value] of Object.entries(patch)) mergeField(original, key, value, schema)
  return original
}

function directed(patch: Fields): Fields {
  const { [directive]: what, ...rest } = patch
  if (what === 'replace') return rest
  if (what === 'delete') return {}
  throw unexpected(`unknown patch type: ${goText(what)} in map: ${goText(patch)}`)
}

/** `original` without what $retainKeys does not name. */
function retained(original: Fields, patch: Fields): Fields {
  if (!Object.hasOwn(patch, retainKeys)) return original
  const keys = patch[retainKeys]
  delete patch[retainKeys]
  if (!Array.isArray(keys)) throw badRequest('invalid patch format of retainKeys')
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || key.startsWith(deleteFromList) || key.startsWith(elementOrder)) continue
    if (!keys.includes(key)) throw badRequest('invalid patch format of retainKeys')
  }
  return Object.fromEntries(Object.entries(original).filter(([key]) => keys.includes(key)))
}

function mergeField(original: Fields, written: string, value: Json, schema: Schema | undefined): void {
  const deletes = written.startsWith(deleteFromList)
  const key = deletes ? written.slice(deleteFromList.length) : written
  if (written.startsWith('$deleteFromPrimitiveList') && !deletes) {
    throw badRequest('invalid patch format of primitive list')
  }
  if (value === null) {
    delete original[key]
    return
  }
  const before = Object.hasOwn(original, key) ? original[key] : undefined
  if (before === undefined || goType(before) !== goType(value)) {
    if (deletes) return
    set(original, key, removeDirectives(withoutNulls(value)))
    return
  }
  if (isMap(before) && isMap(value)) {
    const field = fieldOf(schema, key)
    original[key] = strategyOf(field) === 'replace' ? value : mergeMap(before, value, field)
  } else if (Array.isArray(before) && Array.isArray(value)) {
    const field = listOf(schema, key)
    if (deletes) original[key] = deletedFrom(before, value)
    else if (strategyOf(field) === 'merge') original[key] = mergedItems(before, value, merging(field))
    else original[key] = value
  } else set(original, key, removeDirectives(value))
}

function set(original: Fields, key: string, value: Json | undefined): void {
  if (value === undefined) delete original[key]
  else original[key] = value
}

/** Carries out $setElementOrder, with the lists that it orders, and takes both out of the patch. */
function inOrder(original: Fields, patch: Fields, schema: Schema | undefined): void {
  for (const [directiveKey, order] of Object.entries(patch)) {
    if (!directiveKey.startsWith('$setElementOrder')) continue
    delete patch[directiveKey]
    if (!Array.isArray(order)) throw unexpected(`expected a []interface {}, but received a ${goType(order)}`)
    if (!directiveKey.startsWith(elementOrder)) throw badRequest('invalid patch format of setElementOrder list')
    const key = directiveKey.slice(elementOrder.length)
    const live = listIn(original, key)
    const wanted = listIn(patch, key)
    const field = listOf(schema, key)
    const how = merging(field)
    if (wanted) sameOrder(wanted, order, how.key)
    if (!live && !wanted) continue
    const items =
      live && wanted
        ? strategyOf(field) === 'merge'
          ? mergedItems(live, wanted, how)
          : wanted
        : (live ?? (removeDirectives(wanted as Json[]) as Json[]))
    ofMaps(live ?? [], wanted ?? [])
    original[key] = ordered(items, order, live ?? [], how.key)
    delete patch[key]
  }
}

function listIn(fields: Fields, key: string): Json[] | undefined {
  const value = Object.hasOwn(fields, key) ? fields[key] : undefined
  if (value === undefined) return undefined
  if (!Array.isArray(value)) throw unexpected(`expected a []interface {}, but received a ${goType(value)}`)
  return value
}

function fieldOf(schema: Schema | undefined, key: string): Schema | undefined {
  const field = schema?.properties && Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined
  if (field) return field
  if (schema?.properties) {
    const name = schema['x-name']?.split('.').at(-1) ?? ''
    throw unexpected(`unable to find api field in struct ${name} for the json field ${JSON.stringify(key)}`)
  }
  // In a map of maps there is nothing to look up.
  throw unexpected('merging an object in json but data type is not struct, instead is: map')
}

function listOf(schema: Schema | undefined, key: string): Schema {
  const field = fieldOf(schema, key) as Schema
  if (field.type !== undefined && field.type !== 'array') {
    throw unexpected('expected slice or array type, but got: struct')
  }
  return field
}

const strategyOf = (field: Schema | undefined): string | undefined =>
  field?.['x-kubernetes-patch-strategy']?.split(',').find(strategy => strategy !== 'retainKeys')

const merging = (field: Schema): Merging => ({
  key: field['x-kubernetes-patch-merge-key'] ?? '',
  merge: (before, after) => mergeMap(before, after, field.items),
})

function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isMap(value)) return value
  const kept = Object.entries(value).filter(([, inner]) => inner !== null)
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutNulls(inner)]))
}
