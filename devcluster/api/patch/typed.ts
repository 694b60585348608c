/**
 * A schema as apply sees it: what a value may be (scalar, list, map), how its items are told apart, and what is owned as a whole.
 * Worked out when a part is first met, and kept with the schema.
 */
import type { Schema } from '../schema/schema.ts'
import type { Json } from '../types.ts'
import { keyStep, valueStep } from './elements.ts'

export interface Type {
  readonly scalar?: 'numeric' | 'string' | 'boolean' | 'untyped'
  readonly list?: ListType
  readonly map?: MapType
}

export interface ListType {
  /** Items are known by their value or keys; otherwise the list is one value. */
  readonly associative: boolean
  readonly keys: readonly string[]
  readonly element: Type
}

export interface MapType {
  readonly atomic: boolean
  /** Takes any field, and nothing is said of any. */
  readonly deduced: boolean
  field(name: string): Field | undefined
  /** Of fields without a name of their own. */
  readonly element: Type | undefined
}

export interface Field {
  readonly type: Type
  readonly default?: Json | undefined
}

const noField = () => undefined

/** Any value, owned as a whole. */
const untypedAtomic: Type = {
  scalar: 'untyped',
  list: { associative: false, keys: [], element: {} },
  map: { atomic: true, deduced: false, field: noField, element: {} },
}
Object.assign(untypedAtomic.list as object, { element: untypedAtomic })
Object.assign(untypedAtomic.map as object, { element: untypedAtomic })

/** Any value, of which fields of maps are owned one by one. */
const deduced: Type = {
  scalar: 'untyped',
  list: { associative: false, keys: [], element: untypedAtomic },
  map: { atomic: false, deduced: true, field: noField, element: {} },
}
Object.assign(deduced.map as object, { element: deduced })

const text: Type = { scalar: 'string' }
const number: Type = { scalar: 'numeric' }
const untyped: Type = { scalar: 'untyped' }

const struct = (fields: Record<string, Type>, atomic = false): Type => {
  const all = new Map(Object.entries(fields).map(([name, type]) => [name, { type }]))
  return { map: { atomic, deduced: false, field: name => all.get(name), element: undefined } }
}
const mapOf = (element: Type): Type => ({ map: { atomic: false, deduced: false, field: noField, element } })
const listOf = (element: Type, keys?: string[]): Type => ({
  list: { associative: keys !== undefined, keys: keys ?? [], element },
})

const boolean: Type = { scalar: 'boolean' }
const ownerReference = struct(
  { apiVersion: text, kind: text, name: text, uid: text, controller: boolean, blockOwnerDeletion: boolean },
  true,
)
/** Of every object, whatever its own schema says of it. */
const objectMeta = struct({
  annotations: mapOf(text),
  creationTimestamp: untyped,
  deletionGracePeriodSeconds: number,
  deletionTimestamp: untyped,
  finalizers: listOf(text, []),
  generateName: text,
  generation: number,
  labels: mapOf(text),
  managedFields: listOf(untypedAtomic),
  name: text,
  namespace: text,
  ownerReferences: listOf(ownerReference, ['uid']),
  resourceVersion: text,
  selfLink: text,
  uid: text,
})

const objectFields: Record<string, Field> = {
  apiVersion: { type: text },
  kind: { type: text },
  metadata: { type: objectMeta },
}

const roots = new WeakMap<Schema, Type>()

/** The type of the objects of a kind. */
export function rootType(schema: Schema): Type {
  let type = roots.get(schema)
  if (!type) {
    type = { map: asObject(mapType(schema, schema['x-kubernetes-preserve-unknown-fields'] === true)) }
    roots.set(schema, type)
  }
  return type
}

const asObject = (map: MapType): MapType => ({
  atomic: map.atomic,
  deduced: false,
  field: name => objectFields[name] ?? map.field(name),
  get element() {
    return map.element
  },
})

// That fields nobody knows are kept is said once and holds for all below.
const plain = new WeakMap<Schema, Type>()
const preserving = new WeakMap<Schema, Type>()

function typeOf(schema: Schema, inherited: boolean): Type {
  const preserve = inherited || schema['x-kubernetes-preserve-unknown-fields'] === true
  const cache = preserve ? preserving : plain
  let type = cache.get(schema)
  if (!type) {
    type = make(schema, preserve)
    cache.set(schema, type)
  }
  return type
}

const quantity = 'io.k8s.apimachinery.pkg.api.resource.Quantity'
const rawExtension = 'io.k8s.apimachinery.pkg.runtime.RawExtension'

function make(schema: Schema, preserve: boolean): Type {
  if (schema['x-name'] === quantity) return untyped
  if (schema['x-name'] === rawExtension) return untypedAtomic
  const map = () => {
    const own = mapType(schema, preserve)
    return schema['x-kubernetes-embedded-resource'] ? asObject(own) : own
  }
  switch (schema.type) {
    case 'object':
      return { map: map() }
    case 'array':
      return { list: listType(schema, preserve) }
    case 'integer':
    case 'number':
      return number
    case 'boolean':
      return boolean
    case 'string':
      return schema.format === undefined || schema.format === '' || schema.format === 'byte' ? text : untyped
    default:
      return { scalar: 'untyped', list: listType(schema, preserve), map: map() }
  }
}

function mapType(schema: Schema, preserve: boolean): MapType {
  const { properties, additionalProperties } = schema
  const named = properties !== undefined && Object.keys(properties).length > 0
  const known = new Map<string, Field>()
  const field = (name: string): Field | undefined => {
    const found = known.get(name)
    if (found || !properties || !Object.hasOwn(properties, name)) return found
    const own = properties[name] as Schema
    const made = { type: typeOf(own, preserve), default: own.default }
    known.set(name, made)
    return made
  }
  const atomic = schema['x-kubernetes-map-type'] === 'atomic'
  if (typeof additionalProperties === 'object') {
    return {
      atomic,
      deduced: false,
      field,
      get element() {
        return typeOf(additionalProperties, preserve)
      },
    }
  }
  const open = additionalProperties ?? (preserve || !named)
  return { atomic, deduced: open && !named, field, element: open ? deduced : undefined }
}

function listType(schema: Schema, preserve: boolean): ListType {
  const { items } = schema
  const kind = schema['x-kubernetes-list-type']
  const strategy = schema['x-kubernetes-patch-strategy']
  const mergeKey = schema['x-kubernetes-patch-merge-key']
  const merged = kind === undefined && (strategy === 'merge' || strategy === 'merge,retainKeys')
  return {
    associative: kind === 'set' || kind === 'map' || merged,
    keys: kind === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : merged && mergeKey ? [mergeKey] : [],
    get element() {
      return items ? typeOf(items, preserve) : untypedAtomic
    },
  }
}

export type Form = 'map' | 'list' | 'scalar'

export const isMap = (value: unknown): value is { [field: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Which of its type's forms a value has; `any` where it does not say (null, absent, or of a form that the type has not). */
export function formOf(type: Type, value: Json | undefined): Form | 'any' {
  const forms = (type.map ? 1 : 0) + (type.list ? 1 : 0) + (type.scalar ? 1 : 0)
  if (forms === 1) return type.map ? 'map' : type.list ? 'list' : 'scalar'
  if (value === undefined || value === null) return 'any'
  if (Array.isArray(value)) return type.list ? 'list' : 'any'
  if (typeof value === 'object') return type.map ? 'map' : 'any'
  return type.scalar ? 'scalar' : 'any'
}

/** The form that a value is treated as. */
export const treatedAs = (type: Type, form: Form | 'any'): Form =>
  form === 'any' ? (type.map ? 'map' : type.scalar ? 'scalar' : 'list') : form

// An item's step is asked for several times in a write, and again in the next while the object is stored.
const steps = new WeakMap<object, { list: ListType; step: string }>()

/** The step to an item of an associative list. Throws where the item has none. */
export function itemStep(list: ListType, item: Json): string {
  if (list.keys.length > 0) {
    const known = typeof item === 'object' && item !== null ? steps.get(item) : undefined
    if (known?.list === list) return known.step
    const step = keyedStep(list, item)
    steps.set(item as object, { list, step })
    return step
  }
  if (Array.isArray(item)) throw new Error('not supported: associative list with lists as elements')
  if (item === null) throw new Error("associative list without keys has an element that's an explicit null")
  if (typeof item === 'object') throw new Error("associative list without keys has an element that's a map type")
  return valueStep(item)
}

function keyedStep(list: ListType, item: Json): string {
  if (item === null) throw new Error('associative list with keys may not have a null element')
  if (!isMap(item)) throw new Error('associative list with keys may not have non-map elements')
  const fields: [string, Json][] = []
  for (const key of list.keys) {
    const value = Object.hasOwn(item, key) ? item[key] : list.element.map?.field(key)?.default
    // Without a value or a default a key is no part of the step: an item that has it is another one.
    if (value !== undefined && (value !== null || Object.hasOwn(item, key))) fields.push([key, value])
  }
  if (fields.length === 0) {
    const keys = `[${list.keys.map(key => JSON.stringify(key)).join(' ')}]`
    throw new Error(
      `associative list with keys has an element that omits all key fields ${keys} (and doesn't have default values for any key fields)`,
    )
  }
  return keyStep(fields)
}
