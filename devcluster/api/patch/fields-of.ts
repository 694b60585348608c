/**
 * The fields that a value has, and what belongs to a set of fields besides.
 */
import type { Json } from '../types.ts'
import { fieldStep } from './elements.ts'
import { type Draft, type FieldSet, insert, newDraft, recursiveDifference, union } from './fieldset.ts'
import { formOf, isMap, itemStep, type ListType, type MapType, type Type, treatedAs } from './typed.ts'

/** Every leaf and every item of the value. */
export function fieldsOf(type: Type, value: Json): FieldSet {
  const draft = newDraft()
  walk(type, value, [], draft)
  return draft
}

function walk(type: Type, value: Json, path: readonly string[], out: Draft): void {
  switch (treatedAs(type, formOf(type, value))) {
    case 'scalar':
      insert(out, path)
      break
    case 'list': {
      const list = type.list as ListType
      if (!list.associative) insert(out, path)
      else if (Array.isArray(value)) walkItems(list, value, path, out)
      break
    }
    case 'map': {
      const map = type.map as MapType
      if (map.atomic) insert(out, path)
      else if (isMap(value)) walkFields(map, value, path, out)
    }
  }
}

function walkFields(map: MapType, value: { [field: string]: Json }, path: readonly string[], out: Draft): void {
  for (const name in value) {
    const inner = value[name] as Json
    const field = map.field(name)
    const at = [...path, fieldStep(name)]
    walk(field?.type ?? map.element ?? {}, inner, at, out)
    if (!field || inner === null || (isMap(inner) && Object.keys(inner).length === 0)) insert(out, at)
  }
}

function walkItems(list: ListType, items: readonly Json[], path: readonly string[], out: Draft): void {
  const steps = items.map(item => itemStep(list, item))
  const repeated = new Set(steps.filter((step, i) => steps.indexOf(step) !== i))
  for (const [i, step] of steps.entries()) {
    const at = [...path, step]
    // Items that cannot be told apart are owned together, whatever is in them.
    if (!repeated.has(step)) walk(list.element, items[i] as Json, at, out)
    insert(out, at)
  }
}

/** The set with the named fields on the way to its members, which are not written down. */
export function withNamedFields(set: FieldSet, type: Type | undefined): FieldSet {
  if (set.children.size === 0) return set
  const members = new Set(set.members)
  const children = new Map<string, FieldSet>()
  for (const [step, child] of set.children) {
    const kind = step[0]
    let below: Type | undefined
    if (kind === 'f' && type?.map) {
      const field = type.map.field(step.slice(2))
      if (field) members.add(step)
      below = field?.type ?? type.map.element
    } else if (kind === 'k' && type?.list) below = type.list.element
    children.set(step, withNamedFields(child, below))
  }
  return { members, children }
}

/** The set as it must be after its kind's schema came to own as a whole what was owned in parts. */
export function fitted(set: FieldSet, type: Type): FieldSet {
  const known = fits.get(set)
  if (known?.type === type) return known.fit
  const fit = fitTo(set, type)
  fits.set(set, { type, fit })
  return fit
}

const fits = new WeakMap<FieldSet, { type: Type; fit: FieldSet }>()

function fitTo(set: FieldSet, type: Type): FieldSet {
  const whole: string[][] = []
  findWhole(set, type, false, [], whole)
  if (whole.length === 0) return set
  const roots = newDraft()
  for (const path of whole) insert(roots, path)
  return union(recursiveDifference(set, roots), roots)
}

function findWhole(
  set: FieldSet | undefined,
  type: Type,
  isLeaf: boolean,
  path: readonly string[],
  out: string[][],
): void {
  if (type.map) {
    if (type.map.deduced) return
    if (!isLeaf && type.map.atomic) {
      if (set && (set.members.size > 0 || set.children.size > 0)) out.push([...path])
      return
    }
  } else if (type.scalar || !type.list) return
  else if (!isLeaf && !type.list.associative) {
    out.push([...path])
    return
  }
  if (!set) return
  for (const step of new Set([...set.children.keys(), ...set.members])) {
    const child = set.children.get(step)
    const below = type.map
      ? ((step[0] === 'f' ? type.map.field(step.slice(2))?.type : undefined) ?? type.map.element)
      : type.list?.element
    if (below) findWhole(child, below, set.members.has(step) && !child, [...path, step], out)
  }
}
