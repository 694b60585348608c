/**
 * The client that a reconciler gets: reads what is watched from the cache, writes through it, and does not write what would change nothing.
 *
 * Guarantees: no request for a kind that is watched, to read it or to find that it is as wished; a write is in the cache when its call
 * returns; a refusal (Conflict …) is the server's, as with the Client.
 */
import { createHash } from 'node:crypto'
import { ShipmateError } from '../../shared/errors.ts'
import { isApplied, mergePatchOf } from './applied.ts'
import type { Cache } from './cache.ts'
import type { ApplyOptions, Client, DeleteOptions, ListOptions, Patch, WriteOptions } from './client.ts'
import { NotFound } from './errors.ts'
import type { Informer } from './informer.ts'
import {
  type Applied,
  apiVersionOf,
  type Draft,
  type Frozen,
  type Kind,
  keyOf,
  kindKey,
  type Live,
  type OwnerReference,
  type Ref,
  type Snapshot,
  type Wire,
} from './kind.ts'
import { frozen } from './store.ts'
import { formerOwners, takenOver } from './takeover.ts'
import type { Labels } from './url.ts'

export interface CachedOptions {
  /** Aborts what is under way. */
  readonly signal?: AbortSignal | undefined
  /** Where namespaced objects without a namespace are. Default: the client's. */
  readonly namespace?: string | undefined
  /** Called after each write, with what it did: `changed` is false where the server changed nothing. */
  readonly onWrite?: ((write: Write) => void) | undefined
}

export interface Write {
  readonly verb: 'create' | 'update' | 'patch' | 'apply' | 'status' | 'delete'
  readonly kind: Kind
  readonly ref: Ref
  readonly changed: boolean
}

/** Whose object it is. */
export interface Owned {
  /** Becomes its controlling owner, and gives it its namespace. */
  readonly owner?: Snapshot | undefined
}

export interface LastWish {
  /**
   * That this very wish was the last one applied to the object is known, as by a hash that is kept in it. Then nothing is sent if every field is still ours, also where the
   * server keeps values in words of its own. Default false.
   */
  readonly isLastWish?: boolean | undefined
}

export interface SameObject {
  /** Write only if the object of that name is this one; else it is a Conflict. Default: whichever it is. */
  readonly uid?: string | undefined
}

export interface AsNew {
  /** Only if there is none: else Conflict, and what is there stays as it is. Default false. */
  readonly isNew?: boolean | undefined
}

export interface AtVersion {
  /** Write only if this is still its version; else it is a Conflict. Default: whatever its version is. */
  readonly resourceVersion?: string | undefined
}

export class CachedClient {
  /** Straight to the server: for what is not watched, or must be as of now. Its writes are not in the cache at once. */
  readonly live: Client
  readonly #cache: Cache
  readonly #remembered: Remembered
  readonly #options: CachedOptions
  /** Names under which it has applied before. */
  readonly #former: readonly string[]

  constructor(
    live: Client,
    cache: Cache,
    remembered = new Remembered(),
    options: CachedOptions = {},
    former: readonly string[] = [],
  ) {
    this.live = live
    this.#cache = cache
    this.#remembered = remembered
    this.#options = options
    this.#former = former
  }

  /** The same client, for one piece of work. */
  with(options: CachedOptions): CachedClient {
    return new CachedClient(this.live, this.#cache, this.#remembered, options, this.#former)
  }

  /** The same client, writing under another name. @param former names under which it has applied before: their fields are taken over with the next apply */
  as(fieldManager: string, former: readonly string[] = []): CachedClient {
    const others = former.filter(name => name !== fieldManager)
    return new CachedClient(this.live.as(fieldManager), this.#cache, this.#remembered, this.#options, others)
  }

  /** The name under which it applies, and those under which it has. */
  get fieldManagers(): readonly string[] {
    return [this.live.fieldManager, ...this.#former]
  }

  async get<T extends object>(kind: Kind<T>, ref: Ref): Promise<Snapshot<T>> {
    const found = await this.find(kind, ref)
    if (found) return found
    const target = { verb: 'get', group: kind.group, resource: kind.plural, ...this.#place(kind, ref) }
    throw new NotFound('NotFound', 'never', 404, target, { message: `${kind.kind} "${ref.name}" not found` })
  }

  /** Like get, but undefined where there is none. */
  async find<T extends object>(kind: Kind<T>, ref: Ref): Promise<Snapshot<T> | undefined> {
    const place = this.#place(kind, ref)
    const informer = this.#cache.peek(kind)
    if (informer?.hasSynced && informer.watches(place.namespace)) return informer.get(place)
    if (informer?.watches(place.namespace)) refuseUnreadable(informer)
    return snapshot(await this.live.find(kind, place, { signal: this.#options.signal }))
  }

  async list<T extends object>(
    kind: Kind<T>,
    options: { namespace?: string | undefined; labels?: Labels | undefined } = {},
  ): Promise<Snapshot<T>[]> {
    const informer = this.#cache.peek(kind)
    if (informer?.hasSynced && informer.watches(options.namespace)) return informer.list(options)
    if (informer?.watches(options.namespace)) refuseUnreadable(informer)
    const listOptions: ListOptions = { ...options, signal: this.#options.signal }
    return (await this.live.list(kind, listOptions)).map(object => snapshot(object))
  }

  /** False while a watched kind is known not to be served, as its CRD is absent. No request. */
  isServed(kind: Kind): boolean {
    return this.#cache.peek(kind)?.isServed ?? true
  }

  /** False while a watched kind is served, as far as is known, and has not been read. No request. */
  isRead(kind: Kind): boolean {
    const informer = this.#cache.peek(kind)
    return !informer || informer.hasSynced || informer.health.is === 'absent'
  }

  /** The objects that `owner` controls, from the cache. */
  owned<T extends object>(kind: Kind<T>, owner: Snapshot): Snapshot<T>[] {
    return this.#watched(kind).by('owner', owner.metadata.uid)
  }

  /** By an index of the kind's informer. */
  by<T extends object>(kind: Kind<T>, index: string, value: string): Snapshot<T>[] {
    return this.#watched(kind).by(index, value)
  }

  async create<T extends object>(
    kind: Kind<T>,
    object: Draft<T>,
    options: WriteOptions & Owned = {},
  ): Promise<Snapshot<T>> {
    const wished = this.#here(kind, owned(kind, object, options.owner))
    return this.#wrote('create', kind, undefined, await this.live.create(kind, wished, this.#call(options)), options)
  }

  async update<T extends object>(
    kind: Kind<T>,
    object: Draft<T> | Snapshot<T>,
    options: WriteOptions = {},
  ): Promise<Snapshot<T>> {
    const known = this.#known(kind, object.metadata as Ref)
    return this.#wrote(
      'update',
      kind,
      known,
      await this.live.update(kind, this.#here(kind, object as Draft<T>), this.#call(options)),
      options,
    )
  }

  async patch<T extends object>(
    kind: Kind<T>,
    ref: Ref,
    patch: Patch,
    options: WriteOptions = {},
  ): Promise<Snapshot<T>> {
    const place = this.#place(kind, ref)
    const known = this.#known(kind, place)
    return this.#wrote('patch', kind, known, await this.live.patch(kind, place, patch, this.#call(options)), options)
  }

  /**
   * Server-side apply, unless the cache shows that nothing would change. The fields given become ours, those given before and not now go.
   * For a kind that is watched with `owns`; for others it is always sent.
   */
  async apply<T extends object>(
    kind: Kind<T>,
    object: Applied<T>,
    { isLastWish = false, isNew = false, uid, ...options }: ApplyOptions & Owned & LastWish & SameObject & AsNew = {},
  ): Promise<Snapshot<T>> {
    const wished = this.#here(kind, owned(kind, object, options.owner))
    const manager = options.fieldManager ?? this.live.fieldManager
    const cached = options.subresource || options.dryRun ? undefined : this.#known(kind, wished.metadata as Ref)
    const isOwnName = manager === this.live.fieldManager
    const known = cached && isOwnName && !isNew ? await this.#takeOver(kind, cached) : cached
    if (
      known &&
      !isNew &&
      (uid === undefined || uid === known.metadata.uid) &&
      (isApplied(wished, known, manager, isLastWish) || this.#remembered.has(kind, known, [manager, wished]))
    )
      return isOwnName ? this.#giveUp(kind, known) : known
    // No object has version 1: an apply of that creates, or is a Conflict.
    const precondition = { ...(uid !== undefined && { uid }), ...(isNew && { resourceVersion: '1' }) }
    const sent = { ...wished, metadata: { ...wished.metadata, ...precondition } }
    const live = await this.live.apply(kind, sent, this.#call(options))
    // The server keeps some values in its own way ("1000m" is "1"): that this wish leads to this version is worth remembering.
    if (!options.dryRun && !options.subresource && !isApplied(wished, live, manager))
      this.#remembered.add(kind, live, [manager, wished])
    const written = this.#wrote('apply', kind, known, live, options)
    return cached && isOwnName ? this.#giveUp(kind, written) : written
  }

  /** Makes ours what we applied under former names, so that what is no longer wished of it goes. No request where there is nothing of the kind. */
  async #takeOver<T extends object>(kind: Kind<T>, known: Snapshot<T>): Promise<Snapshot<T>> {
    if (formerOwners(known, this.#former).length === 0) return known
    // The cache keeps our own entries alone; the list is written as a whole.
    const live = await this.live.find(kind, known.metadata, this.#call({}))
    const managedFields = live && takenOver(live, this.live.fieldManager, this.#former)
    if (!live || !managedFields) return known
    const { uid, resourceVersion } = live.metadata
    const merge = { metadata: { uid, resourceVersion, managedFields } }
    return this.#wrote('patch', kind, known, await this.live.patch(kind, live.metadata, { merge }, this.#call({})), {})
  }

  /** Gives up what former names still own: what they applied in another version of the API cannot be moved, but by now whatever is wished is ours. */
  async #giveUp<T extends object>(kind: Kind<T>, known: Snapshot<T>): Promise<Snapshot<T>> {
    let last = known
    for (const fieldManager of formerOwners(known, this.#former)) {
      const { name, namespace, uid, resourceVersion } = last.metadata
      const nothing = { metadata: { name, namespace, uid, resourceVersion } } as unknown as Applied<T>
      const live = await this.live.apply(kind, nothing, this.#call({ fieldManager }))
      last = this.#wrote('apply', kind, last, live, {})
    }
    return last
  }

  /**
   * Sets fields of the status, and nothing else of it: each given field is replaced, those not given stay. No request when nothing changes.
   * The object is found by its uid, so a namesake is never written.
   */
  async status<T extends object>(
    kind: Kind<T>,
    object: Snapshot<T>,
    status: StatusOf<T>,
    { resourceVersion, ...options }: WriteOptions & AtVersion = {},
  ): Promise<Snapshot<T>> {
    const cached = this.#known(kind, object.metadata)
    const known = cached && cached.metadata.uid === object.metadata.uid ? cached : object
    const before = (known as { status?: object }).status ?? {}
    const given = Object.fromEntries(Object.entries(status).map(([name, value]) => [name, value ?? undefined]))
    const patch = mergePatchOf(before, { ...before, ...given })
    if (patch === undefined) return known
    const merge = { metadata: { uid: object.metadata.uid, ...(resourceVersion && { resourceVersion }) }, status: patch }
    const live = await this.live.patch(
      kind,
      object.metadata,
      { merge },
      { ...this.#call(options), subresource: 'status' },
    )
    return this.#wrote('status', kind, known, live, options)
  }

  /** Deletes it; true if there was one. A Snapshot is deleted only if it is still the same object. */
  async delete<T extends object>(
    kind: Kind<T>,
    object: Ref | Snapshot<T>,
    options: DeleteOptions = {},
  ): Promise<boolean> {
    const ref = this.#place(kind, 'metadata' in object ? object.metadata : object)
    const uid = 'metadata' in object ? object.metadata.uid : undefined
    const preconditions = uid ? { uid, ...options.preconditions } : options.preconditions
    const informer = this.#cache.peek(kind)
    const known = informer?.get(ref)
    try {
      const left = await this.live.delete(kind, ref, { signal: this.#options.signal, ...options, preconditions })
      const gone = uid ?? known?.metadata.uid
      if (options.dryRun) return true
      if (left?.metadata.deletionTimestamp) informer?.wrote(left)
      else if (gone) informer?.erased(ref, gone)
    } catch (error) {
      if (error instanceof NotFound) return false
      throw error
    }
    this.#options.onWrite?.({ verb: 'delete', kind, ref, changed: true })
    return true
  }

  #wrote<T extends object>(
    verb: Write['verb'],
    kind: Kind<T>,
    known: Snapshot<T> | undefined,
    live: Live<T>,
    options: WriteOptions,
  ): Snapshot<T> {
    if (options.dryRun) return snapshot(live)
    const changed = known?.metadata.resourceVersion !== live.metadata.resourceVersion
    // Some subresources answer with another kind: a Scale, an Eviction.
    if (live.kind === kind.kind && live.apiVersion === apiVersionOf(kind)) {
      const informer = this.#cache.peek(kind)
      if (isGone(live)) informer?.erased(live.metadata, live.metadata.uid)
      else informer?.wrote(live)
    }
    this.#options.onWrite?.({ verb, kind, ref: live.metadata, changed })
    return snapshot(live)
  }

  #known<T extends object>(kind: Kind<T>, ref: Ref): Snapshot<T> | undefined {
    const informer = this.#cache.peek(kind)
    return informer?.hasSynced ? informer.get(this.#place(kind, ref)) : undefined
  }

  #watched<T extends object>(kind: Kind<T>) {
    const informer = this.#cache.peek(kind)
    if (!informer)
      throw new ShipmateError('Misuse', `${kind.kind} is not watched: declare it with owns or watches`, 'never')
    if (this.isRead(kind)) return informer
    refuseUnreadable(informer)
    throw new ShipmateError('Unavailable', `${kind.kind} has not been read yet`, 'later')
  }

  #place(kind: Kind, ref: Ref): Ref {
    return kind.namespaced
      ? { name: ref.name, namespace: ref.namespace ?? this.#options.namespace ?? this.live.namespace }
      : { name: ref.name }
  }

  /** With the namespace that it is in. */
  #here<O extends { metadata: Draft['metadata'] }>(kind: Kind, object: O): O {
    const { namespace } = this.#place(kind, object.metadata as Ref)
    if (!namespace || object.metadata.namespace === namespace) return object
    return { ...object, metadata: { ...object.metadata, namespace } }
  }

  #call<O extends WriteOptions>(options: O): O {
    return options.signal || !this.#options.signal ? options : { ...options, signal: this.#options.signal }
  }
}

/** What may be given as a status of T: any of its fields; null and undefined take one away. */
export type StatusOf<T> = T extends { status?: infer S }
  ? { readonly [K in keyof Wire<NonNullable<S>>]?: Frozen<Wire<NonNullable<S>>[K]> | undefined | null }
  : object

/** That a wish, applied, led to a version: for wishes that the server keeps in words of its own. Bounded; forgetting costs one request. */
export class Remembered {
  readonly #known = new Map<string, { version: string; hash: string }>()

  has(kind: Kind, live: Snapshot, wished: object): boolean {
    const entry = this.#known.get(idOf(kind, live))
    return entry?.version === live.metadata.resourceVersion && entry.hash === hashOf(wished)
  }

  add(kind: Kind, live: Live, wished: object): void {
    const id = idOf(kind, live)
    this.#known.delete(id)
    this.#known.set(id, { version: live.metadata.resourceVersion, hash: hashOf(wished) })
    if (this.#known.size > 10_000) for (const oldest of this.#known.keys()) return void this.#known.delete(oldest)
  }
}

function idOf(kind: Kind, object: { metadata: Ref }): string {
  return `${kindKey(kind)} ${keyOf(object.metadata)}`
}

function hashOf(wished: object): string {
  return createHash('sha256').update(JSON.stringify(wished)).digest('base64')
}

function snapshot<T extends object>(live: Live<T>): Snapshot<T>
function snapshot<T extends object>(live: Live<T> | undefined): Snapshot<T> | undefined
function snapshot(live: Live | undefined) {
  return live && frozen(live)
}

/** What may not be watched is not asked for one by one either: that would only look as if it worked. */
function refuseUnreadable({ kind, missingRule }: Pick<Informer<object>, 'kind' | 'missingRule'>): void {
  if (missingRule === undefined) return
  throw new ShipmateError('Forbidden', `${kind.kind} may not be read; the missing rule is ${missingRule}`, 'later')
}

/** Nothing holds it any more: the write that took its last finalizer away has deleted it. A Namespace has finalizers in its spec, too. */
function isGone({ kind, apiVersion, metadata, ...rest }: Live): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = metadata
  if (deletionTimestamp === undefined || finalizers.length > 0 || deletionGracePeriodSeconds !== 0) return false
  const { spec } = rest as { spec?: { finalizers?: readonly string[] } }
  return kind !== 'Namespace' || apiVersion !== 'v1' || (spec?.finalizers ?? []).length === 0
}

/** A reference that makes `owner` the controller of what carries it. */
export function controllerReference(owner: Snapshot): OwnerReference {
  const { apiVersion, kind, metadata } = owner
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true, blockOwnerDeletion: true }
}

function owned<O extends { metadata: Draft['metadata'] }>(kind: Kind, object: O, owner: Snapshot | undefined): O {
  if (!owner) return object
  const namespace = object.metadata.namespace ?? owner.metadata.namespace
  if (owner.metadata.namespace && (!kind.namespaced || namespace !== owner.metadata.namespace)) {
    throw new ShipmateError(
      'Misuse',
      `${owner.kind} ${keyOf(owner.metadata)} cannot own ${kind.kind} ${keyOf({ ...object.metadata, name: object.metadata.name ?? '' })} ` +
        `(${apiVersionOf(kind)}): an owner in a namespace owns only what is in the same one`,
      'never',
    )
  }
  const references = object.metadata.ownerReferences ?? []
  const ownerReferences = [...references.filter(one => one.uid !== owner.metadata.uid), controllerReference(owner)]
  return {
    ...object,
    metadata: { ...object.metadata, ...(kind.namespaced && namespace ? { namespace } : {}), ownerReferences },
  }
}
