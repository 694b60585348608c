/**
 * What differs between two values of a type: the fields that were added, modified and removed.
 */
import type { Json } from '../types.ts'
import { fieldStep } from './elements.ts'
import { type Draft, type FieldSet, insert, newDraft, recursiveDifference } from './fieldset.ts'
import { type Form, formOf, isMap, itemStep, type ListType, type MapType, type Type, treatedAs } from './typed.ts'

export interface Comparison {
  readonly added: FieldSet
  readonly modified: FieldSet
  readonly removed: FieldSet
}

interface Drafts {
  readonly added: Draft
  readonly modified: Draft
  readonly removed: Draft
}

export function compare(type: Type, left: Json, right: Json): Comparison {
  const drafts = { added: newDraft(), modified: newDraft(), removed: newDraft() }
  visit(type, left, right, [], drafts)
  return drafts
}

/** The comparison without some fields and all below them. */
export const without = ({ added, modified, removed }: Comparison, fields: FieldSet): Comparison => ({
  added: recursiveDifference(added, fields),
  modified: recursiveDifference(modified, fields),
  removed: recursiveDifference(removed, fields),
})

export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, i) => deepEqual(item, b[i]))
  }
  const left = a as Record<string, unknown>
  const right = b as Record<string, unknown>
  const names = Object.keys(left)
  if (names.length !== Object.keys(right).length) return false
  return names.every(name => Object.hasOwn(right, name) && deepEqual(left[name], right[name]))
}

/** Either side may be absent, not both. */
function visit(
  type: Type,
  left: Json | undefined,
  right: Json | undefined,
  path: readonly string[],
  out: Drafts,
): void {
  if (left === right) return
  const was = formOf(type, left)
  const is = formOf(type, right)
  let leaf: boolean
  if (right === undefined) leaf = visitAs(treatedAs(type, was), type, left, right, path, out)
  else {
    if (left !== undefined && was !== is) visitAs(treatedAs(type, was), type, left, right, path, out)
    leaf = visitAs(treatedAs(type, is), type, left, right, path, out)
  }
  if (leaf) return
  if (left === undefined) insert(out.added, path)
  else if (right === undefined) insert(out.removed, path)
}

/** Whether the value was compared as a whole. */
function visitAs(
  form: Form,
  type: Type,
  left: Json | undefined,
  right: Json | undefined,
  path: readonly string[],
  out: Drafts,
): boolean {
  if (form === 'map') {
    const map = type.map as MapType
    const a = isMap(left) ? left : undefined
    const b = isMap(right) ? right : undefined
    if (map.atomic || (isBare(a) && isBare(b))) return wholly(left, right, path, out)
    visitFields(map, a, b, path, out)
    return false
  }
  if (form === 'list') {
    const list = type.list as ListType
    const a = Array.isArray(left) ? left : []
    const b = Array.isArray(right) ? right : []
    if (!list.associative || (a.length === 0 && b.length === 0)) return wholly(left, right, path, out)
    visitItems(list, a, b, path, out)
    return false
  }
  return wholly(left, right, path, out)
}

const isBare = (map: object | undefined) => {
  for (const _ in map) return false
  return true
}

function wholly(left: Json | undefined, right: Json | undefined, path: readonly string[], out: Drafts): true {
  if (left === undefined) insert(out.added, path)
  else if (right === undefined) insert(out.removed, path)
  else if (!deepEqual(left, right)) insert(out.modified, path)
  return true
}

type Fields = { [field: string]: Json } | undefined

function visitFields(map: MapType, left: Fields, right: Fields, path: readonly string[], out: Drafts): void {
  for (const name in left) {
    const before = left[name]
    const after = right && Object.hasOwn(right, name) ? right[name] : undefined
    if (before === after) continue
    visit(map.field(name)?.type ?? map.element ?? {}, before, after, [...path, fieldStep(name)], out)
  }
  for (const name in right) {
    if (left && Object.hasOwn(left, name)) continue
    visit(map.field(name)?.type ?? map.element ?? {}, undefined, right[name], [...path, fieldStep(name)], out)
  }
}

function byStep(list: ListType, items: readonly Json[]): Map<string, Json[]> {
  const found = new Map<string, Json[]>()
  for (const item of items) {
    const step = itemStep(list, item)
    const same = found.get(step)
    if (same) same.push(item)
    else found.set(step, [item])
  }
  return found
}

function visitItems(
  list: ListType,
  left: readonly Json[],
  right: readonly Json[],
  path: readonly string[],
  out: Drafts,
) {
  const before = byStep(list, left)
  const after = byStep(list, right)
  for (const step of new Set([...before.keys(), ...after.keys()])) {
    const olds = before.get(step) ?? []
    const news = after.get(step) ?? []
    const at = [...path, step]
    if (olds.length <= 1 && news.length <= 1) visit(list.element, olds[0], news[0], at, out)
    else if (olds.length >= 2 && news.length >= 2) {
      // Items that cannot be told apart are one value together.
      if (!deepEqual(olds, news)) insert(out.modified, at)
    } else if (olds.length >= 2) {
      if (news.length > 0) visit(list.element, undefined, news[0], at, out)
      insert(out.removed, at)
    } else {
      if (olds.length > 0) visit(list.element, olds[0], undefined, at, out)
      insert(out.added, at)
    }
  }
}
