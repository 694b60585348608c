/**
 * The objects of one resource, in the order of their keys, and what lately became of them.
 *
 * Guarantees: the history has every change after `compacted`, in order; any state since then can be seen again.
 */
import type { Obj } from '../types.ts'

export interface Change {
  readonly revision: number
  /** None: it was removed; `last` is what it was, with the revision of its removal. */
  readonly object: Obj | undefined
  readonly previous: Obj | undefined
  /** What a watcher sees of a removal. */
  readonly last: Obj | undefined
}

export interface Shelf {
  readonly objects: Map<string, Obj>
  /** Of all objects, sorted. */
  readonly keys: string[]
  readonly changes: Change[]
  /** Up to this revision nothing is known any more. */
  compacted: number
}

export const newShelf = (compacted: number): Shelf => ({ objects: new Map(), keys: [], changes: [], compacted })

/** `NAMESPACE/NAME`; without a namespace, the name. */
export const keyOf = (namespace: string | undefined, name: string) => (namespace ? `${namespace}/${name}` : name)

export const keyOfObject = ({ metadata: { namespace, name } }: Obj) => keyOf(namespace, name)

/** The first index whose key is not less than `key`. */
export function indexOf(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((keys[middle] as string) < key) low = middle + 1
    else high = middle
  }
  return low
}

export function put(shelf: Shelf, key: string, object: Obj): void {
  if (!shelf.objects.has(key)) {
    const last = shelf.keys.at(-1)
    if (last === undefined || last < key) shelf.keys.push(key)
    else shelf.keys.splice(indexOf(shelf.keys, key), 0, key)
  }
  shelf.objects.set(key, object)
}

export function take(shelf: Shelf, key: string): void {
  if (!shelf.objects.delete(key)) return
  shelf.keys.splice(indexOf(shelf.keys, key), 1)
}

/** Remembers a change, and forgets the oldest when there are more than `limit`: many at once, so that it costs little. */
export function remember(shelf: Shelf, change: Change, limit: number): void {
  shelf.changes.push(change)
  if (shelf.changes.length <= limit + (limit >> 1)) return
  const gone = shelf.changes.splice(0, shelf.changes.length - limit)
  shelf.compacted = Math.max(shelf.compacted, gone.at(-1)?.revision ?? 0)
}

/** The index of the first change after `revision`. */
export function changesAfter(shelf: Shelf, revision: number): number {
  let low = 0
  let high = shelf.changes.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((shelf.changes[middle] as Change).revision <= revision) low = middle + 1
    else high = middle
  }
  return low
}

/** What there was at a revision, where it differs from now: undefined for what was not there. */
export function undo(shelf: Shelf, revision: number): Map<string, Obj | undefined> {
  const then = new Map<string, Obj | undefined>()
  for (let i = shelf.changes.length - 1; i >= 0; i--) {
    const change = shelf.changes[i] as Change
    if (change.revision <= revision) break
    const subject = change.object ?? change.previous
    if (subject) then.set(keyOfObject(subject), change.previous)
  }
  return then
}
