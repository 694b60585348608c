/**
 * Whose a field is after a write: the rules of updates and applies, on typed values. Nothing here knows of objects' metadata or of time.
 */
import type { Json } from '../types.ts'
import { combine } from './combine.ts'
import { type Comparison, compare, deepEqual, without } from './compare.ts'
import { fieldsOf, fitted, withNamedFields } from './fields-of.ts'
import {
  covers,
  difference,
  emptySet,
  type FieldSet,
  intersection,
  isEmpty,
  pathsOf,
  recursiveDifference,
  union,
} from './fieldset.ts'
import type { Managed, Managers } from './managers.ts'
import { remove } from './remove.ts'
import type { Type } from './typed.ts'

/** A value in one version of its kind. */
export interface Typed {
  readonly value: Json
  readonly apiVersion: string
  readonly type: Type
}

export interface Rules {
  /** The value in another version; undefined where the kind has no such version. */
  convert(typed: Typed, apiVersion: string): Typed | undefined
  /** Fields that this write does not touch, whatever it says of them. */
  reset(apiVersion: string): FieldSet
}

export interface Conflict {
  readonly manager: string
  readonly path: readonly string[]
}

export class Conflicts extends Error {
  readonly list: readonly Conflict[]
  constructor(list: readonly Conflict[]) {
    super(`${list.length} conflicts`)
    this.list = list
  }
}

/** The managers after `self` turned `live` into `next`, by any other means than apply. */
export function afterUpdate(rules: Rules, live: Typed, next: Typed, managers: Managers, self: string): Managers {
  const { apiVersion } = next
  const { managers: out, comparison } = taken(rules, live, next, fittedManagers(rules, live, managers), self, true)
  const { added, modified, removed } = comparison
  const own = difference(out.get(self)?.set ?? emptySet, removed)
  const set = recursiveDifference(union(union(own, modified), added), rules.reset(apiVersion))
  if (isEmpty(set)) out.delete(self)
  else out.set(self, { set, apiVersion, applied: false })
  return out
}

/** The value and its managers after `self` applied a configuration. Throws Conflicts. */
export function afterApply(
  rules: Rules,
  live: Typed,
  config: Typed,
  managers: Managers,
  self: string,
  force: boolean,
): { value: Json | undefined; managers: Managers } {
  const { apiVersion, type } = config
  const known = fittedManagers(rules, live, managers)
  const last = known.get(self)
  const merged: Typed = { ...config, value: combine(type, live.value, config.value) as Json }
  const set = recursiveDifference(fieldsOf(type, config.value), rules.reset(apiVersion))
  known.set(self, { set, apiVersion, applied: true, time: last?.time })
  const pruned = prune(rules, merged, known, self, last)
  const { managers: out } = taken(rules, live, pruned, known, self, force)
  return { value: deepEqual(live.value, pruned.value) ? undefined : pruned.value, managers: out }
}

/** Entries of versions that there are no more are forgotten. */
function fittedManagers(rules: Rules, live: Typed, managers: Managers): Managers {
  const out: Managers = new Map()
  for (const [id, managed] of managers) {
    const typed = rules.convert(live, managed.apiVersion)
    if (typed) out.set(id, { ...managed, set: fitted(managed.set, typed.type) })
  }
  return out
}

/** Takes from others what this write changed or removed. */
function taken(
  rules: Rules,
  live: Typed,
  next: Typed,
  managers: Managers,
  self: string,
  force: boolean,
): { managers: Managers; comparison: Comparison } {
  const { apiVersion } = next
  const comparison = without(compare(next.type, live.value, next.value), rules.reset(apiVersion))
  const byVersion = new Map<string, Comparison>([[apiVersion, comparison]])
  const out: Managers = new Map(managers)
  const conflicts: [string, FieldSet][] = []
  const losses: [string, FieldSet][] = []
  for (const [id, managed] of managers) {
    if (id === self) continue
    let theirs = byVersion.get(managed.apiVersion)
    if (!theirs) {
      const before = rules.convert(live, managed.apiVersion)
      const after = rules.convert(next, managed.apiVersion)
      if (!before || !after) {
        out.delete(id)
        continue
      }
      theirs = without(compare(before.type, before.value, after.value), rules.reset(managed.apiVersion))
      byVersion.set(managed.apiVersion, theirs)
    }
    const conflict = intersection(managed.set, union(theirs.modified, theirs.added))
    if (!isEmpty(conflict)) conflicts.push([id, conflict])
    if (!isEmpty(theirs.removed)) losses.push([id, theirs.removed])
  }
  if (!force && conflicts.length > 0) {
    conflicts.sort(([a], [b]) => (a < b ? -1 : 1))
    throw new Conflicts(conflicts.flatMap(([manager, set]) => pathsOf(set).map(path => ({ manager, path }))))
  }
  for (const [id, lost] of [...conflicts, ...losses]) {
    const managed = out.get(id)
    if (managed) out.set(id, { ...managed, set: difference(managed.set, lost) })
  }
  for (const [id, { set }] of out) if (isEmpty(set)) out.delete(id)
  return { managers: out, comparison }
}

/** Without what `self` applied last time and now does not, unless somebody else has it. */
function prune(rules: Rules, merged: Typed, managers: Managers, self: string, last: Managed | undefined): Typed {
  if (!last || isEmpty(last.set)) return merged
  const now = managers.get(self) as Managed
  // What is applied again is kept for that reason alone.
  if (last.apiVersion === now.apiVersion && covers(now.set, last.set)) return merged
  const before = rules.convert(merged, last.apiVersion)
  if (!before) return merged
  const lost = withNamedFields(last.set, before.type)
  let pruned: Typed = { ...before, value: remove(before.type, before.value, lost) }
  pruned = addBackOwned(rules, before, pruned, managers)
  pruned = addBackDangling(rules, before, pruned, last)
  return rules.convert(pruned, now.apiVersion) ?? pruned
}

function addBackOwned(rules: Rules, merged: Typed, pruned: Typed, managers: Managers): Typed {
  const byVersion = new Map<string, FieldSet>([[pruned.apiVersion, emptySet]])
  for (const { apiVersion, set } of managers.values()) {
    byVersion.set(apiVersion, union(byVersion.get(apiVersion) ?? emptySet, set))
  }
  let all = merged
  let out = pruned
  for (const [apiVersion, owned] of byVersion) {
    const whole = rules.convert(all, apiVersion)
    const part = rules.convert(out, apiVersion)
    if (!whole || !part) continue
    const { type } = whole
    const kept = union(withNamedFields(fieldsOf(type, part.value), type), withNamedFields(owned, type))
    const gone = difference(withNamedFields(fieldsOf(type, whole.value), type), kept)
    all = whole
    out = { ...whole, value: remove(type, whole.value, gone) }
  }
  return out
}

/** Only what `self` had applied may go: what nobody owns stays. */
function addBackDangling(rules: Rules, merged: Typed, pruned: Typed, last: Managed): Typed {
  const part = rules.convert(pruned, last.apiVersion)
  if (!part) return merged
  const { type } = merged
  const left = withNamedFields(fieldsOf(type, part.value), type)
  const all = withNamedFields(fieldsOf(type, merged.value), type)
  const gone = intersection(difference(all, left), withNamedFields(last.set, type))
  return { ...merged, value: remove(type, merged.value, gone) }
}
