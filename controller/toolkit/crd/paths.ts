/**
 * JSON paths into an object of a kind, such as `.status.conditions[?(@.type=="Ready")].status`: what stands there, by the kind's schema. Pure.
 *
 * Guarantee: a path that leads nowhere is refused, with the nearest name there is.
 */
import { shown, suggestion } from '../../../shared/nearest.ts'
import { refuse } from './refuse.ts'
import type { StructuralSchema } from './structural.ts'

type Part = { readonly name: string } | { readonly item: string }

/**
 * The schema of what a path leads to; without a type where anything may stand.
 * @param what whose path it is, as the message says it
 */
export function schemaAt(root: StructuralSchema, path: unknown, what: string): StructuralSchema {
  let schema = root
  let walked = ''
  for (const part of partsOf(path, what)) {
    schema = 'name' in part ? fieldOf(schema, part.name, walked, what) : itemOf(schema, part.item, walked, what)
    walked += 'name' in part ? `.${part.name}` : part.item
  }
  return schema
}

function partsOf(path: unknown, what: string): Part[] {
  const accepted = 'a JSON path begins with a dot, such as .spec.size or .status.conditions[?(@.type=="Ready")].status'
  if (typeof path !== 'string' || !path.startsWith('.')) refuse(what, `${shown(path)} is no path: ${accepted}`)
  const parts: Part[] = []
  for (let rest = path; rest !== ''; ) {
    const found = /^(?:\.([\w-]+)|\.?\['([^']+)'\]|(\[(?:\d+|\*|\?\(.+?\))\]))/.exec(rest)
    if (!found) refuse(what, `${shown(path)} is no path from ${shown(rest)} on: ${accepted}`)
    const [text, plain, quoted, item] = found
    parts.push(item === undefined ? { name: plain ?? quoted ?? '' } : { item })
    rest = rest.slice(text.length)
  }
  return parts
}

function fieldOf(schema: StructuralSchema, name: string, walked: string, what: string): StructuralSchema {
  const field = schema.properties?.[name] ?? schema.additionalProperties
  if (field) return field
  if (schema['x-kubernetes-preserve-unknown-fields']) return {}
  const place = walked === '' ? 'the object' : walked
  if (schema.type === 'array') refuse(what, `${place} is a list: write ${walked}[0].${name} or ${walked}[*].${name}`)
  refuse(what, `${place} has no field ${shown(name)}${suggestion(name, Object.keys(schema.properties ?? {}))}`)
}

function itemOf(schema: StructuralSchema, item: string, walked: string, what: string): StructuralSchema {
  if (schema.type !== 'array' && schema.type !== undefined) refuse(what, `${walked} is no list, so it has no ${item}`)
  const items = schema.items ?? {}
  for (const [, name = ''] of item.matchAll(/@\.([\w-]+)/g)) {
    if (items.properties) fieldOf(items, name, `${walked}[]`, what)
  }
  return items
}
