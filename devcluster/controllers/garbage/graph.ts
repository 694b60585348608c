/**
 * Who owns whom, by uid. An owner that was never seen is known by its dependents' word alone. Pure, but for its own memory.
 */
import type { Kind, OwnerReference, Snapshot } from '../../../controller/kube/kind.ts'

export interface Node {
  readonly uid: string
  readonly kind: Kind
  readonly name: string
  readonly namespace: string | undefined
  readonly resourceVersion: string
  readonly owners: readonly OwnerReference[]
  readonly finalizers: readonly string[]
  readonly isDeleting: boolean
}

export const foreground = 'foregroundDeletion'
export const orphan = 'orphan'

export interface Graph {
  get(uid: string): Node | undefined
  /** Those that name this uid as an owner. */
  dependents(uid: string): Node[]
  /** Answers the uids that are worth a look now. */
  put(kind: Kind, object: Snapshot): string[]
  remove(uid: string): string[]
}

export const isForeground = (node: Node) => node.isDeleting && node.finalizers.includes(foreground)
export const isOrphaning = (node: Node) => node.isDeleting && node.finalizers.includes(orphan)

export function createGraph(): Graph {
  const nodes = new Map<string, Node>()
  const dependents = new Map<string, Set<string>>()

  function link(node: Node): void {
    for (const { uid } of node.owners) {
      const set = dependents.get(uid) ?? new Set()
      dependents.set(uid, set.add(node.uid))
    }
  }
  function unlink(node: Node): void {
    for (const { uid } of node.owners) {
      const set = dependents.get(uid)
      set?.delete(node.uid)
      if (set?.size === 0) dependents.delete(uid)
    }
  }
  const waiting = (owners: readonly OwnerReference[]) =>
    owners
      .map(({ uid }) => uid)
      .filter(uid => {
        const owner = nodes.get(uid)
        return owner !== undefined && isForeground(owner)
      })

  /** It is there, and where it can own the node. */
  const isAtHand = (node: Node, { uid }: OwnerReference) => {
    const owner = nodes.get(uid)
    return owner !== undefined && (owner.namespace === undefined || owner.namespace === node.namespace)
  }

  return {
    get: uid => nodes.get(uid),
    dependents: uid => [...(dependents.get(uid) ?? [])].flatMap(one => nodes.get(one) ?? []),
    put(kind, object) {
      const node = nodeOf(kind, object)
      const before = nodes.get(node.uid)
      if (before) unlink(before)
      nodes.set(node.uid, node)
      link(node)
      const isOfInterest =
        isForeground(node) ||
        isOrphaning(node) ||
        node.owners.some(owner => !isAtHand(node, owner)) ||
        waiting(node.owners).length > 0
      return [...(isOfInterest ? [node.uid] : []), ...waiting(before?.owners ?? []), ...waiting(node.owners)]
    },
    remove(uid) {
      const node = nodes.get(uid)
      if (!node) return []
      nodes.delete(uid)
      unlink(node)
      return [...(dependents.get(uid) ?? []), ...waiting(node.owners)]
    },
  }
}

function nodeOf(kind: Kind, { metadata }: Snapshot): Node {
  return {
    uid: metadata.uid,
    kind,
    name: metadata.name,
    namespace: metadata.namespace,
    resourceVersion: metadata.resourceVersion,
    owners: (metadata.ownerReferences ?? []) as OwnerReference[],
    finalizers: metadata.finalizers ?? [],
    isDeleting: metadata.deletionTimestamp !== undefined,
  }
}
