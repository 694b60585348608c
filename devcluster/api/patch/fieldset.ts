/**
 * A set of fields: a tree of steps, in which a step may be a member, have members below it, or both. Sets are never changed once somebody else has
 * them: every operation gives a new one that may share parts of the old.
 */
import type { Json } from '../types.ts'
import { canonicalStep, compareSteps } from './elements.ts'

export interface FieldSet {
  readonly members: ReadonlySet<string>
  readonly children: ReadonlyMap<string, FieldSet>
}

/** A set that is being made. */
export interface Draft extends FieldSet {
  readonly members: Set<string>
  readonly children: Map<string, Draft>
}

const noMembers: ReadonlySet<string> = new Set()
const noChildren: ReadonlyMap<string, FieldSet> = new Map()
export const emptySet: FieldSet = { members: noMembers, children: noChildren }

export const newDraft = (): Draft => ({ members: new Set(), children: new Map() })

/** Adds a path. The whole object, which is the empty path, is nobody's. */
export function insert(draft: Draft, path: readonly string[]): void {
  let at = draft
  const last = path.length - 1
  for (let i = 0; i < last; i++) {
    const step = path[i] as string
    let next = at.children.get(step)
    if (!next) {
      next = newDraft()
      at.children.set(step, next)
    }
    at = next
  }
  if (last >= 0) at.members.add(path[last] as string)
}

export function setOf(...paths: (readonly string[])[]): FieldSet {
  const draft = newDraft()
  for (const path of paths) insert(draft, path)
  return draft
}

export function isEmpty(set: FieldSet): boolean {
  if (set.members.size > 0) return false
  for (const child of set.children.values()) if (!isEmpty(child)) return false
  return true
}

export function has(set: FieldSet, path: readonly string[]): boolean {
  let at: FieldSet | undefined = set
  const last = path.length - 1
  for (let i = 0; i < last; i++) {
    at = at.children.get(path[i] as string)
    if (!at) return false
  }
  return last >= 0 && at.members.has(path[last] as string)
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || (b.members.size === 0 && b.children.size === 0)) return a
  if (a.members.size === 0 && a.children.size === 0) return b
  const members = new Set(a.members)
  for (const step of b.members) members.add(step)
  const children = new Map(a.children)
  for (const [step, child] of b.children) {
    const mine = children.get(step)
    children.set(step, mine ? union(mine, child) : child)
  }
  return { members, children }
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a
  const members = new Set<string>()
  for (const step of a.members) if (b.members.has(step)) members.add(step)
  const children = new Map<string, FieldSet>()
  for (const [step, child] of a.children) {
    const other = b.children.get(step)
    if (!other) continue
    const both = intersection(child, other)
    if (!isEmpty(both)) children.set(step, both)
  }
  return { members, children }
}

/** What is in `a` and not in `b`; a member of `b` takes nothing from what is below it. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (b.members.size === 0 && b.children.size === 0) return a
  const children = new Map<string, FieldSet>()
  for (const [step, child] of a.children) {
    const other = b.children.get(step)
    const rest = other ? difference(child, other) : child
    if (!other || !isEmpty(rest)) children.set(step, rest)
  }
  return { members: membersWithout(a, b), children }
}

/** What is in `a`, without the members of `b` and all below them. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  if (b.members.size === 0 && b.children.size === 0) return a
  const children = new Map<string, FieldSet>()
  for (const [step, child] of a.children) {
    if (b.members.has(step)) continue
    const other = b.children.get(step)
    const rest = other ? recursiveDifference(child, other) : child
    if (!other || !isEmpty(rest)) children.set(step, rest)
  }
  return { members: membersWithout(a, b), children }
}

function membersWithout(a: FieldSet, b: FieldSet): ReadonlySet<string> {
  if (b.members.size === 0) return a.members
  const members = new Set<string>()
  for (const step of a.members) if (!b.members.has(step)) members.add(step)
  return members
}

/** Whether all of `b` is in `a`. */
export function covers(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true
  for (const step of b.members) if (!a.members.has(step)) return false
  for (const [step, child] of b.children) {
    const mine = a.children.get(step)
    if (mine ? !covers(mine, child) : !isEmpty(child)) return false
  }
  return true
}

/** Every path of the set, in the order of FieldsV1: members before what is below. */
export function pathsOf(set: FieldSet): string[][] {
  const paths: string[][] = []
  const walk = (at: FieldSet, prefix: readonly string[]) => {
    for (const step of [...at.members].sort(compareSteps)) paths.push([...prefix, step])
    for (const step of [...at.children.keys()].sort(compareSteps)) {
      walk(at.children.get(step) as FieldSet, [...prefix, step])
    }
  }
  walk(set, [])
  return paths
}

// What is stored never changes, so a text is read once for as long as somebody has it.
const read = new WeakMap<object, FieldSet>()
const written = new WeakMap<FieldSet, Json>()

/** The set that a `fieldsV1` says. Throws where it cannot be read. */
export function fromFieldsV1(fields: Json | undefined): FieldSet {
  if (fields === undefined || fields === null) return emptySet
  if (typeof fields !== 'object' || Array.isArray(fields)) throw new Error('fieldsV1 is not an object')
  let set = read.get(fields)
  if (!set) {
    set = parse(fields).below ?? emptySet
    read.set(fields, set)
  }
  return set
}

function parse(fields: { [step: string]: Json }): { below: FieldSet | undefined; member: boolean } {
  const draft = newDraft()
  let member = false
  for (const [text, value] of Object.entries(fields)) {
    if (text === '.') {
      member = true
      continue
    }
    const step = canonicalStep(text)
    if (step === undefined) continue
    const inner = parse((value ?? {}) as { [step: string]: Json })
    if (inner.member) draft.members.add(step)
    if (inner.below) draft.children.set(step, inner.below as Draft)
  }
  if (draft.members.size === 0 && draft.children.size === 0) return { below: undefined, member: true }
  return { below: draft, member }
}

/** The set as a `fieldsV1`, its steps in order. */
export function toFieldsV1(set: FieldSet): Json {
  let fields = written.get(set)
  if (!fields) {
    fields = write(set, false)
    written.set(set, fields)
    read.set(fields as object, set)
  }
  return fields
}

const leaf: Json = Object.freeze({})

function write(set: FieldSet, self: boolean): Json {
  const fields: { [step: string]: Json } = {}
  if (self && (set.members.size > 0 || set.children.size > 0)) fields['.'] = leaf
  const steps = [...set.members]
  for (const step of set.children.keys()) if (!set.members.has(step)) steps.push(step)
  for (const step of steps.sort(compareSteps)) {
    const child = set.children.get(step)
    fields[step] = child ? write(child, set.members.has(step)) : leaf
  }
  return fields
}
