/**
 * Creating and updating one child.
 *
 * Guarantees: nothing is written that is there already; what is created was not there, so that somebody else's object is never taken over unasked, whatever the cache
 * shows and however late it is made; a child that is being deleted is not written; a child with a finalizer hook is written only once the custom resource is held;
 * what is recreated goes only if the server would accept what comes after it.
 */
import { ShipmateError } from '../../shared/errors.ts'
import { AlreadyExists, BadRequest, Conflict, Forbidden, Invalid, type KubeError } from '../kube/errors.ts'
import { type Draft, kindKey, type Snapshot } from '../kube/kind.ts'
import { formerOwners } from '../kube/takeover.ts'
import { TerminalError } from '../runtime/index.ts'
import type { Surroundings } from './care.ts'
import { type Expected, expectedOf } from './expected.ts'
import { childFinalizerOf, holdsOf, isBeingDeleted } from './finalizers.ts'
import { hashAnnotation, partsOf } from './hash.ts'
import { carries, immutableFields } from './immutable.ts'
import { controllerOf, makerText, type Ownership, ownershipOf } from './ownership.ts'
import type { Entry } from './registry.ts'

/** How soon those that were delayed come. */
export const delayedFor = 1000

export interface Making<C extends object> {
  /** Of an optional kind that the cluster does not serve. */
  isAbsent(entry: Entry<C>): boolean
  expectedFor(entry: Entry<C>): Expected
  /** Whose the peer is. */
  ownership(entry: Entry<C>, peer: Snapshot): Ownership
  /** That it is ours. False where that is waited for; throws where it is somebody else's. */
  isOurs(entry: Entry<C>, peer: Snapshot): boolean
  create(entry: Entry<C>): Promise<void>
  /** Creates it where it is not there. */
  update(entry: Entry<C>): Promise<void>
}

/** @param leave what to do about a peer that is being deleted */
export function createMaking<C extends object>(
  around: Surroundings<C>,
  leave: (entry: Entry<C>, peer: Snapshot) => Promise<void>,
): Making<C> {
  const { cr, client, log, results, childFinalizer, maker } = around

  function isAbsent({ resource }: Entry<C>): boolean {
    return resource.options.optional === true && !client.isServed(resource.kind)
  }

  function expectedFor(entry: Entry<C>): Expected {
    entry.expected ??= expectedOf(entry.resource, cr, { childFinalizer, maker: makerText(maker) })
    return entry.expected
  }

  function ownership(entry: Entry<C>, peer: Snapshot): Ownership {
    const { adopt = false } = entry.resource.options
    return ownershipOf(entry.index, peer, { cr: cr as Snapshot, maker, managers: client.fieldManagers, adopt })
  }

  function isOurs(entry: Entry<C>, peer: Snapshot): boolean {
    const whose = ownership(entry, peer)
    if (whose.is === 'foreign') throw new TerminalError(whose.note)
    if (whose.is === 'left')
      results.add({ code: 'Waiting', on: entry.index, note: whose.note, requeueAfter: 10 * delayedFor })
    return whose.is === 'ours'
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

  async function create(entry: Entry<C>): Promise<void> {
    if (isAbsent(entry)) return results.add({ code: 'Absent', on: entry.index })
    const { kind, options } = entry.resource
    refuseWhileDeleting(entry)
    entry.isUnwished = false
    const { object, requeueAfter } = expectedFor(entry)
    if (options.finalizer) await around.hold()
    try {
      entry.peer = await client.apply(kind, object, {
        ...ownerOf(entry),
        isNew: true,
        force: false,
        fieldValidation: 'Strict',
      })
    } catch (error) {
      if (!(error instanceof Conflict || error instanceof AlreadyExists)) throw error
      // The cache may be late, or filtered: what it does not show may be there, and somebody else's.
      entry.peer = (await client.live.find(kind, entry.ref, { signal: around.signal })) as Snapshot | undefined
      if (entry.peer) return update(entry)
      throw new ShipmateError('Conflict', error.message, 'later', { cause: error })
    }
    results.add({ code: 'Created', on: entry.index, requeueAfter })
  }

  async function update(entry: Entry<C>): Promise<void> {
    const { peer, resource } = entry
    if (!peer) return create(entry)
    if (isBeingDeleted(peer)) return leave(entry, peer)
    refuseWhileDeleting(entry)
    if (!isOurs(entry, peer)) return
    entry.isUnwished = false
    if (!resource.isMutable) return results.add({ code: 'Unchanged', on: entry.index })
    const { object, hash, parts, requeueAfter } = expectedFor(entry)
    const { kind, options } = resource
    if (options.finalizer) await around.hold()
    const isLastWish = peer.metadata.annotations?.[hashAnnotation] === hash
    const isAll = parts.includes('all')
    if (!isAll && isLastWish && isTied(entry, peer) && carries(partsOf(object, parts).object, peer))
      return results.add({ code: 'Unchanged', on: entry.index, requeueAfter })
    try {
      entry.peer = await client.apply(kind, object, {
        ...ownerOf(entry),
        // That one and no other: where the cache is late, somebody else's may have its name by now.
        uid: peer.metadata.uid,
        isLastWish: isAll && isLastWish,
        fieldValidation: 'Strict',
      })
    } catch (error) {
      const fields = error instanceof Invalid ? immutableFields(error, object, peer) : []
      if (fields.length === 0) throw error
      return recreate(entry, peer, fields, error)
    }
    const changed = entry.peer?.metadata.resourceVersion !== peer.metadata.resourceVersion
    results.add({ code: changed ? 'Updated' : 'Unchanged', on: entry.index, requeueAfter })
  }

  /** It has our owner reference and our finalizer if and only if they are wished, and nothing of a former name's. */
  function isTied({ resource: { options } }: Entry<C>, peer: Snapshot): boolean {
    const isOwned = controllerOf(peer)?.uid === cr.metadata.uid
    const holds = options.finalizer ? childFinalizerOf(childFinalizer, options.id) : ''
    return (
      isOwned === (options.owner !== false) &&
      holdsOf(peer, childFinalizer).join() === holds &&
      formerOwners(peer, client.fieldManagers.slice(1)).length === 0
    )
  }

  async function recreate(entry: Entry<C>, peer: Snapshot, fields: string[], cause: unknown): Promise<void> {
    const { kind, options } = entry.resource
    const named = `${fields.join(', ')} of ${entry.index} cannot be changed once it is there`
    if (!options.recreate)
      throw new TerminalError(`${named}; \`recreate: true\` in its declaration would delete it and create it anew`, {
        cause,
      })
    const refusal = await refusalOf(entry, peer)
    if (refusal)
      throw new TerminalError(`${named}, and it stays, as a new one would be refused: ${refusal.message}`, {
        cause: refusal,
      })
    log.info({ fields, kind: kindKey(kind) }, `${named}: it is deleted, to be created anew`)
    await client.delete(kind, peer, { propagation: options.recreate === 'Orphan' ? 'Orphan' : 'Background' })
    // Whatever the old one had reached, the new one has not.
    entry.peer = undefined
    results.add({ code: 'Recreated', on: entry.index, note: fields.join(', '), requeueAfter: delayedFor })
  }

  /** Why the server would not take it as a new object; undefined if it would, but for the old one that is in its place. */
  async function refusalOf(entry: Entry<C>, old: Snapshot): Promise<KubeError | undefined> {
    const { object } = expectedFor(entry)
    try {
      await client.create(entry.resource.kind, object as Draft, {
        ...ownerOf(entry),
        dryRun: true,
        fieldValidation: 'Strict',
      })
    } catch (error) {
      if (error instanceof AlreadyExists || (error instanceof Invalid && isTakenBy(error, old))) return undefined
      if (error instanceof Invalid || error instanceof BadRequest || error instanceof Forbidden) return error
      throw error
    }
    return undefined
  }

  return { isAbsent, expectedFor, ownership, isOurs, create, update }
}

/** A node port, or an address, that the old object has is free once that is gone. */
function isTakenBy({ causes }: Invalid, old: Snapshot): boolean {
  const has = new Set(JSON.stringify(old).match(/[^"{}[\],:\s]+/g))
  const allocated = /^Invalid value: "?([^"\s]+?)"?: .*already allocated/
  return causes.length > 0 && causes.every(({ message = '' }) => has.has(allocated.exec(message)?.[1] ?? ''))
}
