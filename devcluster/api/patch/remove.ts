/**
 * A value without some of its fields and items.
 */
import type { Json } from '../types.ts'
import { fieldStep } from './elements.ts'
import type { FieldSet } from './fieldset.ts'
import { isEmpty } from './fieldset.ts'
import { formOf, isMap, itemStep, type ListType, type MapType, type Type, treatedAs } from './typed.ts'

/** What is left; null where nothing is, or where a value that is owned as a whole was to lose a part. */
export function remove(type: Type, value: Json, fields: FieldSet): Json {
  switch (treatedAs(type, formOf(type, value))) {
    case 'map':
      return isMap(value) ? removeFields(type.map as MapType, value, fields) : null
    case 'list':
      return Array.isArray(value) ? removeItems(type.list as ListType, value, fields) : null
    case 'scalar':
      return value
  }
}

function removeFields(map: MapType, value: { [field: string]: Json }, fields: FieldSet): Json {
  if (map.atomic) return null
  const out: { [field: string]: Json } = {}
  let any = false
  for (const [name, inner] of Object.entries(value)) {
    const step = fieldStep(name)
    if (fields.members.has(step)) continue
    const below = fields.children.get(step)
    out[name] = below && !isEmpty(below) ? remove(map.field(name)?.type ?? map.element ?? {}, inner, below) : inner
    any = true
  }
  return any ? out : null
}

function removeItems(list: ListType, value: Json[], fields: FieldSet): Json {
  if (!list.associative) return null
  const out: Json[] = []
  for (const item of value) {
    const step = itemStep(list, item)
    if (fields.members.has(step)) continue
    const below = fields.children.get(step)
    out.push(below && !isEmpty(below) ? remove(list.element, item, below) : item)
  }
  return out.length > 0 ? out : null
}
