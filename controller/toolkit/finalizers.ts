/**
 * Finalizers: written and taken away one by one, never those of others.
 *
 * Guarantee: a write is made against the version that was looked at; if somebody was faster it is a Conflict, and decided anew.
 */
import type { CachedClient } from '../kube/cached.ts'
import type { Kind, Snapshot } from '../kube/kind.ts'

export function hasFinalizer(object: Snapshot, finalizer: string): boolean {
  return object.metadata.finalizers?.includes(finalizer) ?? false
}

export function isBeingDeleted(object: Snapshot): boolean {
  return object.metadata.deletionTimestamp !== undefined
}

export async function addFinalizer<T extends object>(
  client: CachedClient,
  kind: Kind<T>,
  object: Snapshot<T>,
  finalizer: string,
): Promise<Snapshot<T>> {
  if (hasFinalizer(object, finalizer)) return object
  return write(client, kind, object, [...(object.metadata.finalizers ?? []), finalizer])
}

export async function removeFinalizer<T extends object>(
  client: CachedClient,
  kind: Kind<T>,
  object: Snapshot<T>,
  finalizer: string,
): Promise<void> {
  const left = (object.metadata.finalizers ?? []).filter(one => one !== finalizer)
  await write(client, kind, object, left)
}

function write<T extends object>(
  client: CachedClient,
  kind: Kind<T>,
  { metadata }: Snapshot<T>,
  finalizers: readonly string[],
): Promise<Snapshot<T>> {
  const { uid, resourceVersion } = metadata
  return client.patch(kind, metadata, { merge: { metadata: { uid, resourceVersion, finalizers } } })
}
