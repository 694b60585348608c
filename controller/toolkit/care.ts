/**
 * What can be done to the registered children of one custom resource: create, update, delete, prune, release.
 *
 * Guarantees: each call adds to the results what it did, and an error of one child does not hide another's; what was asked for is said of each child once. What
 * holds for one child is in making.ts, for those that go in releasing.ts.
 */
import type { CachedClient } from '../kube/cached.ts'
import { NotFound } from '../kube/errors.ts'
import type { Kind, Snapshot } from '../kube/kind.ts'
import type { Logger } from '../runtime/index.ts'
import { isBeingDeleted } from './finalizers.ts'
import { createMaking, delayedFor } from './making.ts'
import type { Maker } from './ownership.ts'
import { type Readiness, readinessOf } from './readiness.ts'
import type { Entry, Registry } from './registry.ts'
import { createReleasing, type Propagation } from './releasing.ts'
import type { AnyResource, Release } from './resource.ts'
import type { Results } from './results.ts'

export interface Surroundings<C extends object> {
  readonly cr: Snapshot<C>
  readonly client: CachedClient
  readonly log: Logger
  readonly signal: AbortSignal
  readonly event: Release<C, object>['event']
  readonly condition: Release<C, object>['condition']
  readonly waitFor: Release<C, object>['waitFor']
  readonly results: Results
  readonly registry: Registry<C>
  /** The finalizer that children with a hook of their own carry. */
  readonly childFinalizer: string
  /** For whom children are made. */
  readonly maker: Maker
  /** Every kind of which the operator may have children. */
  readonly kinds: readonly Kind[]
  /** Those of them that may be absent from the cluster. */
  readonly optionalKinds: readonly Kind[]
  /** Every declared resource, registered or not. */
  readonly declared: readonly AnyResource<C>[]
  /** Puts the finalizer on the custom resource, before a child with a hook is written. */
  hold(): Promise<void>
}

export interface AllOptions {
  /** Create no more than so many in one reconciliation; the others come later. Default 0: no limit. */
  readonly maxCreation?: number | undefined
  /** Leave the others alone once one has failed. Default false. */
  readonly stopOnError?: boolean | undefined
}

export interface DeletionOptions {
  /** What becomes of its dependents, as a workload's pods. Foreground: it stays until they are gone. Default Background. */
  readonly propagation?: Propagation | undefined
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
  deleteResource(entry: Entry<C>, options?: DeletionOptions): Promise<void>
  /** Deletes every child that has the custom resource as its owner, and registered ones without an owner. Answers what is still there, by name. */
  deleteAllResources(options?: DeletionOptions): Promise<string[]>
  /** Deletes every child that this operator has made for this custom resource and that is not registered now; none, if something failed. */
  pruneResources(): Promise<void>
  /** Runs the finalizer hook of every child that carries our finalizer, and lets it go. */
  releaseAllResources(): Promise<void>
  /** Takes our finalizer off every child, whatever its hook says. */
  letAllGo(): Promise<void>
  readiness(entry: Entry<C>): Readiness
  /** Children that are being deleted and held by a finalizer that nothing here handles. */
  held(): string[]
}

export function createCare<C extends object>(around: Surroundings<C>): Care<C> {
  const { cr, client, results, registry } = around
  const releasing = createReleasing(around)
  const making = createMaking(around, releasing.leave)
  const { isAbsent } = making
  const unreadable = new Map<Entry<C>, Readiness>()

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

  function readiness(entry: Entry<C>): Readiness {
    const { resource, peer, index } = entry
    if (isAbsent(entry) && !client.isRead(resource.kind))
      return { ready: false, reason: 'KindUnread', message: `${index} is left out, as its kind cannot be read` }
    if (isAbsent(entry)) return { ready: true, reason: 'KindAbsent', message: `${index} is left out` }
    if (entry.isUnwished) return { ready: true, reason: 'Deleted', message: `${index} is not wished` }
    if (!peer) return { ready: false, reason: 'Missing', message: `${index} is not there yet` }
    const whose = making.ownership(entry, peer)
    if (whose.is === 'left') return { ready: false, reason: 'Leaving', message: whose.note }
    const known = unreadable.get(entry)
    if (known) return known
    try {
      const said = resource.options.ready?.(peer, cr) ?? readinessOf(resource.kind, peer)
      if (typeof said !== 'boolean') return said
      return said
        ? { ready: true, reason: 'Ready', message: `${index} is ready` }
        : { ready: false, reason: 'NotReady', message: `${index} is not ready yet` }
    } catch (error) {
      results.add({ code: 'ReadinessFailed', on: index, error })
      const unknown = { ready: false, reason: 'ReadinessFailed', message: `${index} does not tell whether it is ready` }
      unreadable.set(entry, unknown)
      return unknown
    }
  }

  /** Why it cannot be created or changed yet. */
  function waitsFor({ after }: Entry<C>): string | undefined {
    for (const index of after) {
      if (results.operations.some(({ on, error }) => on === index && error !== undefined)) return `${index} has failed`
      const other = registry.get(index)
      const { ready, message } = other ? readiness(other) : { ready: true, message: '' }
      if (!ready) return message
    }
    return undefined
  }

  /** What is there is not changed, but let go if it is being deleted, and refused if it is somebody else's. */
  async function createMissing(entry: Entry<C>): Promise<void> {
    const { peer } = entry
    if (!peer) return making.create(entry)
    if (isBeingDeleted(peer)) return releasing.leave(entry, peer)
    if (making.isOurs(entry, peer)) results.add({ code: 'Unchanged', on: entry.index })
  }

  async function all(
    { maxCreation = 0, stopOnError = false }: AllOptions,
    work: (entry: Entry<C>) => Promise<void>,
  ): Promise<void> {
    let created = 0
    for (const entry of registry.all()) {
      await fetched(entry)
      const why = entry.peer && isBeingDeleted(entry.peer) ? undefined : waitsFor(entry)
      if (why !== undefined) {
        results.add({ code: 'Waiting', on: entry.index, note: why })
        continue
      }
      if (!entry.peer) {
        if (maxCreation > 0 && created >= maxCreation) {
          results.add({ code: 'CreateDelayed', on: entry.index, requeueAfter: delayedFor })
          continue
        }
        if (!isAbsent(entry)) created++
      }
      const isDone = await attempt(entry, entry.peer ? 'UpdateFailed' : 'CreateFailed', () => work(entry))
      if (!isDone && stopOnError) return
    }
  }

  function mutate(entry: Entry<C>): boolean {
    try {
      making.expectedFor(entry)
      results.add({ code: 'Mutated', on: entry.index })
      return true
    } catch (error) {
      results.add({ code: 'MutationFailed', on: entry.index, error })
      return false
    }
  }

  return {
    async fetchPeers() {
      for (const entry of registry.all()) await fetched(entry)
    },
    async createResource(entry) {
      await fetched(entry)
      await attempt(entry, 'CreateFailed', () => createMissing(entry))
    },
    createAllResources: (options = {}) => all(options, createMissing),
    mutateResource: entry => void mutate(entry),
    mutateAllResources({ stopOnError = false } = {}) {
      for (const entry of registry.all()) if (!mutate(entry) && stopOnError) return
    },
    async updateResource(entry) {
      await fetched(entry)
      await attempt(entry, entry.peer ? 'UpdateFailed' : 'CreateFailed', () => making.update(entry))
    },
    createOrUpdateAllResources: (options = {}) => all(options, making.update),
    async deleteResource(entry, { propagation = 'Background' } = {}) {
      await fetched(entry)
      entry.isUnwished = true
      const { peer } = entry
      if (!peer) return
      if (isBeingDeleted(peer)) return releasing.leave(entry, peer)
      await attempt(entry, 'DeleteFailed', async () => {
        const whose = making.ownership(entry, peer)
        if (whose.is !== 'ours') return results.add({ code: 'Unchanged', on: entry.index, note: whose.note })
        await client.delete(entry.resource.kind, peer, { propagation })
        results.add({ code: 'Deleted', on: entry.index })
      })
    },
    deleteAllResources({ propagation } = {}) {
      for (const entry of registry.all()) entry.isUnwished = true
      return releasing.deleteAll(propagation)
    },
    pruneResources: () => releasing.prune(),
    releaseAllResources: () => releasing.releaseAll(),
    letAllGo: () => releasing.letGo(),
    readiness,
    held: () => releasing.held(),
  }
}

/** An apply finds no place for it: not for want of its namespace, so of its kind. */
function isOfNoKind(error: unknown): boolean {
  return error instanceof NotFound && error.answer.details?.kind !== 'namespaces'
}
