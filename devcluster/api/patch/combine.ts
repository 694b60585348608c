/**
 * What is there and what is applied in one value: the latter wins where both say something, and nothing is removed.
 */
import type { Json } from '../types.ts'
import { formOf, isMap, itemStep, type ListType, type MapType, type Type, treatedAs } from './typed.ts'

export function combine(type: Type, live: Json | undefined, applied: Json | undefined): Json | undefined {
  if (applied === undefined || live === applied) return live
  if (live === undefined) return applied
  switch (treatedAs(type, formOf(type, applied))) {
    case 'map':
      return combineMaps(type.map as MapType, live, applied)
    case 'list':
      return combineLists(type.list as ListType, live, applied)
    case 'scalar':
      return applied
  }
}

function combineMaps(map: MapType, live: Json, applied: Json): Json {
  const left = isMap(live) ? live : {}
  const right = isMap(applied) ? applied : {}
  const names = Object.keys(right)
  if (map.atomic || (names.length === 0 && Object.keys(left).length === 0)) return applied
  let out: { [field: string]: Json } = left
  for (const name of names) {
    const before = Object.hasOwn(left, name) ? left[name] : undefined
    const after = combine(map.field(name)?.type ?? map.element ?? {}, before, right[name]) as Json
    if (after === before && before !== undefined) continue
    if (out === left) out = { ...left }
    out[name] = after
  }
  return out
}

function combineLists(list: ListType, live: Json, applied: Json): Json {
  const left = Array.isArray(live) ? live : []
  const right = Array.isArray(applied) ? applied : []
  if (!list.associative || (left.length === 0 && right.length === 0)) return applied
  return combineItems(list, left, right)
}

/**
 * Items that both have stand in the order of what is applied; an item that only one has stays after the one it followed.
 */
function combineItems(list: ListType, left: readonly Json[], right: readonly Json[]): Json[] {
  const rightSteps = right.map(item => itemStep(list, item))
  const leftSteps = left.map(item => itemStep(list, item))
  const ofRight = new Map(rightSteps.map((step, i) => [step, right[i] as Json]))
  const ofLeft = new Map<string, Json>()
  for (const [i, step] of leftSteps.entries()) {
    // Of items that cannot be told apart none is merged with.
    ofLeft.set(step, ofLeft.has(step) ? null : (left[i] as Json))
  }
  const shared = rightSteps.filter(step => ofLeft.has(step))
  let next = shared.shift()
  const out: Json[] = []
  const done = new Set<string>()
  const take = (step: string) => {
    done.add(step)
    out.push(combine(list.element, ofLeft.get(step), ofRight.get(step)) as Json)
  }
  let l = 0
  let r = 0
  while (l < leftSteps.length || r < rightSteps.length) {
    const mine = leftSteps[l]
    const theirs = rightSteps[r]
    if (mine !== undefined && theirs !== undefined) {
      if (mine === theirs) {
        take(mine)
        l++
        r++
        next = shared.shift()
        continue
      }
      if (ofRight.has(mine) && next !== undefined && next !== mine) {
        l++
        continue
      }
    }
    if (mine !== undefined) {
      if (!ofRight.has(mine)) {
        out.push(left[l] as Json)
        l++
        continue
      }
      if (done.has(mine)) l++
    }
    if (theirs !== undefined) {
      take(theirs)
      r++
      if (next === theirs) next = shared.shift()
    }
  }
  return out
}
