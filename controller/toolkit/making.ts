/**
 * Creating and updating one child.
 *
 * Guarantees: nothing is written that is there already; somebody else's object is never taken over unasked, also where the cache does not show it; a child that is
 * being deleted is not written; a child with a finalizer hook is written only once the custom resource is held.
 */
import { ShipmateError } from '../../shared/errors.ts'
import { Invalid } from '../kube/errors.ts'
import { kindKey, type Snapshot } from '../kube/kind.ts'
import { TerminalError } from '../runtime/index.ts'
import type { Surroundings } from './care.ts'
import { type Expected, expectedOf } from './expected.ts'
import { hasFinalizer, isBeingDeleted } from './finalizers.ts'
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
    return ownershipOf(entry.index, peer, { cr: cr as Snapshot, maker, manager: client.live.fieldManager, adopt })
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
    // The cache may be late, or filtered: what it does not show may be there, and somebody else's.
    const there = await client.live.find(kind, entry.ref, { signal: around.signal })
    if (there) {
      entry.peer = there as Snapshot
      return update(entry)
    }
    if (options.finalizer) await around.hold()
    // Not by force: somebody may make one meanwhile.
    entry.peer = await client.apply(kind, object, { ...ownerOf(entry), force: false, fieldValidation: 'Strict' })
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

  /** It has our owner reference and our finalizer if and only if they are wished. */
  function isTied({ resource: { options } }: Entry<C>, peer: Snapshot): boolean {
    const isOwned = controllerOf(peer)?.uid === cr.metadata.uid
    return (
      isOwned === (options.owner !== false) && hasFinalizer(peer, childFinalizer) === (options.finalizer !== undefined)
    )
  }

  async function recreate(entry: Entry<C>, peer: Snapshot, fields: string[], cause: unknown): Promise<void> {
    const { kind, options } = entry.resource
    const named = `${fields.join(', ')} of ${entry.index} cannot be changed once it is there`
    if (!options.recreate)
      throw new TerminalError(`${named}; \`recreate: true\` in its declaration would delete it and create it anew`, {
        cause,
      })
    log.warn({ fields, kind: kindKey(kind) }, `${named}: it is deleted, to be created anew`)
    await client.delete(kind, peer, { propagation: options.recreate === 'Orphan' ? 'Orphan' : 'Background' })
    // Whatever the old one had reached, the new one has not.
    entry.peer = undefined
    results.add({ code: 'Recreated', on: entry.index, note: fields.join(', '), requeueAfter: delayedFor })
  }

  return { isAbsent, expectedFor, ownership, isOurs, create, update }
}
