/**
 * Whether applying an object would change anything, told without asking the server. Pure.
 *
 * Guarantee: true only if every field wished is ours and has the wished value, and every field that is ours is wished: applying would change
 * nothing, but perhaps record that something empty is ours. What the server or others have set beside that does not matter.
 */
import type { FieldsV1, ManagedFields } from './kind.ts'

type Value = unknown
type Fields = Readonly<Record<string, Value>>

/**
 * `wished` as it would be applied by `manager`, `live` with at least that manager's entry in managedFields.
 *
 * @param isLastWish that this very wish was the last one applied is known otherwise. Then what is still ours has the value that the server made of it: whoever else changes
 * a field takes it from us.
 */
export function isApplied(wished: object, live: object, manager: string, isLastWish = false): boolean {
  const managed = (live as { metadata?: { managedFields?: readonly ManagedFields[] } }).metadata?.managedFields
  const entry = managed?.find(one => one.manager === manager && one.operation === 'Apply' && !one.subresource)
  // Applied in another version of the API, the server would at least write down that it is now this one.
  if (!entry?.fieldsV1 || entry.apiVersion !== (live as { apiVersion?: string }).apiVersion) return false
  const { apiVersion: _, kind: __, metadata, ...body } = wished as Fields
  const { name: ___, namespace: ____, ...rest } = (metadata ?? {}) as Fields
  // The server does not record ownership of a thing's own name and type.
  const owned = { ...body, ...(isEmpty(rest) ? {} : { metadata: rest }) }
  return mapMatches(owned, live as Fields, entry.fieldsV1, isLastWish)
}

function matches(wished: Value, live: Value, owned: FieldsV1, isLastWish: boolean): boolean {
  const paths = Object.keys(owned)
  // Owned as a whole: a scalar, or an atomic list or map. Something in it that is not wished may be a default of the server's or a
  // leftover of ours: only the server knows.
  if (paths.length === 0)
    return isLastWish
      ? live !== undefined || isNothing(wished)
      : same(wished, live) || (isNothing(wished) && live === undefined)
  if (Array.isArray(wished)) return Array.isArray(live) && listMatches(wished, live, owned, isLastWish)
  return isMap(wished) && isMap(live) && mapMatches(wished, live, owned, isLastWish)
}

function mapMatches(wished: Fields, live: Fields, owned: FieldsV1, isLastWish: boolean): boolean {
  let wanted = 0
  for (const [name, value] of Object.entries(wished)) {
    // Null and undefined are ways to say that a field is not given.
    if (value === null || value === undefined) continue
    const below = owned[`f:${name}`]
    // An empty list of items by key is not recorded: there is nothing in it to own.
    if (below === undefined && isNothing(value) && (live[name] === undefined || isNothing(live[name]))) continue
    if (below === undefined || !matches(value, live[name], below, isLastWish)) return false
    wanted++
  }
  return wanted === Object.keys(owned).filter(path => path.startsWith('f:')).length
}

function listMatches(wished: readonly Value[], live: readonly Value[], owned: FieldsV1, isLastWish: boolean): boolean {
  const paths = Object.keys(owned).filter(path => path !== '.')
  if (paths.length !== wished.length) return false
  /** For each item wished, by its place, where it is. */
  const places: number[] = []
  const isThere = paths.every(path => {
    // By its place in the list: only the server knows what has become of that.
    if (path.startsWith('i:')) return false
    const id: Value = JSON.parse(path.slice(2))
    const isValue = path.startsWith('v:')
    const place = isValue ? wished.findIndex(item => same(item, id)) : wishedPlace(wished, id as Fields, places)
    const there = live.findIndex(item => (isValue ? same(item, id) : hasKeys(item, id as Fields)))
    if (place < 0 || there < 0) return false
    places[place] = there
    return isValue || matches(wished[place], live[there], owned[path] as FieldsV1, isLastWish)
  })
  // The server puts items in the order in which they are wished.
  return isThere && wished.every((_, i) => (places[i] ?? -1) > (i === 0 ? -1 : (places[i - 1] as number)))
}

/** Keys have defaults (a port's protocol) that a wish may leave out: then it is whichever item no other has taken. */
function wishedPlace(wished: readonly Value[], keys: Fields, taken: readonly (number | undefined)[]): number {
  const exact = wished.findIndex(item => hasKeys(item, keys))
  if (exact >= 0) return exact
  return wished.findIndex((item, i) => taken[i] === undefined && isMap(item) && hasKeys({ ...keys, ...item }, keys))
}

function hasKeys(item: Value, keys: Fields): boolean {
  return isMap(item) && Object.entries(keys).every(([name, value]) => same(item[name], value))
}

/** Equal as JSON. */
export function same(a: Value, b: Value): boolean {
  if (a === b) return true
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => same(item, b[i]))
  if (!isMap(a) || !isMap(b)) return false
  const names = Object.keys(a).filter(name => a[name] !== undefined)
  return (
    names.length === Object.keys(b).filter(name => b[name] !== undefined).length &&
    names.every(name => same(a[name], b[name]))
  )
}

/**
 * What turns `from` into `to`, as a merge patch (RFC 7386); undefined where they are the same. Such a patch cannot say null: a field of a map
 * that is null is one that is not there.
 */
export function mergePatchOf(from: Value, to: Value): Value {
  if (!isMap(to)) return same(from, to) ? undefined : to
  if (!isMap(from)) return withoutNulls(to)
  // By entries, and only what is a map's own: a field may be called `constructor`.
  const gone = Object.keys(from).filter(name => isAbsent(own(to, name)) && !isAbsent(from[name]))
  const changes = Object.entries(to).flatMap(([name, value]): [string, Value][] => {
    const change = isAbsent(value) ? undefined : mergePatchOf(own(from, name), value)
    return change === undefined ? [] : [[name, change]]
  })
  const patch = Object.fromEntries([...gone.map((name): [string, Value] => [name, null]), ...changes])
  return isEmpty(patch) ? undefined : patch
}

function own(map: Fields, name: string): Value {
  return Object.hasOwn(map, name) ? map[name] : undefined
}

function withoutNulls(value: Value): Value {
  if (!isMap(value)) return value
  const there = Object.entries(value).filter(([, below]) => !isAbsent(below))
  return Object.fromEntries(there.map(([name, below]) => [name, withoutNulls(below)]))
}

function isAbsent(value: Value): boolean {
  return value === undefined || value === null
}

function isMap(value: Value): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An empty map or list, which the server drops as if it were not there. */
function isNothing(value: Value): boolean {
  return typeof value === 'object' && value !== null && isEmpty(value)
}

function isEmpty(map: object): boolean {
  for (const _ in map) return false
  return true
}
