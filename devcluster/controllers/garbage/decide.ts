/**
 * What becomes of one object, given its owners and dependents. Pure.
 *
 * Guarantee: an object goes only when each of its owners is known to be gone, or waits for it to go; it is never deleted on a guess.
 */
import type { OwnerReference } from '../../../controller/kube/kind.ts'
import { foreground, isForeground, isOrphaning, type Node, orphan } from './graph.ts'

export type OwnerState =
  /** It exists. */
  | 'solid'
  /** It exists, and waits in the foreground for its dependents to go. */
  | 'waiting'
  /** There is none of that uid. */
  | 'gone'
  /** It cannot be told, as its kind is not served. */
  | 'unknown'

export type Step =
  | { readonly do: 'nothing' }
  /** An owner that orphans: its dependents lose their reference to it, then it its finalizer. */
  | { readonly do: 'orphan'; readonly dependents: readonly Node[] }
  | { readonly do: 'release'; readonly finalizer: string }
  /** An owner that waits: these are to be looked at. */
  | { readonly do: 'awaitDependents'; readonly dependents: readonly Node[] }
  | { readonly do: 'dropOwners'; readonly keep: readonly OwnerReference[] }
  | { readonly do: 'delete'; readonly propagation: 'Background' | 'Foreground' | 'Orphan' }

export function decideGarbage(
  node: Node,
  dependents: readonly Node[],
  stateOf: (owner: OwnerReference) => OwnerState,
): Step {
  if (isOrphaning(node)) return { do: 'orphan', dependents }
  if (isForeground(node)) {
    const blocking = dependents.filter(({ owners }) =>
      owners.some(one => one.uid === node.uid && one.blockOwnerDeletion),
    )
    if (blocking.length === 0) return { do: 'release', finalizer: foreground }
    return { do: 'awaitDependents', dependents: dependents.filter(({ isDeleting }) => !isDeleting) }
  }
  if (node.isDeleting || node.owners.length === 0) return { do: 'nothing' }
  const states = node.owners.map(owner => ({ owner, state: stateOf(owner) }))
  if (states.some(({ state }) => state === 'unknown')) return { do: 'nothing' }
  const solid = states.filter(({ state }) => state === 'solid')
  if (solid.length === states.length) return { do: 'nothing' }
  if (solid.length > 0) return { do: 'dropOwners', keep: solid.map(({ owner }) => owner) }
  if (node.finalizers.includes(orphan)) return { do: 'delete', propagation: 'Orphan' }
  const isAwaited = states.some(({ state }) => state === 'waiting')
  const isForegroundToo = node.finalizers.includes(foreground) || (isAwaited && dependents.length > 0)
  return { do: 'delete', propagation: isForegroundToo ? 'Foreground' : 'Background' }
}
