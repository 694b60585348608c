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
  /** A listener, the transform or an index threw. */
  readonly onError?: ((error: unknown) => void) | undefined
}

/** One pass over all that exists, in one namespace or in all. */
export interface Round<T extends object> {
  put(object: Live<T>): void
  /** What was not put in this round, and is not newer than `version`, does not exist. */
  prune(version: string): void
}

/** An object that we took away, of which the watch may not have told yet. Up to `version` nothing that is said of that name is news. */
interface Erased {
  readonly uid: string
  readonly version: string
  /** It was deleted: nothing that is said of that uid is ever news. */
  readonly forGood: boolean
}

/** How many of those are kept. Older ones have long been told of. */
const longestMemory = 1000

interface Index<T extends object> {
  readonly of: Indexer<T>
  readonly keys: Map<string, string | Set<string>>
}

export class Store<T extends object> {
  readonly #objects = new Map<string, Live<T>>()
  readonly #indices = new Map<string, Index<T>>()
  readonly #erased = new Map<string, Erased>()
  /** Up to which version news are complete, by namespace; under '' where one pass is over all of them. */
  readonly #told = new Map<string, string>()
  readonly #listeners = new Set<Listener<T>>()
  readonly #options: StoreOptions<T>

  constructor(options: StoreOptions<T> = {}) {
    this.#options = options
    for (const [name, of] of Object.entries(options.indices ?? {}))
      this.#indices.set(name, { of: this.#careful(of), keys: new Map() })
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
    const index: Index<T> = { of: this.#careful(of), keys: new Map() }
    this.#indices.set(name, index)
    for (const [key, object] of this.#objects) for (const value of index.of(object)) enlist(index.keys, value, key)
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
    this.#tellUpTo(object)
    this.#put(keyOf(object.metadata), object, { initial: false, own: false, anyVersion: false })
  }

  /** News from a watch: it is gone. */
  remove(object: Live<T>): void {
    this.#tellUpTo(object)
    const key = keyOf(object.metadata)
    const gone = this.#erased.get(key)
    if (gone && !gone.forGood && compareVersions(object.metadata.resourceVersion, gone.version) >= 0)
      this.#erased.delete(key)
    const known = this.#objects.get(key)
    if (!known || compareVersions(known.metadata.resourceVersion, object.metadata.resourceVersion) > 0) return
    this.#transform(object)
    this.#drop(key, known, object, false)
  }

  /** Our own write was answered with this. */
  wrote(object: Live<T>): void {
    const key = keyOf(object.metadata)
    const told = this.#told.get(this.#scopeOf(object))
    // The answer may be slower than the news: what is not there although these are past it has been deleted since.
    if (!this.#objects.has(key) && told !== undefined && compareVersions(object.metadata.resourceVersion, told) <= 0)
      return
    this.#put(key, object, { initial: false, own: true, anyVersion: false })
  }

  /** Our own deletion was answered with "gone". */
  erased(key: string, uid: string): void {
    const known = this.#objects.get(key)
    if (known?.metadata.uid !== uid) return
    this.#erase(key, known, { uid, version: known.metadata.resourceVersion, forGood: true })
  }

  /** Our own write was answered with this, and it is not, or no longer, among the objects that are kept here. */
  left(object: Live<T>): void {
    const key = keyOf(object.metadata)
    const known = this.#objects.get(key)
    const version = object.metadata.resourceVersion
    if (!known || compareVersions(known.metadata.resourceVersion, version) >= 0) return
    this.#erase(key, known, { uid: known.metadata.uid, version, forGood: false })
  }

  /** Begins a round. `rolledBack`: the server's versions went back, so what it says now is right however old it looks. */
  round(namespace: string | undefined, rolledBack: boolean): Round<T> {
    const scope = namespace ?? ''
    const isInside = (key: string) => namespace === undefined || key.startsWith(`${namespace}/`)
    const seen = new Set<string>()
    /** What is there from before the server went back: any other version of it is better. */
    const stale = rolledBack ? new Map(this.#objects) : undefined
    /** What the server was asked after these deletions reflects them. */
    const erased = Array.from(this.#erased).filter(([key]) => isInside(key))
    if (rolledBack) {
      this.#told.delete(scope)
      for (const [key] of erased) this.#erased.delete(key)
    }
    return {
      put: object => {
        const key = keyOf(object.metadata)
        seen.add(key)
        const known = this.#objects.get(key)
        const anyVersion = known !== undefined && stale?.get(key) === known
        this.#put(key, object, { initial: true, own: false, anyVersion })
      },
      prune: version => {
        this.#told.set(scope, version)
        for (const [key, known] of this.#objects) {
          if (seen.has(key) || !isInside(key)) continue
          const isNewer = compareVersions(known.metadata.resourceVersion, version) > 0
          if (!isNewer || stale?.get(key) === known) this.#drop(key, known, known, false)
        }
        for (const [key, gone] of erased) if (this.#erased.get(key) === gone) this.#erased.delete(key)
      },
    }
  }

  /** Everything is gone: the kind is no longer served. Answers to writes of before may still be on their way. */
  clear(namespace?: string): void {
    const isInside = (key: string) => namespace === undefined || key.startsWith(`${namespace}/`)
    for (const key of this.#erased.keys()) if (isInside(key)) this.#erased.delete(key)
    for (const [key, object] of this.#objects) {
      if (!isInside(key)) continue
      this.#tellUpTo(object)
      this.#drop(key, object, object, false)
    }
  }

  #tellUpTo({ metadata }: Live<T>): void {
    const scope = this.#scopeOf({ metadata })
    const told = this.#told.get(scope)
    if (told === undefined || compareVersions(metadata.resourceVersion, told) > 0)
      this.#told.set(scope, metadata.resourceVersion)
  }

  #scopeOf({ metadata }: { metadata: { namespace?: string | undefined } }): string {
    return this.#told.has('') ? '' : (metadata.namespace ?? '')
  }

  #put(key: string, object: Live<T>, how: { initial: boolean; own: boolean; anyVersion: boolean }): void {
    const known = this.#objects.get(key)
    const { uid, resourceVersion } = object.metadata
    if (known && !how.anyVersion && compareVersions(resourceVersion, known.metadata.resourceVersion) <= 0) return
    const gone = known ? undefined : this.#erased.get(key)
    if (gone) {
      if ((gone.forGood && gone.uid === uid) || compareVersions(resourceVersion, gone.version) <= 0) return
      this.#erased.delete(key)
    }
    this.#transform(object)
    this.#objects.set(key, object)
    for (const index of this.#indices.values()) reindex(index, key, known, object)
    const news = { key, object, initial: how.initial, own: how.own }
    this.#tell(known ? { ...news, type: 'changed', old: known } : { ...news, type: 'added' })
  }

  #erase(key: string, known: Live<T>, how: Erased): void {
    this.#erased.delete(key)
    this.#erased.set(key, how)
    if (this.#erased.size > longestMemory) {
      const [oldest] = this.#erased.keys()
      this.#erased.delete(oldest as string)
    }
    this.#drop(key, known, known, true)
  }

  #drop(key: string, known: Live<T>, last: Live<T>, own: boolean): void {
    this.#objects.delete(key)
    for (const index of this.#indices.values()) reindex(index, key, known, undefined)
    this.#tell({ type: 'removed', key, object: last, initial: false, own })
  }

  #tell(change: {
    type: Change<T>['type']
    key: string
    object: Live<T>
    old?: Live<T>
    initial: boolean
    own: boolean
  }): void {
    if (this.#listeners.size === 0) return
    frozen(change.object)
    if (change.old) frozen(change.old)
    // A copy: who subscribes while this is told has it from the objects that are there.
    for (const listener of [...this.#listeners]) {
      if (this.#listeners.has(listener)) this.#call(listener, change as unknown as Change<T>)
    }
  }

  #call(listener: Listener<T>, change: Change<T>): void {
    try {
      listener(change)
    } catch (error) {
      this.#options.onError?.(error)
    }
  }

  #transform(object: Live<T>): void {
    try {
      this.#options.transform?.(object)
    } catch (error) {
      this.#options.onError?.(error)
    }
  }

  /** An index that throws finds nothing, and keeps nobody from the object. */
  #careful(of: Indexer<T>): Indexer<T> {
    return object => {
      try {
        return of(object)
      } catch (error) {
        this.#options.onError?.(error)
        return []
      }
    }
  }

  #index(name: string) {
    const index = this.#indices.get(name)
    if (!index) throw new TypeError(`no index "${name}" (there are: ${[...this.#indices.keys()].join(', ') || 'none'})`)
    return index
  }
}

function reindex<T extends object>(
  index: Index<T>,
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
export function frozen<T extends object>(object: Live<T>): Snapshot<T> {
  if (!Object.isFrozen(object)) freeze(object)
  return object as unknown as Snapshot<T>
}

function freeze(value: object): void {
  Object.freeze(value)
  for (const part of Object.values(value))
    if (typeof part === 'object' && part !== null && !Object.isFrozen(part)) freeze(part)
}
