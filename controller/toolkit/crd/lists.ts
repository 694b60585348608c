/**
 * Lists whose items have keys, or stand only once: that they can be what they are said to be. Pure.
 */
import { shown, suggestion } from '../../../shared/nearest.ts'
import { type FieldPath, refuse } from './refuse.ts'
import type { StructuralSchema } from './structural.ts'

const types = ['atomic', 'set', 'map']

export function checkListType(list: StructuralSchema, path: FieldPath): void {
  const type = list['x-kubernetes-list-type']
  const keys = list['x-kubernetes-list-map-keys']
  if (type !== undefined && !types.includes(type)) {
    refuse(path, `x-kubernetes-list-type is ${shown(type)}${suggestion(String(type), types)}`)
  }
  if (type !== 'map') {
    if (keys !== undefined) refuse(path, "x-kubernetes-list-map-keys is for lists with 'x-kubernetes-list-type': 'map'")
    return
  }
  const { type: itemType, properties = {}, required = [] } = list.items ?? {}
  if (itemType !== 'object') refuse(path, 'only a list of objects can be a map, as its keys are fields of the items')
  if (!Array.isArray(keys) || keys.length === 0) {
    refuse(
      path,
      "a list that is a map needs 'x-kubernetes-list-map-keys': the fields by which its items are told apart",
    )
  }
  for (const key of keys) {
    const field = properties[key]
    if (!field)
      refuse(path, `its key ${shown(key)} is no field of the items${suggestion(key, Object.keys(properties))}`)
    if (!required.includes(key) && field.default === undefined) {
      refuse(path, `its key ${shown(key)} may be absent from an item: make it required, or give it a default`)
    }
  }
}
