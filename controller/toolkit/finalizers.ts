/**
 * Finalizers: written and taken away one by one, never those of others.
 *
 * A child carries the name of the operator's finalizer for children and, behind a dot, the `id` of what declares its hook: so whatever becomes of its
 * name and annotations, it is known whose hook is to be run.
 *
 * Guarantee: a write is made against the version that was looked at; if somebody was faster it is a Conflict, and decided anew.
 */
import { ShipmateError } from '../../shared/errors.ts'
import type { CachedClient } from '../kube/cached.ts'
import { type Kind, kindKey, type Snapshot } from '../kube/kind.ts'
import type { AnyResource } from './resource.ts'

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

/** The finalizer of children that a declaration makes. @param base that of the operator's children */
export function childFinalizerOf(base: string, id: string | undefined): string {
  return id === undefined ? base : `${base}.${id}`
}

/** Finalizers of an operator's children that an object carries. */
export function holdsOf({ metadata }: Snapshot, base: string): string[] {
  return (metadata.finalizers ?? []).filter(one => one === base || one.startsWith(`${base}.`))
}

export async function removeFinalizer<T extends object>(
  client: CachedClient,
  kind: Kind<T>,
  object: Snapshot<T>,
  ...finalizers: readonly string[]
): Promise<void> {
  const left = (object.metadata.finalizers ?? []).filter(one => !finalizers.includes(one))
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

/** A child tells by the id of its declaration whose hook is to be run. */
export function refuseAmbiguous<C extends object>({ kind: of }: Kind<C>, declared: readonly AnyResource<C>[]): void {
  const seen = new Set<string>()
  for (const { kind, options } of declared) {
    const { id, finalizer } = options
    if (id !== undefined && !/^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$/.test(id))
      throw new ShipmateError(
        'Misuse',
        `the id ${JSON.stringify(id)} of a ${kind.kind} of ${of} has to be lower-case letters, digits and -, 32 at most`,
        'never',
      )
    if (!finalizer) continue
    const key = `${kindKey(kind)} ${id ?? ''}`
    if (seen.has(key))
      throw new ShipmateError(
        'Misuse',
        `two declarations of a ${kind.kind} of ${of} have a finalizer${id === undefined ? '' : ` and the id ${id}`}: say another \`id\` in each, so that a child finds its own`,
        'never',
      )
    seen.add(key)
  }
}
