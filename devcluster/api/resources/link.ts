/**
 * The types of built-in kinds, linked: where the data has the name of a type, the type itself stands. A field that says more about a type than its name
 * (a default, a merge key) has a schema of its own that shares the type's parts.
 */
import data from '../../data/types.json' with { type: 'json' }
import type { Schema } from '../schema/schema.ts'

interface Named extends Omit<Schema, 'properties' | 'items' | 'additionalProperties'> {
  $ref?: string
  properties?: Record<string, Named>
  items?: Named
  additionalProperties?: Named | boolean
}

const named = data as unknown as Record<string, Named>
const linked = new Map<string, Schema>()

/** @param name as OpenAPI has it: `io.k8s.api.core.v1.Pod` */
export function typeNamed(name: string): Schema {
  const known = linked.get(name)
  if (known) return known
  const source = named[name]
  if (!source) throw new Error(`there is no type ${name}`)
  const schema: Schema = { 'x-name': name }
  // Before its parts are looked at: a type may contain itself.
  linked.set(name, schema)
  fill(schema, source)
  return schema
}

function fill(schema: Schema, source: Named): void {
  const { properties, items, additionalProperties, $ref: _, ...rest } = source
  Object.assign(schema, rest)
  if (properties) {
    // Each type is linked when it is first looked at: a server that is never asked about pods never links them.
    schema.properties = {}
    for (const [name, property] of Object.entries(properties)) lazily(schema.properties, name, () => link(property))
  }
  if (items) lazily(schema, 'items', () => link(items))
  if (additionalProperties === true) schema.additionalProperties = true
  else if (additionalProperties) lazily(schema, 'additionalProperties', () => link(additionalProperties))
}

function link(source: Named): Schema {
  if (!source.$ref) {
    const schema: Schema = {}
    fill(schema, source)
    return schema
  }
  const type = typeNamed(source.$ref)
  const { $ref: _, ...more } = source
  if (Object.keys(more).length === 0) return type
  return Object.defineProperties(
    {},
    { ...Object.getOwnPropertyDescriptors(type), ...Object.getOwnPropertyDescriptors(more) },
  )
}

function lazily<T extends object>(target: T, name: string, make: () => Schema): void {
  Object.defineProperty(target, name, {
    enumerable: true,
    configurable: true,
    get() {
      const value = make()
      Object.defineProperty(this, name, { value, enumerable: true, configurable: true, writable: true })
      return value
    },
  })
}
