/**
 * A kind's objects, at hand: a Store kept up to date by a Reflector for each namespace that is watched.
 *
 * Guarantees: reading costs no request; `synced` resolves when every namespace has been read whole once; what we write through a
 * CachedClient is seen here at once.
 */
import type { Clock } from '../../shared/clock.ts'
import { ShipmateError } from '../../shared/errors.ts'
import type { Client } from './client.ts'
import { type Kind, keyOf, type Live, type Ref, type Snapshot } from './kind.ts'
import { type Health, Reflector, type ReflectorOptions } from './reflector.ts'
import { selectionOf } from './selector.ts'
import { type Indexer, type Listener, Store } from './store.ts'
import type { Labels } from './url.ts'

export interface InformerOptions<T extends object> extends Omit<ReflectorOptions, 'namespace' | 'onHealth'> {
  /** Default: all. */
  readonly namespaces?: readonly string[] | undefined
  /** Ways to find objects: `byLabel`, or any function; beside `owner` (the uid of the controlling owner), which is always there. */
  readonly indices?: Readonly<Record<string, Indexer<T>>> | undefined
  /** Takes out of an object what need not be kept, to save memory. managedFields go by themselves. */
  readonly transform?: ((object: Live<T>) => void) | undefined
  /** The manager whose entry in managedFields is kept: who applies needs to know what it owns. Default: none. */
  readonly keepManager?: string | undefined
  readonly onHealth?: ((health: Health, namespace: string | undefined, kind: Kind) => void) | undefined
  /** A listener, or something else of the options, threw. */
  readonly onError?: ((error: unknown) => void) | undefined
  readonly clock?: Clock | undefined
}

export class Informer<T extends object> {
  readonly kind: Kind<T>
  readonly #store: Store<T>
  readonly #reflectors: { reflector: Reflector<T>; synced: boolean }[] = []
  readonly #synced = Promise.withResolvers<void>()
  readonly #settled = Promise.withResolvers<void>()
  readonly #answered = Promise.withResolvers<void>()
  readonly #onServed = new Set<(isServed: boolean) => void>()
  #isServed = true
  #running: Promise<void> | undefined
  readonly #managers: Set<string>
  /** Undefined: all. */
  readonly #namespaces: ReadonlySet<string> | undefined
  readonly #selects: ((object: Live) => boolean) | undefined

  constructor(client: Client, kind: Kind<T>, options: InformerOptions<T> = {}) {
    this.kind = kind
    this.#managers = new Set(options.keepManager === undefined ? [] : [options.keepManager])
    this.#store = new Store<T>({
      indices: { ...options.indices, owner: controllerUid },
      transform: object => {
        dropManagedFields(object, this.#managers)
        options.transform?.(object)
      },
      onError: options.onError,
    })
    if (options.namespaces?.length === 0)
      throw new ShipmateError('Misuse', 'namespaces is empty: leave it out to watch all of them', 'never')
    if (kind.namespaced && options.namespaces) this.#namespaces = new Set(options.namespaces)
    this.#selects = selectionOf(options)
    for (const namespace of this.#namespaces ?? [undefined]) {
      const entry = {
        synced: false,
        reflector: new Reflector(client, kind, this.#store, {
          ...options,
          namespace,
          onHealth: health => {
            if (health.is === 'watching') entry.synced = true
            this.#look()
            try {
              options.onHealth?.(health, namespace, kind)
            } catch (error) {
              options.onError?.(error)
            }
          },
        }),
      }
      this.#reflectors.push(entry)
    }
  }

  /** Keeps going until the signal is aborted. Starting twice is starting once. */
  run(signal: AbortSignal): Promise<void> {
    this.#running ??= Promise.all(this.#reflectors.map(({ reflector }) => reflector.run(signal))).then(() => undefined)
    return this.#running
  }

  /** Resolves when everything has been read once. Never, for a kind that is never served. */
  get synced(): Promise<void> {
    return this.#synced.promise
  }

  /** Resolves when everything has been read once, or is known not to be served. */
  get settled(): Promise<void> {
    return this.#settled.promise
  }

  /** Resolves when everything has been read once, or the server has said that some of it may not be read. */
  get answered(): Promise<void> {
    return this.#answered.promise
  }

  /** The rule that is missing to read it, as the server says; undefined where it says nothing of the kind. */
  get missingRule(): string | undefined {
    const { health } = this
    return health.is === 'failing' ? health.missingRule : undefined
  }

  get hasSynced(): boolean {
    return this.#reflectors.every(entry => entry.synced)
  }

  /** The worst of its reflectors. */
  get health(): Health {
    const order = ['failing', 'absent', 'syncing', 'watching']
    const all = this.#reflectors.map(({ reflector }) => reflector.health)
    return all.reduce((worst, one) => (order.indexOf(one.is) < order.indexOf(worst.is) ? one : worst))
  }

  /** False while the kind is known not to be served. */
  get isServed(): boolean {
    return this.#isServed
  }

  /** Tells when the kind comes to be served, its objects read, and when it no longer is. Returns how to stop. */
  onServed(listener: (isServed: boolean) => void): () => void {
    this.#onServed.add(listener)
    return () => void this.#onServed.delete(listener)
  }

  get size(): number {
    return this.#store.size
  }

  get(ref: Ref): Snapshot<T> | undefined {
    return this.#store.get(keyOf(ref))
  }

  list(options: { namespace?: string | undefined; labels?: Labels | undefined } = {}): Snapshot<T>[] {
    const found: Snapshot<T>[] = []
    for (const object of this.#store.values(options.namespace))
      if (hasLabels(object, options.labels)) found.push(object)
    return found
  }

  /** By an index: `owner`, or one of the options'. */
  by(index: string, value: string): Snapshot<T>[] {
    return [...this.#store.by(index, value)]
  }

  addIndex(name: string, of: Indexer<T>): void {
    this.#store.addIndex(name, of)
  }

  /** Keep this manager's entry in managedFields too, from now on. Before the first start. */
  keepManager(manager: string): void {
    this.#managers.add(manager)
  }

  /** Every change from now on, and what is there already as initial. Returns how to stop. */
  subscribe(listener: Listener<T>): () => void {
    return this.#store.subscribe(listener)
  }

  /**
   * We wrote this. It is seen here at once, or gone from here where it is not among what is watched, at once. Where only the server can tell
   * whether it is (`fields`), it is left to the watch.
   */
  wrote(object: Live<T>): void {
    const isWatched = this.watches(object.metadata.namespace) && this.#selects?.(object)
    if (isWatched) this.#store.wrote(object)
    else if (isWatched === false) this.#store.left(object)
  }

  /** Whether objects of that namespace are watched. */
  watches(namespace: string | undefined): boolean {
    return this.#namespaces === undefined || namespace === undefined || this.#namespaces.has(namespace)
  }

  /** We deleted this very object, and the server says it is gone. */
  erased(ref: Ref, uid: string): void {
    this.#store.erased(keyOf(ref), uid)
  }

  #look(): void {
    if (this.hasSynced) this.#synced.resolve()
    if (this.#reflectors.every(({ synced, reflector }) => synced || isRefused(reflector.health)))
      this.#answered.resolve()
    if (this.#reflectors.every(({ synced, reflector }) => synced || reflector.health.is === 'absent'))
      this.#settled.resolve()
    const all = this.#reflectors.map(({ reflector }) => reflector.health.is)
    const isServed = !all.includes('absent') && (this.#isServed || all.every(is => is === 'watching'))
    if (isServed === this.#isServed) return
    this.#isServed = isServed
    for (const listener of this.#onServed) listener(isServed)
  }
}

function isRefused(health: Health): boolean {
  return health.is === 'failing' && health.missingRule !== undefined
}

/** An index by the value of a label. */
export function byLabel(name: string): Indexer<object> {
  return object => {
    const value = object.metadata.labels?.[name]
    return value === undefined ? [] : [value]
  }
}

function controllerUid(object: Live): readonly string[] {
  const owner = object.metadata.ownerReferences?.find(reference => reference.controller)
  return owner ? [owner.uid] : []
}

function dropManagedFields(object: Live, managers: ReadonlySet<string>): void {
  const { metadata } = object
  if (!metadata.managedFields) return
  const kept = metadata.managedFields.filter(
    ({ manager = '', operation }) => operation === 'Apply' && managers.has(manager),
  )
  // Built anew, not deleted from: V8 keeps objects with deleted properties as hash tables, at several times the memory.
  const { managedFields: _, ...rest } = metadata
  object.metadata = kept.length > 0 ? { ...rest, managedFields: kept } : rest
}

function hasLabels(object: Snapshot, labels: Labels | undefined): boolean {
  return Object.entries(labels ?? {}).every(([name, value]) => object.metadata.labels?.[name] === value)
}
