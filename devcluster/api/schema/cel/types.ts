/**
 * A schema as a type of CEL, and values of it. Fields of a rule are those of the schema alone: what is merely preserved has no type, and a rule
 * cannot name it. Names that are no identifiers are escaped.
 */
import type { Environment } from '@marcbachmann/cel-js'
import { objectMeta } from '../object-meta.ts'
import type { Schema } from '../schema.ts'
import { has, isInteger, isObject, type JsonObject, valuesOf } from '../values.ts'
import { cel } from './library.ts'
import { preserved, same } from './values.ts'

export interface CelType {
  readonly name: string
  /** The value as rules see it. */
  from(value: unknown): unknown
}

const scalars: Record<string, CelType> = {
  boolean: { name: 'bool', from: value => value },
  integer: { name: 'int', from: value => (isInteger(value) ? BigInt(value) : value) },
  number: { name: 'double', from: Number },
  string: { name: 'string', from: value => value },
}

const instant: CelType = {
  name: 'google.protobuf.Timestamp',
  from: value =>
    new Date(/^\d{4}-\d{2}-\d{2}$/.test(String(value)) ? `${value}T00:00:00Z` : String(value).toUpperCase()),
}
const formatted: Record<string, CelType> = {
  'date-time': instant,
  datetime: instant,
  date: instant,
  duration: {
    name: 'google.protobuf.Duration',
    from: value => cel().evaluate('duration(text)', { text: String(value) }),
  },
  byte: { name: 'bytes', from: value => Buffer.from(String(value), 'base64') },
}

const dyn: CelType = {
  name: 'dyn',
  from: value => (isInteger(value) ? BigInt(value) : value),
}

let serial = 0

/** The type of a schema's values, made known to the environment; undefined where rules cannot see them. */
export function declare(
  environment: Environment,
  schema: Schema,
  isRoot = false,
  name = `selfType${++serial}`,
): CelType | undefined {
  if (schema['x-kubernetes-int-or-string']) return dyn
  if (schema.type === 'array') return listOf(environment, schema, name)
  if (schema.type === 'object') return objectOf(environment, schema, isRoot, name)
  if (schema.type === 'string' && schema.format && has(formatted, schema.format)) return formatted[schema.format]
  return schema.type && scalars[schema.type]
}

function listOf(environment: Environment, schema: Schema, name: string): CelType | undefined {
  const items = schema.items && declare(environment, schema.items, false, `${name}.items`)
  if (!items) return undefined
  const isSet = schema['x-kubernetes-list-type'] === 'set'
  return {
    name: `list<${items.name}>`,
    from: value => {
      if (!Array.isArray(value)) return value
      const list = value.map(item => (item === null ? null : items.from(item)))
      return isSet ? new Set(list) : list
    },
  }
}

function objectOf(environment: Environment, schema: Schema, isRoot: boolean, name: string): CelType | undefined {
  if (schema.additionalProperties) {
    const given = valuesOf(schema)
    const values = given && declare(environment, given, false, `${name}.values`)
    if (!values) return undefined
    return {
      name: `map<string, ${values.name}>`,
      from: value =>
        isObject(value) ? new Map(Object.entries(value).map(([key, item]) => [key, values.from(item)])) : value,
    }
  }
  const fields = fieldsOf(environment, schema, isRoot, name)
  // Each type has a class of its own, by which the library tells values apart.
  const shape = class {}
  const declared = [...fields].flatMap(([key, { type, names }]) => names.map(one => [one, type.name, key] as const))
  environment.registerType(name, {
    ctor: shape,
    fields: Object.fromEntries(declared.map(([one, type]) => [one, type])),
  })
  environment.registerOperator(`${name} == ${name}`, same)
  return {
    name,
    from: value => {
      if (!isObject(value)) return value
      const made = new shape() as JsonObject
      for (const [key, { type, names }] of fields) {
        if (!has(value, key) || value[key] === null) continue
        const converted = type.from(value[key])
        for (const one of names) made[one] = converted
      }
      const others = Object.entries(value).filter(([key]) => !fields.has(key))
      if (others.length > 0) Object.assign(made, { [preserved]: Object.fromEntries(others) })
      return made
    },
  }
}

interface Field {
  readonly type: CelType
  readonly names: readonly string[]
}

function fieldsOf(environment: Environment, schema: Schema, isRoot: boolean, name: string): Map<string, Field> {
  const fields = new Map<string, Field>()
  const add = (key: string, below: Schema) => {
    const type = declare(environment, below, false, `${name}.${key.replace(/[^\w]/g, '_')}`)
    const escaped = escapeName(key)
    if (type && escaped)
      fields.set(key, { type, names: escaped === key || !/^[A-Za-z_]\w*$/.test(key) ? [escaped] : [escaped, key] })
  }
  const properties = schema.properties ?? {}
  for (const key of Object.keys(properties)) {
    const isStanding = isRoot || schema['x-kubernetes-embedded-resource']
    if (!(isStanding && ['apiVersion', 'kind', 'metadata'].includes(key)) && properties[key]) add(key, properties[key])
  }
  if (isRoot || schema['x-kubernetes-embedded-resource']) {
    add('apiVersion', { type: 'string' })
    add('kind', { type: 'string' })
    const { name: text = {}, generateName = {} } = objectMeta.properties ?? {}
    add('metadata', { type: 'object', properties: { name: text, generateName } })
  }
  return fields
}

const keywords = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)
const marks: Record<string, string> = { __: '__underscores__', '.': '__dot__', '-': '__dash__', '/': '__slash__' }

/** The name of a property in rules; undefined where it has none. */
function escapeName(property: string): string | undefined {
  if (keywords.has(property)) return `__${property}__`
  if (!/^[A-Za-z_][\w./-]*$/.test(property)) return undefined
  return property.replace(/__|[.\-/]/g, mark => marks[mark] ?? mark)
}
