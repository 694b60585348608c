/**
 * The last of an app that is being deleted: whether it may go now, and what goes with it.
 *
 * Guarantees: an app that is to be stopped first goes only when its end is stored as reached, or a person or its deadline says so, and then an event tells it; what
 * belongs to the app itself and to nobody's pods goes before it; a claim is given back. Whatever its workload is, and whether or not it can be read, it never holds
 * an app that may go.
 */
import { parseDuration } from '../../shared/duration.ts'
import type { CachedClient } from '../kube/cached.ts'
import { NotFound } from '../kube/errors.ts'
import { Secret } from '../kube/kinds.ts'
import { TerminalError } from '../runtime/index.ts'
import { deletionPolicy, skipAnnotation, wishHash, wishOf } from './decide/wish.ts'
import { secretNameOf } from './trust/app-secret.ts'
import type { App, View } from './view.ts'
import { releaseClaim } from './workload/claim.ts'
import { decideGate, gate, gatherGate } from './workload/gate.ts'
import { readWorkload, type Sources, type Workload } from './workload/gather.ts'
import { appUidLabel } from './workload/marks.ts'

export type LetGo =
  /** It walks to its end first; by then at the latest it goes. */
  | { readonly is: 'walk'; readonly until: number }
  /** With what a person should know, if it was not stopped as it should have been. */
  | { readonly is: 'go'; readonly event?: { readonly reason: string; readonly note: string } }

export interface LetGoView extends Pick<View, 'app' | 'lifecycle' | 'now' | 'isNamespaceTerminating'> {
  /** The CRD itself is being deleted: nobody has asked for the end of this app. */
  readonly isUninstalled: boolean
}

/** Of an app that is being deleted. */
export function decideLetGo({ app, lifecycle, now, isNamespaceTerminating, isUninstalled }: LetGoView): LetGo {
  const { name, annotations, deletionTimestamp } = app.metadata
  if (deletionPolicy(app) === 'Orphan' || isNamespaceTerminating) return { is: 'go' }
  const unstopped = (reason: string, why: string): LetGo => ({
    is: 'go',
    event: { reason, note: `${name} goes without being stopped: ${why}` },
  })
  if (isUninstalled) return unstopped('Uninstalled', 'the CRD of StatefulApps is being deleted')
  if (!lifecycle) return unstopped('LifecycleGone', `there is no Lifecycle ${app.spec.lifecycle} any more`)
  const wish = wishOf({ app, lifecycle })
  // Its lifecycle has no end.
  if (!wish) return { is: 'go' }
  const { hash, outcome } = app.status?.wish ?? {}
  if (hash === wishHash(wish) && outcome === 'Succeeded') return { is: 'go' }
  if (annotations?.[skipAnnotation] === 'true') return unstopped('LifecycleSkipped', `${skipAnnotation} says so`)
  const deadline = parseDuration(app.spec.deletion?.deadline ?? '10m') ?? 600_000
  const until = Date.parse(String(deletionTimestamp)) + deadline
  return now >= until ? unstopped('DeletionOverdue', 'its deadline has passed') : { is: 'walk', until }
}

/** Does what has to be done before its finalizer goes. */
export async function letGo(client: CachedClient, app: App, sources: Sources): Promise<void> {
  const workload = await readable(client, app, sources)
  await gate(client, app, decideGate(app, gatherGate(client, app, workload), false))
  await releaseClaim(client, app, workload)
  await removeSecret(client, app)
}

/** What is no workload, or none any more, has nothing to be given back. */
async function readable(client: CachedClient, app: App, sources: Sources): Promise<Workload | undefined> {
  try {
    return await readWorkload(client, app, sources)
  } catch (error) {
    if (error instanceof TerminalError || error instanceof NotFound) return undefined
    throw error
  }
}

async function removeSecret(client: CachedClient, { metadata }: App): Promise<void> {
  const { namespace, uid } = metadata
  const secret = await client.find(Secret, { namespace, name: secretNameOf(metadata.name) })
  if (secret?.metadata.labels?.[appUidLabel] !== uid) return
  await client.delete(Secret, secret, { preconditions: { uid: secret.metadata.uid } })
}
