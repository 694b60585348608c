/**
 * From the cluster to a View.
 *
 * Guarantee: an Operation that the app's status names and that the cache does not have is looked for on the server itself: that it is not there is never concluded
 * from a cache.
 */
import type { CachedClient } from '../kube/cached.ts'
import { Forbidden } from '../kube/errors.ts'
import { CustomResourceDefinition, Namespace } from '../kube/kinds.ts'
import { wishLabel } from './decide/queue.ts'
import { isInProgress } from './decide/run.ts'
import { Lifecycle, Operation, StatefulApp } from './kinds.ts'
import { lifecycleView } from './lifecycle-view.ts'
import type { App, Op, PodView, RunRecord, View } from './view.ts'
import { decideClaim, gatherClaim } from './workload/claim.ts'
import { nodesOf, podsOf, readWorkload, type Sources, type Workload } from './workload/gather.ts'

/** The index of Operations by app. */
export const byApp = 'app'

export interface GatherOptions {
  readonly client: CachedClient
  readonly sources: Sources
  readonly now: number
  /** With what its sidecar has said. */
  seen(pod: PodView): PodView
}

export interface Gathered {
  readonly view: View
  readonly workload: Workload | undefined
}

export async function gather(app: App, { client, sources, now, seen }: GatherOptions): Promise<Gathered> {
  const { namespace, deletionTimestamp } = app.metadata
  const [lifecycle, operations, workload] = await Promise.all([
    client.find(Lifecycle, { namespace, name: app.spec.lifecycle }),
    operationsOf(app, client),
    readWorkload(client, app, sources),
  ])
  const claim = decideClaim(app, workload, await gatherClaim(client, app, workload))
  const pods = await podsOf(client, workload)
  const nodes = await nodesOf(client, [...pods.flatMap(({ node }) => node ?? []), ...openNodes(operations)])
  return {
    workload,
    view: {
      now,
      app,
      lifecycle: lifecycle && lifecycleView(lifecycle),
      // A claim that can be taken is none.
      workload: workload && { ...workload, claimedBy: claim.is === 'take' ? undefined : workload.claimedBy },
      pods: pods.map(seen),
      nodes,
      operations,
      isNamespaceTerminating: deletionTimestamp !== undefined && (await isTerminating(client, namespace ?? '')),
    },
  }
}

/** What tells whether an app that is being deleted may go. */
export async function gatherLetGo(
  { metadata: { namespace = '' }, spec }: App,
  client: CachedClient,
): Promise<Pick<View, 'lifecycle' | 'isNamespaceTerminating'> & { isUninstalled: boolean }> {
  const ref = { namespace, name: spec.lifecycle }
  const lifecycle = (await client.find(Lifecycle, ref)) ?? (await client.live.find(Lifecycle, ref))
  return {
    lifecycle: lifecycle && lifecycleView(lifecycle as Parameters<typeof lifecycleView>[0]),
    isNamespaceTerminating: await isTerminating(client, namespace),
    isUninstalled: await isUninstalled(client),
  }
}

/** Whether the CRD itself is being deleted, and all apps with it. */
async function isUninstalled(client: CachedClient): Promise<boolean> {
  try {
    const crd = await client.live.find(CustomResourceDefinition, { name: StatefulApp.crd().metadata.name })
    return crd?.metadata.deletionTimestamp !== undefined
  } catch (error) {
    if (error instanceof Forbidden) return false
    throw error
  }
}

async function isTerminating(client: CachedClient, name: string): Promise<boolean> {
  const namespace = await client.live.find(Namespace, { name })
  return namespace?.metadata.deletionTimestamp !== undefined
}

/** Whether what a run has become is still open, so that its node matters. */
export function isUnsettled(run: RunRecord): boolean {
  return isInProgress(run) || run.phase === 'Unknown'
}

function openNodes(operations: readonly Op[]): string[] {
  return operations.flatMap(({ status }) => (status?.runs ?? []).filter(isUnsettled).flatMap(({ node }) => node ?? []))
}

/** One of an earlier app of the same name is nobody's. */
function isOf({ metadata }: App, op: Op): boolean {
  const wisher = op.metadata.labels?.[wishLabel]
  return wisher === undefined || wisher === metadata.uid
}

async function operationsOf(app: App, client: CachedClient): Promise<Op[]> {
  const { namespace, name } = app.metadata
  const cached = client.by(Operation, byApp, `${namespace}/${name}`).filter(op => isOf(app, op))
  const { operation, wish } = app.status ?? {}
  const named = [operation, wish?.operation?.outcome === undefined ? wish?.operation : undefined]
  const missing = new Map<string, string>()
  for (const one of named)
    if (one?.uid !== undefined && !cached.some(({ metadata }) => metadata.uid === one.uid))
      missing.set(one.uid, one.name)
  const live = [...missing].map(async ([uid, name]) => {
    const there = await client.live.find(Operation, { namespace, name })
    return there?.metadata.uid === uid ? [there as Op] : []
  })
  return [...cached, ...(await Promise.all(live)).flat()]
}
