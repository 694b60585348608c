/**
 * Keeps a set's ControllerRevisions as revisions.ts decides.
 */
import type { CachedClient } from '../../../controller/kube/cached.ts'
import { AlreadyExists } from '../../../controller/kube/errors.ts'
import type { Snapshot } from '../../../controller/kube/kind.ts'
import { ControllerRevision } from '../../../controller/kube/kinds.ts'
import { type LabelSelector, selects } from '../../../controller/kube/labelselector.ts'
import { carryOutClaim, claim } from './claim.ts'
import type { History, Revision } from './revisions.ts'

/** The set's revisions, those that nobody controls adopted. */
export async function ownRevisions(
  client: CachedClient,
  set: Snapshot,
  selector: LabelSelector | undefined,
): Promise<Revision[]> {
  const all = await client.list(ControllerRevision, { namespace: set.metadata.namespace })
  const { own, adopt } = claim(set, all, ({ metadata }) => selects(selector, metadata.labels))
  return carryOutClaim(client, ControllerRevision, set, { own, adopt, release: [] })
}

/** Writes what the history asks for; answers all revisions then. Undefined: another content has the same name, decide again with one more collision. */
export async function keepHistory(
  client: CachedClient,
  revisions: readonly Revision[],
  history: History,
): Promise<Revision[] | undefined> {
  const { create, renumber } = history
  if (renumber) {
    const { uid, resourceVersion } = renumber.revision.metadata
    const merge = { metadata: { uid, resourceVersion }, revision: renumber.to }
    const changed = await client.patch(ControllerRevision, renumber.revision.metadata, { merge })
    return revisions.map(one => (one === renumber.revision ? changed : one))
  }
  if (!create) return [...revisions]
  try {
    return [...revisions, await client.create(ControllerRevision, create)]
  } catch (error) {
    if (error instanceof AlreadyExists) return undefined
    throw error
  }
}
