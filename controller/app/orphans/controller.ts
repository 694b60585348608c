/**
 * Looks after Operations that no app looks after (decide.ts). It never begins nor cancels one.
 *
 * Guarantees: before anything is let go for good, the server itself is asked whether the app is there; what is deleted or let go is the very object, in the very
 * version, that was decided upon. Nothing is polled: it is woken by apps that come and go, and when a time is over.
 */

import { timeOf } from '../../../shared/clock.ts'
import type { CachedClient } from '../../kube/cached.ts'
import { NotFound } from '../../kube/errors.ts'
import type { Snapshot } from '../../kube/kind.ts'
import { Namespace } from '../../kube/kinds.ts'
import { type Manager, predicates, type Result, type Context as RuntimeContext } from '../../runtime/index.ts'
import { type Condition, withConditions } from '../../toolkit/conditions.ts'
import type { PolicyRule } from '../../toolkit/index.ts'
import { Operation, OperationSchedule, StatefulApp } from '../kinds.ts'
import { scheduleFinalizer } from '../schedule/child.ts'
import { type Around, decideOrphan, isOurs, unknownApp } from './decide.ts'

type Op = Snapshot<Operation>

/** What it does on the cluster, for its Role. */
export const orphanPermissions: readonly PolicyRule[] = [
  { apiGroups: [Operation.group], resources: ['operations'], verbs: ['get', 'list', 'watch', 'patch', 'delete'] },
  { apiGroups: [Operation.group], resources: ['operations/status'], verbs: ['patch'] },
  { apiGroups: [Operation.group], resources: ['statefulapps'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [Operation.group], resources: ['operationschedules'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
]

export function addOrphans(manager: Manager): void {
  const operations = manager.cache.informer(Operation)
  const naming = ({ metadata: { name, namespace } }: Snapshot) =>
    operations.list({ namespace }).flatMap(({ metadata, spec }) => (spec.app === name ? [metadata] : []))
  const madeBy = ({ metadata: { uid, namespace } }: Snapshot) =>
    operations.list({ namespace }).flatMap(one => (scheduleOf(one)?.uid === uid ? [one.metadata] : []))
  const comesOrGoes = predicates.any(({ type }) => type === 'added', predicates.deletion)
  manager
    .controller(Operation, { name: 'orphans' })
    .watches(StatefulApp, naming, { when: comesOrGoes })
    .watches(OperationSchedule, madeBy, { when: predicates.deletion })
    .reconcile(context => lookAfter(context, manager.clock.now()))
}

async function lookAfter({ object, client, event }: RuntimeContext<Operation>, now: number): Promise<Result> {
  const first = decideOrphan(object, await aroundOf(client, object, now, client))
  // What is let go does not come back, and a person who makes an app and its Operation at once should not be told that there is none: the cache may be behind.
  const isNews = first.stalled !== 'keep' && first.stalled && !object.status?.conditions?.some(isOurs)
  const decision =
    first.release.length > 0 || isNews ? decideOrphan(object, await aroundOf(client, object, now, client.live)) : first
  let operation: Op = object
  if (decision.stalled !== 'keep') {
    const before = operation.status?.conditions ?? []
    operation = await tell(client, operation, decision.stalled, now)
    if (decision.stalled && !before.some(isOurs)) event('Warning', unknownApp, decision.stalled.message)
  }
  if (decision.release.length > 0) {
    const isGone = await release(client, operation, decision.release)
    return isGone ? undefined : { requeueAfter: 0 }
  }
  if (decision.isOver) {
    const { uid, resourceVersion } = operation.metadata
    await client.delete(Operation, operation, {
      preconditions: { uid, resourceVersion },
    })
    return undefined
  }
  return decision.until === undefined ? undefined : { requeueAfter: decision.until - now }
}

type Reader = Pick<CachedClient, 'find'>

async function aroundOf(
  client: CachedClient,
  operation: Op,
  now: number,
  reader: Reader | CachedClient['live'],
): Promise<Around> {
  const { namespace, deletionTimestamp, finalizers = [] } = operation.metadata
  const app = await reader.find(StatefulApp, { name: operation.spec.app, namespace })
  // All that is in a terminating namespace is being deleted.
  const asks = deletionTimestamp !== undefined && finalizers.length > 0
  const place = asks ? await client.find(Namespace, { name: namespace ?? '' }) : undefined
  const owner = scheduleOf(operation)
  const schedule =
    finalizers.includes(scheduleFinalizer) && owner
      ? await reader.find(OperationSchedule, { name: owner.name, namespace })
      : undefined
  return {
    now,
    app: app?.metadata.uid,
    apps: app ? [] : (await client.list(StatefulApp, { namespace })).map(({ metadata }) => metadata.name),
    isNamespaceTerminating: place?.status?.phase === 'Terminating',
    hasSchedule: owner !== undefined && schedule?.metadata.uid === owner.uid,
  }
}

function scheduleOf({ metadata }: Snapshot) {
  return metadata.ownerReferences?.find(one => one.controller && one.kind === OperationSchedule.kind)
}

/** Says that it is stalled, or takes that back; what others say stays. */
async function tell(
  client: CachedClient,
  operation: Op,
  stalled: { message: string } | undefined,
  now: number,
): Promise<Op> {
  const before = (operation.status?.conditions ?? []) as Condition[]
  const { generation, resourceVersion } = operation.metadata
  const others = before.filter(({ type }) => type !== 'Stalled')
  const words = stalled && { type: 'Stalled', status: 'True' as const, reason: unknownApp, message: stalled.message }
  const [told] = words ? withConditions(before.filter(isOurs), [words], { now: timeOf(now), generation }) : []
  const conditions = [...others, ...(told ? [told] : [])].sort((a, b) => (a.type < b.type ? -1 : 1))
  return client.status(Operation, operation, { conditions }, { resourceVersion })
}

/** Whether it is gone with that. */
async function release(client: CachedClient, operation: Op, finalizers: readonly string[]): Promise<boolean> {
  const { uid, resourceVersion, deletionTimestamp, finalizers: held = [] } = operation.metadata
  const left = held.filter(one => !finalizers.includes(one))
  try {
    await client.patch(Operation, operation.metadata, {
      merge: { metadata: { uid, resourceVersion, finalizers: left } },
    })
  } catch (error) {
    if (!(error instanceof NotFound)) throw error
  }
  return deletionTimestamp !== undefined && left.length === 0
}
