/**
 * What can be done to the registered children of one custom resource: create, update, delete, prune, release.
 *
 * Guarantees: nothing is written that is there already; somebody else's object is never taken over unasked; a child that is being deleted is not written; each
 * call adds to the results what it did, and an error of one child does not hide another's.
 */
import { ShipmateError } from '../../shared/errors.ts'
import type { CachedClient } from '../kube/cached.ts'
import { Invalid, NotFound } from '../kube/errors.ts'
import { type Kind, keyOf, type Snapshot } from '../kube/kind.ts'
import { type Logger, TerminalError } from '../runtime/index.ts'
import { expectedOf, refOf } from './expected.ts'
import { hasFinalizer, isBeingDeleted, removeFinalizer } from './finalizers.ts'
import { hashAnnotation, partsOf } from './hash.ts'
import { carries, immutableFields } from './immutable.ts'
import { type Readiness, readinessOf } from './readiness.ts'
import type { Entry, Registry } from './registry.ts'
import type { AnyResource, Release } from './resource.ts'
import type { Results } from './results.ts'

export interface Surroundings<C extends object> {
  readonly cr: Snapshot<C>
  readonly client: CachedClient
  readonly log: Logger
  readonly signal: AbortSignal
  readonly event: Release<C, object>['event']
  readonly results: Results
  readonly registry: Registry<C>
  /** The finalizer that children with a hook of their own carry. */
  readonly childFinalizer: string
  /** Every kind of which the operator may have children. */
  readonly kinds: readonly Kind[]
  /** Every declared resource, registered or not. */
  readonly declared: readonly AnyResource<C>[]
}

export interface AllOptions {
  /** Create no more than so many in one reconciliation; the others come later. Default 0: no limit. */
  readonly maxCreation?: number | undefined
  /** Leave the others alone once one has failed. Default false. */
  readonly stopOnError?: boolean | undefined
}

/** OKT's methods of the reconcilers, by their names. */
export interface Care<C extends object> {
  /** Learns what is there of each registered child, from the cache. */
  fetchPeers(): Promise<void>
  createResource(entry: Entry<C>): Promise<void>
  createAllResources(options?: AllOptions): Promise<void>
  mutateResource(entry: Entry<C>): void
  mutateAllResources(options?: Pick<AllOptions, 'stopOnError'>): void
  updateResource(entry: Entry<C>): Promise<void>
  createOrUpdateAllResources(options?: AllOptions): Promise<void>
  deleteResource(entry: Entry<C>): Promise<void>
  /** Deletes every child that the toolkit has made for this custom resource and that is not registered now. */
  pruneResources(): Promise<void>
  /** Runs the finalizer hook of every child that carries our finalizer, and lets it go. */
  releaseAllResources(): Promise<void>
  readiness(entry: Entry<C>): Readiness
  /** Children that are being deleted and held by somebody's finalizer. */
  held(): string[]
}

/** Said, since the server would leave a Job's pods where they are. */
const withDependents = { propagation: 'Background' } as const

/** How soon those that were delayed come. */
const delayedFor = 1000

export function createCare<C extends object>(around: Surroundings<C>): Care<C> {
  const { cr, client, log, signal, results, registry, childFinalizer } = around

  function isAbsent({ resource }: Entry<C>): boolean {
    return resource.options.optional === true && !client.isServed(resource.kind)
  }

  async function fetched(entry: Entry<C>): Promise<void> {
    if (entry.isFetched) return
    entry.peer = isAbsent(entry) ? undefined : await client.find(entry.resource.kind, entry.ref)
    entry.isFetched = true
  }

  /** True unless it failed: the error is among the results. */
  async function attempt(
    entry: Entry<C>,
    code: 'CreateFailed' | 'UpdateFailed' | 'DeleteFailed',
    work: () => Promise<void>,
  ): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      if (entry.resource.options.optional && isOfNoKind(error)) {
        // Its CRD has just gone: the cache will say so in a moment, and that is a reason to look again.
        entry.peer = undefined
        results.add({ code: 'Absent', on: entry.index })
        return true
      }
      results.add({ code, on: entry.index, error })
      return false
    }
  }

  async function create(entry: Entry<C>): Promise<void> {
    if (isAbsent(entry)) return results.add({ code: 'Absent', on: entry.index })
    refuseWhileDeleting(entry)
    const { object, requeueAfter } = expectedFor(entry)
    // Not by force: what the cache does not show yet may be somebody else's.
    entry.peer = await client.apply(entry.resource.kind, object, {
      ...ownerOf(entry),
      force: false,
      fieldValidation: 'Strict',
    })
    results.add({ code: 'Created', on: entry.index, requeueAfter })
  }

  async function update(entry: Entry<C>): Promise<void> {
    const { peer, resource } = entry
    if (!peer) return create(entry)
    if (isBeingDeleted(peer)) return leave(entry, peer)
    refuseWhileDeleting(entry)
    refuseForeign(entry, peer)
    if (!resource.isMutable) return results.add({ code: 'Unchanged', on: entry.index })
    const { object, hash, parts, requeueAfter } = expectedFor(entry)
    const { kind, options } = resource
    const isAll = parts.includes('all')
    const isOwned = options.owner === false || controllerUid(peer) === cr.metadata.uid
    if (
      !isAll &&
      isOwned &&
      peer.metadata.annotations?.[hashAnnotation] === hash &&
      carries(partsOf(object, parts).object, peer)
    )
      return results.add({ code: 'Unchanged', on: entry.index, requeueAfter })
    try {
      const isLastWish = isAll && peer.metadata.annotations?.[hashAnnotation] === hash
      entry.peer = await client.apply(kind, object, { ...ownerOf(entry), isLastWish, fieldValidation: 'Strict' })
    } catch (error) {
      const fields = error instanceof Invalid ? immutableFields(error, object, peer) : []
      if (fields.length === 0) throw error
      return recreate(entry, peer, fields, error)
    }
    const changed = entry.peer?.metadata.resourceVersion !== peer.metadata.resourceVersion
    results.add({ code: changed ? 'Updated' : 'Unchanged', on: entry.index, requeueAfter })
  }

  async function recreate(entry: Entry<C>, peer: Snapshot, fields: string[], cause: unknown): Promise<void> {
    const { kind, options } = entry.resource
    const named = `${fields.join(', ')} of ${entry.index} cannot be changed once it is there`
    if (!options.recreate)
      throw new TerminalError(`${named}; \`recreate: true\` in its declaration would delete it and create it anew`, {
        cause,
      })
    log.warn({ fields }, `${named}: it is deleted, to be created anew`)
    await client.delete(kind, peer, { propagation: options.recreate === 'Orphan' ? 'Orphan' : 'Background' })
    // Whatever the old one had reached, the new one has not.
    entry.peer = undefined
    results.add({ code: 'Recreated', on: entry.index, note: fields.join(', '), requeueAfter: delayedFor })
  }

  /** It is being deleted: its own finalizer runs, and it is waited for. */
  async function leave(entry: Entry<C>, peer: Snapshot): Promise<void> {
    if (hasFinalizer(peer, childFinalizer)) await release(entry.resource, peer, entry.index)
    else results.add({ code: 'Leaving', on: entry.index, note: heldBy(peer) })
  }

  async function release(resource: AnyResource<C>, object: Snapshot, on: string): Promise<void> {
    try {
      const call: Release<C, object> = { object, cr, client, log, signal, event: around.event }
      await resource.options.finalizer?.(call)
      await removeFinalizer(client, resource.kind, object, childFinalizer).catch(error => {
        // Let go already: the cache may show it a moment longer.
        if (!(error instanceof NotFound)) throw error
      })
      results.add({ code: 'Released', on })
    } catch (error) {
      results.add({ code: 'ReleaseFailed', on, error })
    }
  }

  function expectedFor(entry: Entry<C>) {
    entry.expected ??= expectedOf(entry.resource, cr, childFinalizer)
    return entry.expected
  }

  function ownerOf({ resource }: Entry<C>) {
    return resource.options.owner === false ? {} : { owner: cr as Snapshot }
  }

  function refuseWhileDeleting(entry: Entry<C>): void {
    if (!isBeingDeleted(cr)) return
    throw new ShipmateError(
      'Misuse',
      `${entry.index} is not written, as ${cr.kind} ${cr.metadata.name} is being deleted`,
      'never',
    )
  }

  function refuseForeign(entry: Entry<C>, peer: Snapshot): void {
    const controller = peer.metadata.ownerReferences?.find(reference => reference.controller)
    if (controller && controller.uid !== cr.metadata.uid)
      throw new TerminalError(`${entry.index} belongs to ${controller.kind} ${controller.name}; it is left alone`)
    const isMade = peer.metadata.annotations?.[hashAnnotation] !== undefined
    if (controller || isMade || entry.resource.options.adopt) return
    throw new TerminalError(
      `${entry.index} was there before, and nobody's of ours; delete it, or take it over by \`adopt: true\` in its declaration`,
    )
  }

  function readiness(entry: Entry<C>): Readiness {
    const { resource, peer } = entry
    if (isAbsent(entry)) return { ready: true, reason: 'KindAbsent', message: `${entry.index} is left out` }
    if (!peer) return { ready: false, reason: 'Missing', message: `${entry.index} is not there yet` }
    const said = resource.options.ready?.(peer, cr) ?? readinessOf(resource.kind, peer)
    if (typeof said !== 'boolean') return said
    return said
      ? { ready: true, reason: 'Ready', message: `${entry.index} is ready` }
      : { ready: false, reason: 'NotReady', message: `${entry.index} is not ready yet` }
  }

  /** Why it cannot be created yet. */
  function waitsFor({ after }: Entry<C>): string | undefined {
    for (const index of after) {
      const other = registry.get(index)
      if (other && !readiness(other).ready) return readiness(other).message
    }
    return undefined
  }

  async function all({ maxCreation = 0, stopOnError = false }: AllOptions, isToUpdate: boolean): Promise<void> {
    let created = 0
    for (const entry of registry.all()) {
      await fetched(entry)
      if (entry.peer && !isToUpdate) {
        results.add({ code: 'Unchanged', on: entry.index })
        continue
      }
      if (!entry.peer) {
        const why = waitsFor(entry)
        if (why !== undefined) {
          results.add({ code: 'Waiting', on: entry.index, note: why })
          continue
        }
        if (maxCreation > 0 && created >= maxCreation) {
          results.add({ code: 'CreateDelayed', on: entry.index, requeueAfter: delayedFor })
          continue
        }
        if (!isAbsent(entry)) created++
      }
      const code = entry.peer ? 'UpdateFailed' : 'CreateFailed'
      const isDone = await attempt(entry, code, () => update(entry))
      if (!isDone && stopOnError) return
    }
  }

  function mutate(entry: Entry<C>): boolean {
    try {
      expectedFor(entry)
      results.add({ code: 'Mutated', on: entry.index })
      return true
    } catch (error) {
      results.add({ code: 'MutationFailed', on: entry.index, error })
      return false
    }
  }

  /** Children that the toolkit has made for this custom resource, of every kind. */
  function made(): { kind: Kind; child: Snapshot }[] {
    return around.kinds.flatMap(kind => client.owned(kind, cr as Snapshot).map(child => ({ kind, child })))
  }

  /** Registered ones without an owner reference, as far as they are there. */
  function unowned(): { kind: Kind; child: Snapshot }[] {
    return registry.all().flatMap(({ resource: { kind, options }, peer }) => {
      return peer && options.owner === false ? [{ kind, child: peer }] : []
    })
  }

  /** Those that carry our finalizer, also without an owner reference: nobody else would let them go. */
  async function carrying(): Promise<{ kind: Kind; child: Snapshot }[]> {
    const others = around.declared.filter(({ options }) => options.owner === false && options.finalizer)
    const found = others.map(async one => ({ kind: one.kind, child: await client.find(one.kind, refOf(one, cr)) }))
    return [...made(), ...(await Promise.all(found))].flatMap(({ kind, child }) =>
      child && hasFinalizer(child, childFinalizer) ? [{ kind, child }] : [],
    )
  }

  function declarationOf(kind: Kind, child: Snapshot): AnyResource<C> | undefined {
    const sameKind = around.declared.filter(one => one.kind === kind && one.options.finalizer)
    const named = sameKind.find(one => keyOf(refOf(one, cr)) === keyOf(child.metadata))
    const registered = registry
      .all()
      .find(({ resource, ref }) => resource.kind === kind && keyOf(ref) === keyOf(child.metadata))
    return registered?.resource ?? named ?? (sameKind.length === 1 ? sameKind[0] : undefined)
  }

  return {
    async fetchPeers() {
      for (const entry of registry.all()) await fetched(entry)
    },
    async createResource(entry) {
      await fetched(entry)
      if (!entry.peer) await attempt(entry, 'CreateFailed', () => create(entry))
    },
    createAllResources: (options = {}) => all(options, false),
    mutateResource: entry => void mutate(entry),
    mutateAllResources({ stopOnError = false } = {}) {
      for (const entry of registry.all()) if (!mutate(entry) && stopOnError) return
    },
    async updateResource(entry) {
      await fetched(entry)
      await attempt(entry, entry.peer ? 'UpdateFailed' : 'CreateFailed', () => update(entry))
    },
    createOrUpdateAllResources: (options = {}) => all(options, true),
    async deleteResource(entry) {
      await fetched(entry)
      const { peer } = entry
      if (!peer) return
      if (isBeingDeleted(peer)) return leave(entry, peer)
      await attempt(entry, 'DeleteFailed', async () => {
        refuseForeign(entry, peer)
        await client.delete(entry.resource.kind, peer, withDependents)
        results.add({ code: 'Deleted', on: entry.index })
      })
    },
    async pruneResources() {
      const wanted = new Set(registry.all().map(({ resource, ref }) => `${resource.kind.kind} ${keyOf(ref)}`))
      for (const { kind, child } of made()) {
        if (
          wanted.has(`${kind.kind} ${keyOf(child.metadata)}`) ||
          child.metadata.annotations?.[hashAnnotation] === undefined
        )
          continue
        const on = `${kind.kind} ${child.metadata.name}`
        try {
          if (!isBeingDeleted(child)) {
            await client.delete(kind, child, withDependents)
            results.add({ code: 'Pruned', on })
          } else if (hasFinalizer(child, childFinalizer)) {
            const declaration = declarationOf(kind, child)
            if (declaration) await release(declaration, child, on)
          }
        } catch (error) {
          results.add({ code: 'DeleteFailed', on, error })
        }
      }
    },
    async releaseAllResources() {
      for (const { kind, child } of await carrying()) {
        const declaration = declarationOf(kind, child)
        if (declaration) await release(declaration, child, `${kind.kind} ${child.metadata.name}`)
      }
    },
    readiness,
    held: () =>
      [...made(), ...unowned()].flatMap(({ kind, child }) => {
        const by = isBeingDeleted(child) ? heldBy(child, childFinalizer) : undefined
        return by === undefined ? [] : [`${kind.kind} ${child.metadata.name} ${by}`]
      }),
  }
}

/** An apply finds no place for it: not for want of its namespace, so of its kind. */
function isOfNoKind(error: unknown): boolean {
  return error instanceof NotFound && error.answer.details?.kind !== 'namespaces'
}

function controllerUid(object: Snapshot): string | undefined {
  return object.metadata.ownerReferences?.find(reference => reference.controller)?.uid
}

/** Which finalizers hold an object that is being deleted, but for ours. */
function heldBy({ metadata }: Snapshot, own?: string): string | undefined {
  const others = (metadata.finalizers ?? []).filter(one => one !== own)
  return others.length > 0 ? `is being deleted, and held by the finalizer ${others.join(', ')}` : undefined
}
