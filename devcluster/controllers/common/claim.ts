/**
 * Whose objects are whose: what a selector selects is adopted when nobody controls it, and what it no longer selects is released.
 *
 * Guarantee: nothing that another controller owns is touched, and an owner that is being deleted adopts nothing.
 */
import type { CachedClient } from '../../../controller/kube/cached.ts'
import { controllerReference } from '../../../controller/kube/cached.ts'
import { Conflict, Invalid, NotFound } from '../../../controller/kube/errors.ts'
import type { Kind, Snapshot } from '../../../controller/kube/kind.ts'

export interface Claimed<T extends object> {
  readonly own: Snapshot<T>[]
  readonly adopt: Snapshot<T>[]
  readonly release: Snapshot<T>[]
}

/** Pure: of all candidates in the owner's namespace. */
export function claim<T extends object>(
  owner: Snapshot,
  candidates: readonly Snapshot<T>[],
  isSelected: (object: Snapshot<T>) => boolean,
): Claimed<T> {
  const claimed: Claimed<T> = { own: [], adopt: [], release: [] }
  const isLeaving = owner.metadata.deletionTimestamp !== undefined
  for (const object of candidates) {
    const { metadata } = object as Snapshot
    const controller = metadata.ownerReferences?.find(reference => reference.controller)
    if (controller && controller.uid !== owner.metadata.uid) continue
    if (controller) {
      if (isSelected(object)) claimed.own.push(object)
      else if (!isLeaving) claimed.release.push(object)
    } else if (isSelected(object) && !isLeaving && metadata.deletionTimestamp === undefined) claimed.adopt.push(object)
  }
  return claimed
}

/** Writes what was decided; answers what is owned then. */
export async function carryOutClaim<T extends object>(
  client: CachedClient,
  kind: Kind<T>,
  owner: Snapshot,
  claimed: Claimed<T>,
): Promise<Snapshot<T>[]> {
  const adopted: Snapshot<T>[] = []
  for (const object of claimed.adopt) {
    const reference = controllerReference(owner)
    const ownerReferences = [...(object.metadata.ownerReferences ?? []), reference]
    const done = await rewrite(client, kind, object, ownerReferences)
    if (done) adopted.push(done)
  }
  for (const object of claimed.release) {
    const references = object.metadata.ownerReferences ?? []
    const others = references.filter(reference => reference.uid !== owner.metadata.uid)
    await rewrite(client, kind, object, others)
  }
  return [...claimed.own, ...adopted]
}

/** Undefined where it is gone, or somebody else was faster: the next look decides. */
async function rewrite<T extends object>(
  client: CachedClient,
  kind: Kind<T>,
  object: Snapshot<T>,
  ownerReferences: readonly object[],
): Promise<Snapshot<T> | undefined> {
  const { uid, resourceVersion } = object.metadata
  try {
    return await client.patch(kind, object.metadata, { merge: { metadata: { uid, resourceVersion, ownerReferences } } })
  } catch (error) {
    if (error instanceof NotFound || error instanceof Conflict || error instanceof Invalid) return undefined
    throw error
  }
}
