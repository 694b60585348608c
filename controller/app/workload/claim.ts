/**
 * One app for a workload: the claim on it.
 *
 * Guarantees: a claim is written against the version that was decided by, so of two apps that are as fast as each other one has it. A claim of an app that no longer exists
 * is taken over only when the server itself says that it does not.
 */
import type { CachedClient } from '../../kube/cached.ts'
import { NotFound } from '../../kube/errors.ts'
import { StatefulApp } from '../kinds.ts'
import type { App, WorkloadView } from '../view.ts'
import type { Workload } from './gather.ts'
import { type Claim, claimAnnotation, claimText } from './marks.ts'

export type ClaimStep =
  /** There is nothing to claim. */
  | { readonly is: 'nothing' }
  | { readonly is: 'ours' }
  /** Another app has it. */
  | { readonly is: 'held'; readonly by: Claim; readonly message: string }
  | { readonly is: 'take' }

/** The uid that the app in the claim has now; undefined if there is none, or no claim of another app. */
export async function gatherClaim(
  client: CachedClient,
  app: App,
  workload: WorkloadView | undefined,
): Promise<string | undefined> {
  const claim = workload?.claimedBy
  if (!claim || claim.uid === app.metadata.uid) return undefined
  const { namespace, name, uid } = claim
  const known = await client.find(StatefulApp, { namespace, name })
  if (known?.metadata.uid === uid) return uid
  return (await client.live.find(StatefulApp, { namespace, name }))?.metadata.uid
}

/** @param holder as gathered: the uid that the app in the claim has now */
export function decideClaim(app: App, workload: WorkloadView | undefined, holder: string | undefined): ClaimStep {
  if (!workload || workload.isBeingDeleted) return { is: 'nothing' }
  const by = workload.claimedBy
  if (by?.uid === app.metadata.uid) return { is: 'ours' }
  if (!by || by.uid !== holder) return { is: 'take' }
  const message = `${workload.kind} ${workload.name} belongs to StatefulApp ${by.namespace}/${by.name}; a workload has one app`
  return { is: 'held', by, message }
}

export async function takeClaim(client: CachedClient, app: App, workload: Workload): Promise<void> {
  await write(client, workload, claimText(app))
}

/** Does nothing where the claim is not the app's, or the workload is gone. */
export async function releaseClaim(client: CachedClient, app: App, workload: Workload | undefined): Promise<void> {
  if (!workload || workload.claimedBy?.uid !== app.metadata.uid) return
  try {
    await write(client, workload, null)
  } catch (error) {
    if (!(error instanceof NotFound)) throw error
  }
}

async function write(client: CachedClient, workload: Workload, text: string | null): Promise<void> {
  const { of, namespace, name, uid, resourceVersion } = workload
  const merge = { metadata: { uid, resourceVersion, annotations: { [claimAnnotation]: text } } }
  await client.patch(of, { namespace, name }, { merge })
}
