/**
 * The lists of a strategic merge patch: how items are merged, which order they have after it, and what directives among them do.
 */
import { ApiError, badRequest } from '../problems.ts'
import type { Json } from '../types.ts'
import { goText, goType } from './go-text.ts'
import { isMap } from './typed.ts'

type Fields = { [field: string]: Json }

export interface Merging {
  /** The field that items are known by; empty for a list of scalars. */
  readonly key: string
  merge(before: Fields, after: Fields): Fields
}

const unexpected = (message: string) => new ApiError(500, '', message)

/** What both lists have, merged by the key. */
export function mergedItems(live: Json[], patch: Json[], { key, merge }: Merging): Json[] {
  if (live.length === 0 && patch.length === 0) return live
  if (!ofMaps(live, patch)) {
    return ordered(withoutRepeats([...live, ...patch]), patch, live, '')
  }
  if (key === '') throw unexpected('cannot merge lists without merge key for struct')
  const { base, added } = directed(live, patch, key)
  const items = [...base]
  for (const item of added) {
    if (!Object.hasOwn(item, key)) throw noKey(item, key)
    const at = items.findIndex(other => isMap(other) && other[key] === item[key])
    if (at >= 0) items[at] = merge(items[at] as Fields, item)
    else items.push(item)
  }
  return ordered(items, added, base, key)
}

/** Carries out $patch of items: what is there without deleted ones, or nothing of it, and the items that are no directives. */
function directed(live: Json[], patch: Json[], key: string): { base: Json[]; added: Fields[] } {
  let base = live
  let replaces = false
  const added: Fields[] = []
  for (const item of patch as Fields[]) {
    if (!Object.hasOwn(item, '$patch')) {
      added.push(item)
      continue
    }
    switch (item['$patch']) {
      case 'delete':
        if (!Object.hasOwn(item, key)) throw noKey(item, key)
        base = base.filter(other => (other as Fields)[key] !== item[key])
        break
      case 'replace':
        replaces = true
        break
      case 'merge':
        throw unexpected('merging lists cannot yet be specified in the patch')
      default:
        throw unexpected(`unknown patch type: ${goText(item['$patch'])} in map: ${goText(item)}`)
    }
  }
  return replaces ? { base: added, added: [] } : { base, added }
}

const noKey = (item: Fields, key: string) =>
  unexpected(`map: ${goText(item)} does not contain declared merge key: ${key}`)

/** Whether the items are maps. Items of a list are all of one kind, and no lists. */
export function ofMaps(...lists: Json[][]): boolean {
  let kind: string | undefined
  for (const item of lists.flat()) {
    const own = goType(item)
    if (kind === undefined && Array.isArray(item)) throw listOfLists()
    if (kind !== undefined && kind !== own) {
      throw unexpected(`list element types are not identical: ${goText(lists)}`)
    }
    kind = own
  }
  if (kind === undefined) throw unexpected('no elements in any of the given slices')
  return kind === 'map[string]interface {}'
}

const listOfLists = () =>
  new ApiError(422, 'Invalid', 'the server rejected our request due to an error in our request', {})

/** The server's way: the place of a repeated item is taken by the last. */
function withoutRepeats(items: Json[]): Json[] {
  const out = [...items]
  for (let i = 0; i < out.length - 1; i++) {
    for (let j = i + 1; j < out.length; j++) {
      if (out[i] !== out[j]) continue
      out[j] = out.at(-1) as Json
      out.pop()
      j--
    }
  }
  return out
}

export const deletedFrom = (live: Json[], deleted: Json[]): Json[] => live.filter(item => !deleted.includes(item))

/**
 * The items that `order` names in that order, and among them the others, each before the first that came after it in `live`.
 */
export function ordered(items: Json[], order: Json[], live: Json[], key: string): Json[] {
  const nameOf = (item: Json): Json | undefined => (key === '' ? item : isMap(item) ? item[key] : undefined)
  const named = order.map(nameOf)
  const lived = live.map(nameOf)
  const placed = (list: Json[], names: (Json | undefined)[]) =>
    list
      .map((item, i) => ({ item, i, at: names.indexOf(nameOf(item)) }))
      .sort((a, b) =>
        a.at < 0 || b.at < 0 ? Number(a.at < 0) - Number(b.at < 0) || a.i - b.i : a.at - b.at || a.i - b.i,
      )
      .map(({ item }) => item)
  const mine = placed(
    items.filter(item => named.includes(nameOf(item))),
    named,
  )
  const others = placed(
    items.filter(item => !named.includes(nameOf(item))),
    lived,
  )
  const out: Json[] = []
  let next = 0
  for (const item of others) {
    const at = lived.indexOf(nameOf(item))
    while (next < mine.length) {
      const other = lived.indexOf(nameOf(mine[next] as Json))
      if (at >= 0 && other >= 0 && at < other) break
      out.push(mine[next] as Json)
      next++
    }
    out.push(item)
  }
  return [...out, ...mine.slice(next)]
}

/** Refuses a list whose items are not in the order that goes with it. */
export function sameOrder(patch: Json[], order: Json[], key: string): void {
  if (order.length === 0 || patch.length === 0) return
  const kept = key === '' ? patch : patch.filter(item => !isMap(item) || item['$patch'] !== 'delete')
  let at = 0
  let i = 0
  while (at < kept.length && i < order.length) {
    const item = kept[at] as Json
    if (isMap(item) && Object.hasOwn(item, '$patch')) {
      at++
      continue
    }
    if (nameIn(item, key) === nameIn(order[i] as Json, key)) at++
    i++
  }
  if (at < kept.length && i >= order.length) {
    throw unexpected(
      `The order in patch list:\n${goText(patch)}\n doesn't match $setElementOrder list:\n${goText(order)}\n`,
    )
  }
}

function nameIn(item: Json, key: string): Json | undefined {
  if (key === '') return item
  if (!isMap(item)) throw badRequest('invalid patch format of setElementOrder list')
  if (!Object.hasOwn(item, key)) throw noKey(item, key)
  return item[key]
}

/** The value without directives; undefined where it is one. */
export function removeDirectives(value: Json): Json | undefined {
  if (Array.isArray(value)) return value.map(removeDirectives).filter(item => item !== undefined)
  if (!isMap(value)) return value
  if (Object.hasOwn(value, '$patch')) return undefined
  const out: Fields = {}
  for (const [name, inner] of Object.entries(value)) {
    const kept = removeDirectives(inner)
    if (kept !== undefined) out[name] = kept
  }
  return out
}
