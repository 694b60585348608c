/**
 * The garbage collector: dependents go with their owners, in the background or the foreground, or are orphaned.
 */

import { Conflict, NotFound } from '../../../controller/kube/errors.ts'
import type { OwnerReference } from '../../../controller/kube/kind.ts'
import { Queue } from '../../../controller/runtime/queue.ts'
import { messageOf } from '../../../shared/errors.ts'
import type { Everything } from '../common/everything.ts'
import type { Surroundings } from '../common/surroundings.ts'
import { decideGarbage, type OwnerState } from './decide.ts'
import { createGraph, isForeground, type Node, orphan } from './graph.ts'

/** Owners that were asked for and are gone: a uid never comes back. */
const longestMemory = 10_000
const workers = 4

export function installGarbageCollector(
  { manager, clock }: Surroundings,
  everything: Everything,
  read: Promise<void>,
): void {
  const { client, log } = manager
  const graph = createGraph()
  const queue = new Queue({ backoff: { first: 5, longest: 5000 }, clock })
  const gone = new Set<string>()
  const look = (uids: readonly string[]) => {
    for (const uid of uids) queue.add(uid, { reason: 'its owners or dependents changed' })
  }
  everything.subscribe(({ type, object }, kind) =>
    look(type === 'removed' ? graph.remove(object.metadata.uid) : graph.put(kind, object)),
  )

  /** As far as can be told from what is watched; undefined where the server is to be asked. */
  function known(node: Node, { uid }: OwnerReference): OwnerState | undefined {
    const owner = graph.get(uid)
    if (owner) {
      const isInReach = owner.namespace === undefined || owner.namespace === node.namespace
      return isInReach ? (isForeground(owner) ? 'waiting' : 'solid') : 'gone'
    }
    return gone.has(uid) ? 'gone' : undefined
  }

  async function ask(node: Node, owner: OwnerReference, signal: AbortSignal): Promise<OwnerState> {
    const kind = everything.kindOf(owner.apiVersion, owner.kind)
    // A cluster-wide object cannot belong to one of a namespace: it is left alone.
    if (!kind || (kind.namespaced && node.namespace === undefined)) return 'unknown'
    const found = await client.find(kind, { name: owner.name, namespace: node.namespace }, { signal })
    if (found?.metadata.uid === owner.uid) return 'solid'
    gone.add(owner.uid)
    if (gone.size > longestMemory) for (const oldest of gone) return gone.delete(oldest) ? 'gone' : 'gone'
    return 'gone'
  }

  async function work(uid: string, signal: AbortSignal): Promise<void> {
    const node = graph.get(uid)
    if (!node) return
    const states = new Map<string, OwnerState>()
    for (const owner of node.owners) states.set(owner.uid, known(node, owner) ?? (await ask(node, owner, signal)))
    const step = decideGarbage(node, graph.dependents(uid), ({ uid }) => states.get(uid) ?? 'unknown')
    switch (step.do) {
      case 'nothing':
        return
      case 'awaitDependents':
        return look(step.dependents.map(one => one.uid))
      case 'orphan':
        for (const dependent of step.dependents)
          await writeMeta(dependent, { ownerReferences: dependent.owners.filter(owner => owner.uid !== uid) }, signal)
        return writeFinalizers(node, orphan, signal)
      case 'release':
        return writeFinalizers(node, step.finalizer, signal)
      case 'dropOwners':
        return writeMeta(node, { ownerReferences: step.keep }, signal)
      case 'delete': {
        const { resourceVersion } = node
        const preconditions = { uid, resourceVersion }
        await client.delete(node.kind, node, { preconditions, propagation: step.propagation, signal })
      }
    }
  }

  async function writeFinalizers(node: Node, finalizer: string, signal: AbortSignal): Promise<void> {
    await writeMeta(node, { finalizers: node.finalizers.filter(one => one !== finalizer) }, signal)
  }

  async function writeMeta(node: Node, metadata: object, signal: AbortSignal): Promise<void> {
    const { uid, resourceVersion } = node
    await client
      .patch(node.kind, node, { merge: { metadata: { uid, resourceVersion, ...metadata } } }, { signal })
      .catch(ignore(NotFound))
  }

  manager.task(async signal => {
    const stop = () => queue.close()
    signal.addEventListener('abort', stop, { once: true })
    const aborted = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
    await Promise.race([read, aborted])
    if (signal.aborted) return
    const one = async () => {
      for (let item = await queue.take(); item; item = await queue.take()) {
        try {
          await work(item.key, signal)
          queue.done(item.key)
        } catch (error) {
          if (signal.aborted) return
          // Outdated: the news of what it is now are on their way, and may have come already.
          if (error instanceof NotFound) queue.done(item.key)
          else queue.retry(item.key, messageOf(error))
          if (!(error instanceof NotFound || error instanceof Conflict))
            log.logger.warn({ err: error }, `garbage collection: ${messageOf(error)}`)
        }
      }
    }
    await Promise.all(Array.from({ length: workers }, one))
  })
}

function ignore(kind: new (...args: never[]) => Error) {
  return (error: unknown) => {
    if (!(error instanceof kind)) throw error
  }
}
