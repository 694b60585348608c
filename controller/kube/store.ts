/**
 * The copy itself: objects by key, with indices.
 *
 * Guarantees
 *   - An object is never replaced by an older version of itself, nor by the echo of a deleted one, whatever order news arrive in:
 *     what we wrote is there at once and stays (read your writes).
 *   - What is handed out is frozen: nobody can change the copy by mistake.
 *   - Listeners hear of every change exactly once, and one that throws disturbs nobody.
 */
import { keyOf, type Live, type Snapshot } from './kind.ts'
import { compareVersions } from './versions.ts'

export type Change<T extends object> = {
  readonly key: string
  readonly object: Snapshot<T>
  /** It was there when the copy was made, or made anew: no news. */
  readonly initial: boolean
  /** We wrote it. */
  readonly own: boolean
} & (
  | { readonly type: 'added'; readonly old?: undefined }
  | { readonly type: 'changed'; readonly old: Snapshot<T> }
  | { readonly type: 'removed'; readonly old?: undefined }
)

export type Listener<T extends object> = (change: Change<T>) => void

/** The values under which an object is found. */
export type Indexer<T extends object> = (object: Live<T>) => readonly string[]

export interface StoreOptions<T extends object> {
  readonly indices?: Readonly<Record<string, Indexer<T>>> | undefined
  /** Called on each object before it is kept; may change it. */
  readonly transform?: ((object: Live<T>) => void) | undefined
  /** A listener threw. */
  readonly onError?: ((error: unknown) => void) | undefined
}

/** One pass over all that exists, in one namespace or in all. */
export interface Round<T extends object> {
  put(object: Live<T>): void
  /** What was not put in this round, and is not newer than `version`, does not exist. */
  prune(version: string): void
}

export class Store<T extends object> {
  readonly #objects = new Map<string, Live<T>>()
  readonly #indices = new Map<string, { of: Indexer<T>; keys: Map<string, string | Set<string>> }>()
  /** Uids of objects that we deleted and whose deletion has not come back yet, by key. */
  readonly #erased = new Map<string, string>()
  readonly #listeners = new Set<Listener<T>>()
  readonly #options: StoreOptions<T>

  constructor(options: StoreOptions<T> = {}) {
    this.#options = options
    for (const [name, of] of Object.entries(options.indices ?? {})) this.#indices.set(name, { of, keys: new Map() })
  }

  get size(): number {
    return this.#objects.size
  }

  get(key: string): Snapshot<T> | undefined {
    const object = this.#objects.get(key)
    return object && frozen(object)
  }

  *values(namespace?: string): Generator<Snapshot<T>, void, undefined> {
    for (const object of this.#objects.values()) {
      if (namespace === undefined || object.metadata.namespace === namespace) yield frozen(object)
    }
  }

  /** The objects whose index has that value. */
  *by(index: string, value: string): Generator<Snapshot<T>, void, undefined> {
    const found = this.#index(index).keys.get(value)
    if (found === undefined) return
    for (const key of typeof found === 'string' ? [found] : found) yield frozen(this.#objects.get(key) as Live<T>)
  }

  /** Adds an index, over what is there already too. */
  addIndex(name: string, of: Indexer<T>): void {
    if (this.#indices.has(name)) return
    const index = { of, keys: new Map<string, string | Set<string>>() }
    this.#indices.set(name, index)
    for (const [key, object] of this.#objects) for (const value of of(object)) enlist(index.keys, value, key)
  }

  hasIndex(name: string): boolean {
    return this.#indices.has(name)
  }

  /** From now on; with what is there already as initial. Returns how to stop. */
  subscribe(listener: Listener<T>): () => void {
    this.#listeners.add(listener)
    for (const [key, object] of this.#objects) {
      this.#call(listener, { type: 'added', key, object: frozen(object), initial: true, own: false })
    }
    return () => this.#listeners.delete(listener)
  }

  /** News from a watch. */
  put(object: Live<T>): void {
    this.#put(keyOf(object.metadata), object, { initial: false, own: false, anyVersion: false })
  }

  /** News from a watch: it is gone. */
  remove(object: Live<T>): void {
    const key = keyOf(object.metadata)
    if (this.#erased.get(key) === object.metadata.uid) this.#erased.delete(key)
    const known = this.#objects.get(key)
    if (!known || compareVersions(known.metadata.resourceVersion, object.metadata.resourceVersion) > 0) return
    this.#options.transform?.(object)
    this.#drop(key, known, object, false)
  }

  /** Our own write was answered with this. */
  wrote(object: Live<T>): void {
    this.#put(keyOf(object.metadata), object, { initial: false, own: true, anyVersion: false })
  }

  /** Our own deletion was answered with "gone". */
  erased(key: string, uid: string | undefined): void {
    const known = this.#objects.get(key)
    if (!known || (uid !== undefined && known.metadata.uid !== uid)) return
    this.#erased.set(key, known.metadata.uid)
    this.#drop(key, known, known, true)
  }

  /** Begins a round. `rolledBack`: the server's versions went back, so what it says now is right however old it looks. */
  round(namespace: string | undefined, rolledBack: boolean): Round<T> {
    const unseen = new Set<string>()
    for (const [key, object] of this.#objects) {
      if (namespace === undefined || object.metadata.namespace === namespace) unseen.add(key)
    }
    return {
      put: object => {
        const key = keyOf(object.metadata)
        this.#put(key, object, { initial: true, own: false, anyVersion: rolledBack && unseen.has(key) })
        unseen.delete(key)
      },
      prune: version => {
        for (const key of unseen) {
          const known = this.#objects.get(key)
          if (!known || (!rolledBack && compareVersions(known.metadata.resourceVersion, version) > 0)) continue
          this.#drop(key, known, known, false)
        }
        for (const key of this.#erased.keys()) if (namespace === undefined || key.startsWith(`${namespace}/`)) this.#erased.delete(key)
      },
    }
  }

  /** Everything is gone: the kind is no longer served. */
  clear(namespace?: string): void {
    for (const [key, object] of [...this.#objects]) {
      if (namespace === undefined || object.metadata.namespace === namespace) this.#drop(key, object, object, false)
    }
  }

  #put(key: string, object: Live<T>, how: { initial: boolean; own: boolean; anyVersion: boolean }): void {
    const known = this.#objects.get(key)
    const { uid, resourceVersion } = object.metadata
    if (known && !how.anyVersion && compareVersions(resourceVersion, known.metadata.resourceVersion) <= 0) return
    if (!known && this.#erased.size > 0) {
      if (this.#erased.get(key) === uid) return
      this.#erased.delete(key)
    }
    this.#options.transform?.(object)
    this.#objects.set(key, object)
    for (const index of this.#indices.values()) reindex(index, key, known, object)
    const news = { key, object, initial: how.initial, own: how.own }
    this.#tell(known ? { ...news, type: 'changed', old: known } : { ...news, type: 'added' })
  }

  #drop(key: string, known: Live<T>, last: Live<T>, own: boolean): void {
    this.#objects.delete(key)
    for (const index of this.#indices.values()) reindex(index, key, known, undefined)
    this.#tell({ type: 'removed', key, object: last, initial: false, own })
  }

  #tell(change: { type: Change<T>['type']; key: string; object: Live<T>; old?: Live<T>; initial: boolean; own: boolean }): void {
    if (this.#listeners.size === 0) return
    frozen(change.object)
    if (change.old) frozen(change.old)
    for (const listener of this.#listeners) this.#call(listener, change as unknown as Change<T>)
  }

  #call(listener: Listener<T>, change: Change<T>): void {
    try {
      listener(change)
    } catch (error) {
      this.#options.onError?.(error)
    }
  }

  #index(name: string) {
    const index = this.#indices.get(name)
    if (!index) throw new TypeError(`no index "${name}" (there are: ${[...this.#indices.keys()].join(', ') || 'none'})`)
    return index
  }
}

function reindex<T extends object>(
  index: { of: Indexer<T>; keys: Map<string, string | Set<string>> },
  key: string,
  old: Live<T> | undefined,
  object: Live<T> | undefined,
): void {
  const before = old ? index.of(old) : []
  const after = object ? index.of(object) : []
  for (const value of before) if (!after.includes(value)) delist(index.keys, value, key)
  for (const value of after) if (!before.includes(value)) enlist(index.keys, value, key)
}

/** Most values have one key; a Set for each would cost more than the objects. */
function enlist(keys: Map<string, string | Set<string>>, value: string, key: string): void {
  const there = keys.get(value)
  if (there === undefined) keys.set(value, key)
  else if (typeof there !== 'string') there.add(key)
  else if (there !== key) keys.set(value, new Set([there, key]))
}

function delist(keys: Map<string, string | Set<string>>, value: string, key: string): void {
  const there = keys.get(value)
  if (there === key) keys.delete(value)
  else if (there instanceof Set && there.delete(key) && there.size === 0) keys.delete(value)
}

/** Frozen through and through, at the first time it is handed out. */
function frozen<T extends object>(object: Live<T>): Snapshot<T> {
  if (!Object.isFrozen(object)) freeze(object)
  return object as unknown as Snapshot<T>
}

function freeze(value: object): void {
  Object.freeze(value)
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null && !Object.isFrozen(part)) freeze(part)
}
