/**
 * Namespaces: those that every cluster has are there, and what is deleted goes with all that is in it.
 */

import { isDeepStrictEqual } from 'node:util'
import type { Client } from '../../../controller/kube/client.ts'
import { AlreadyExists, NotFound } from '../../../controller/kube/errors.ts'
import type { Kind } from '../../../controller/kube/kind.ts'
import { Namespace } from '../../../controller/kube/kinds.ts'
import { timeOf } from '../../../shared/clock.ts'
import { messageOf } from '../../../shared/errors.ts'
import type { Everything } from '../common/everything.ts'
import { named, type Surroundings } from '../common/surroundings.ts'
import { conditionsOf, type Failure, type Remainder } from './decide.ts'

const always = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/** What is not watched, and goes with its namespace all the same. */
const events: Kind = { group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true }

const status = { subresource: 'status' } as const

/** Where the news of something's end were missed. */
const safetyNet = 5000

export function installNamespaces({ manager, clock }: Surroundings, everything: Everything, read: Promise<void>): void {
  const { client } = manager
  const namespaces = manager.cache.informer(Namespace)
  const controller = manager.controller(Namespace, named('namespace-controller'))
  everything.subscribe(({ type, object }) => {
    const name = object.metadata.namespace
    if (type !== 'removed' || name === undefined) return
    if (namespaces.get({ name })?.metadata.deletionTimestamp) controller.trigger({ name }, 'something in it is gone')
  })
  controller.reconcile(async ({ object: namespace, signal }) => {
    if (!namespace.metadata.deletionTimestamp || !namespace.spec?.finalizers?.includes('kubernetes')) return
    await read
    const { name, uid } = namespace.metadata
    const kinds = [...everything.kinds().filter(kind => kind.namespaced), events]
    const results = await Promise.all(kinds.map(kind => empty(client, kind, name, signal)))
    const remainders = results.flatMap(one => ('count' in one ? one : []))
    const failures = results.flatMap(one => ('message' in one ? one : []))
    const conditions = conditionsOf(namespace.status?.conditions, remainders, failures, timeOf(clock.now()))
    const isEmpty = failures.length === 0 && remainders.every(({ count }) => count === 0)
    try {
      const isSaid = isDeepStrictEqual(conditions, namespace.status?.conditions)
      const merge = { metadata: { uid }, status: { conditions } }
      const current = isSaid ? namespace : await client.patch(Namespace, { name }, { merge }, { ...status, signal })
      if (!isEmpty) return { requeueAfter: safetyNet }
      const finalizers = (current.spec?.finalizers ?? []).filter(one => one !== 'kubernetes')
      const { resourceVersion } = current.metadata
      const emptied = { metadata: { name, uid, resourceVersion }, spec: { finalizers } }
      await client.update(Namespace, emptied, { subresource: 'finalize', signal })
    } catch (error) {
      if (!(error instanceof NotFound)) throw error
    }
    return undefined
  })
  manager.task(async signal => {
    for (const name of always) {
      if (await client.find(Namespace, { name }, { signal })) continue
      await client.create(Namespace, { metadata: { name } }, { signal }).catch(error => {
        if (!(error instanceof AlreadyExists)) throw error
      })
    }
  })
}

/** Asks for everything of a kind to go; answers what is left, or why that failed. */
async function empty(client: Client, kind: Kind, namespace: string, signal: AbortSignal): Promise<Remainder | Failure> {
  // As the real one says it: with the dot, also where there is no group.
  const resource = `${kind.plural}.${kind.group}`
  try {
    const there = await client.list(kind, { namespace, signal })
    if (there.some(({ metadata }) => !metadata.deletionTimestamp))
      await client.deleteCollection(kind, { namespace, propagation: 'Background', signal })
    const left = there.length > 0 ? await client.list(kind, { namespace, signal }) : there
    return { resource, count: left.length, finalizers: left.flatMap(({ metadata }) => metadata.finalizers ?? []) }
  } catch (error) {
    // Its CRD has gone meanwhile, and all its objects.
    if (error instanceof NotFound) return { resource, count: 0, finalizers: [] }
    return { resource, message: messageOf(error) }
  }
}
