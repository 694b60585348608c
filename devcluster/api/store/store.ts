/**
 * All objects of the cluster, in memory: one revision that counts every change, and a bounded history for each resource.
 *
 * Guarantees: a read sees every write that was answered. A write takes the place of exactly what the writer saw, or is refused. A watch from a
 * revision gets each later change once and in order. With a file, what was written is there after the process was killed, under the same revision.
 */
import type { Obj } from '../types.ts'
import { openFile, type StoreFile } from './file.ts'
import {
  type Change,
  changesAfter,
  indexOf,
  keyOf,
  keyOfObject,
  newShelf,
  put,
  remember,
  type Shelf,
  take,
  undo,
} from './shelf.ts'

export interface StoreOptions {
  /** Changes that are remembered of each resource. Default 10,000. */
  readonly history?: number | undefined
  /** The SQLite file that all is kept in. Default: none. */
  readonly file?: string | undefined
}

export interface PageOptions {
  readonly namespace?: string | undefined
  /** What was there at this revision. Default: what is there now. */
  readonly at?: number | undefined
  /** Only what comes after this key. */
  readonly after?: string | undefined
  /** Default: no limit. */
  readonly limit?: number | undefined
  readonly matches?: ((object: Obj) => boolean) | undefined
}

export interface Page {
  readonly items: Obj[]
  readonly revision: number
  /** The key of the last item, where there are more. */
  readonly next: string | undefined
  /** How many follow; known where all of them match. */
  readonly remaining: number | undefined
}

/** Somebody else wrote in between. */
export class Stale extends Error {}

/** That far back nothing is known. */
export class Compacted extends Error {
  readonly oldest: number
  constructor(oldest: number) {
    super(`compacted up to ${oldest}`)
    this.oldest = oldest
  }
}

export type Listener = (change: Change) => void

export interface Store {
  readonly revision: number
  get(resource: string, namespace: string | undefined, name: string): Obj | undefined
  page(resource: string, options?: PageOptions): Page
  /** Puts an object in the place of `previous`, which is what `get` answered. Answers it as it is stored: with its revision. */
  write(resource: string, object: Obj, previous: Obj | undefined): Obj
  /** Answers what it was, with the revision of its removal. */
  remove(resource: string, previous: Obj): Obj
  /** Every change after `from`, those of the past at once. Throws Compacted. Answers how to end it. */
  watch(resource: string, namespace: string | undefined, from: number, listener: Listener): () => void
  /** Forgets the history up to a revision (default: all), as a server does from time to time. */
  compact(upTo?: number): void
  /** The history of a resource begins now: nothing is known of before. */
  begin(resource: string): void
  close(): void
}

interface Watchers {
  readonly all: Set<Listener>
  readonly byNamespace: Map<string, Set<Listener>>
}

export function createStore({ history = 10_000, file: path }: StoreOptions = {}): Store {
  const shelves = new Map<string, Shelf>()
  const watchers = new Map<string, Watchers>()
  const file: StoreFile | undefined = path === undefined ? undefined : openFile(path)
  let revision = file?.revision ?? 1
  const loaded = revision

  const shelfOf = (resource: string): Shelf => {
    let shelf = shelves.get(resource)
    if (!shelf) {
      shelf = newShelf(file ? loaded : 0)
      shelves.set(resource, shelf)
    }
    return shelf
  }
  for (const { resource, object } of file?.load() ?? []) put(shelfOf(resource), keyOfObject(object), object)

  function tell(resource: string, namespace: string | undefined, change: Change): void {
    const told = watchers.get(resource)
    if (!told) return
    for (const listener of told.all) listener(change)
    const near = namespace === undefined ? undefined : told.byNamespace.get(namespace)
    if (near) for (const listener of near) listener(change)
  }

  function commit(resource: string, shelf: Shelf, change: Change, namespace: string | undefined): void {
    remember(shelf, change, history)
    tell(resource, namespace, change)
  }

  return {
    get revision() {
      return revision
    },
    get: (resource, namespace, name) => shelves.get(resource)?.objects.get(keyOf(namespace, name)),

    page(resource, options = {}) {
      const shelf = shelfOf(resource)
      const { at } = options
      if (at !== undefined && at < shelf.compacted) throw new Compacted(shelf.compacted)
      return pageOf(shelf, at === undefined || at >= revision ? undefined : at, at ?? revision, options)
    },

    write(resource, object, previous) {
      const shelf = shelfOf(resource)
      const key = keyOfObject(object)
      if (shelf.objects.get(key) !== previous) throw new Stale(key)
      const next = revision + 1
      const stored = ordered(object, String(next))
      file?.put(resource, key, stored, next)
      revision = next
      put(shelf, key, stored)
      commit(resource, shelf, { revision, object: stored, previous, last: undefined }, stored.metadata.namespace)
      return stored
    },

    remove(resource, previous) {
      const shelf = shelfOf(resource)
      const key = keyOfObject(previous)
      if (shelf.objects.get(key) !== previous) throw new Stale(key)
      const next = revision + 1
      file?.remove(resource, key, next)
      revision = next
      take(shelf, key)
      const last = ordered(previous, String(revision))
      commit(resource, shelf, { revision, object: undefined, previous, last }, previous.metadata.namespace)
      return last
    },

    watch(resource, namespace, from, listener) {
      const shelf = shelfOf(resource)
      if (from < shelf.compacted) throw new Compacted(shelf.compacted)
      for (let i = changesAfter(shelf, from); i < shelf.changes.length; i++) {
        const change = shelf.changes[i] as Change
        const subject = change.object ?? change.previous
        if (namespace === undefined || subject?.metadata.namespace === namespace) listener(change)
      }
      let told = watchers.get(resource)
      if (!told) {
        told = { all: new Set(), byNamespace: new Map() }
        watchers.set(resource, told)
      }
      let listeners = told.all
      if (namespace !== undefined) {
        listeners = told.byNamespace.get(namespace) ?? new Set()
        told.byNamespace.set(namespace, listeners)
      }
      listeners.add(listener)
      const { byNamespace } = told
      return () => {
        listeners.delete(listener)
        if (namespace !== undefined && listeners.size === 0) byNamespace.delete(namespace)
      }
    },

    compact(upTo = revision) {
      for (const shelf of shelves.values()) forget(shelf, upTo)
    },

    begin: resource => forget(shelfOf(resource), revision),

    close: () => file?.close(),
  }
}

function forget(shelf: Shelf, upTo: number): void {
  shelf.changes.splice(0, changesAfter(shelf, upTo))
  shelf.compacted = Math.max(shelf.compacted, upTo)
}

/** The object with a revision, its kind first: its text then begins alike for all of a kind. */
function ordered(object: Obj, resourceVersion: string): Obj {
  const { kind, apiVersion, metadata, ...rest } = object
  return { kind, apiVersion, metadata: { ...metadata, resourceVersion }, ...rest }
}

function pageOf(shelf: Shelf, at: number | undefined, revision: number, options: PageOptions): Page {
  const { namespace, after, limit, matches } = options
  const then = at === undefined ? undefined : undo(shelf, at)
  const keys = then ? keysThen(shelf, then) : shelf.keys
  const prefix = namespace === undefined ? '' : `${namespace}/`
  // A key that is longer by the least character is the next after it.
  let i = indexOf(keys, after !== undefined && after >= prefix ? `${after}\0` : prefix)
  const items: Obj[] = []
  for (; i < keys.length; i++) {
    const key = keys[i] as string
    if (prefix !== '' && !key.startsWith(prefix)) break
    const object = then?.has(key) ? then.get(key) : shelf.objects.get(key)
    if (!object || (matches && !matches(object))) continue
    if (limit !== undefined && items.length === limit) {
      const last = items.at(-1)
      const end = prefix === '' ? keys.length : indexOf(keys, `${namespace}0`)
      return { items, revision, next: last && keyOfObject(last), remaining: matches ? undefined : end - i }
    }
    items.push(object)
  }
  return { items, revision, next: undefined, remaining: undefined }
}

function keysThen(shelf: Shelf, then: Map<string, Obj | undefined>): string[] {
  const keys = shelf.keys.filter(key => !then.has(key) || then.get(key) !== undefined)
  const back = [...then].filter(([key, object]) => object && !shelf.objects.has(key)).map(([key]) => key)
  return back.length === 0 ? keys : [...keys, ...back].sort((a, b) => (a < b ? -1 : 1))
}
