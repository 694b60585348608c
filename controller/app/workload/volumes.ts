/**
 * The volumes of a StatefulSet that is to go with them.
 *
 * Guarantees: a claim belongs to a StatefulSet if its name is that of a claim template, the set and a number, and it carries the labels of the set's selector. Which ones are to go is
 * written on them while the set is there, so that it is known when it is gone, by whomever; none is deleted before that.
 */
import type { CachedClient } from '../../kube/cached.ts'
import type { ShapeOf, Snapshot } from '../../kube/kind.ts'
import { PersistentVolumeClaim } from '../../kube/kinds.ts'
import type { App } from '../view.ts'
import type { Workload } from './gather.ts'
import { endingLabel } from './marks.ts'
import type { LabelSelector } from './selector.ts'
import { defaultSelector } from './template.ts'

type LiveClaim = Snapshot<ShapeOf<typeof PersistentVolumeClaim>>

export interface VolumeClaim {
  readonly name: string
  readonly uid: string
  /** It is to go with the app's workload. */
  readonly isMarked: boolean
  readonly isBeingDeleted: boolean
}

export interface ClaimOwner {
  readonly name: string
  readonly claimTemplates: readonly string[]
  readonly selector: LabelSelector
}

/** Whether a claim for a volume is one that a StatefulSet made for its pods. */
export function belongs({ metadata }: Pick<LiveClaim, 'metadata'>, { name, claimTemplates, selector }: ClaimOwner) {
  const isNamed = claimTemplates.some(template => {
    const prefix = `${template}-${name}-`
    return metadata.name.startsWith(prefix) && /^\d+$/.test(metadata.name.slice(prefix.length))
  })
  // The set puts these on its claims; with expressions alone it puts none, and nothing would tell its claims from others.
  const labels = Object.entries(selector.matchLabels ?? {})
  return isNamed && labels.length > 0 && labels.every(([key, value]) => metadata.labels?.[key] === value)
}

/** Those that belong to the workload, or to the one that the app's template describes; and those that were marked before. Asks the server. */
export async function readClaims(
  client: CachedClient,
  app: App,
  workload: Workload | undefined,
): Promise<VolumeClaim[]> {
  const { namespace, uid } = app.metadata
  const owner = workload ?? ownerInTemplate(app)
  const marked = await client.live.list(PersistentVolumeClaim, { namespace, labels: { [endingLabel]: uid } })
  const labels = owner?.selector.matchLabels
  const others =
    owner && labels && owner.claimTemplates.length > 0
      ? await client.live.list(PersistentVolumeClaim, { namespace, labels })
      : []
  const own = others.filter(one => owner && belongs(one as LiveClaim, owner))
  const all = new Map([...marked, ...own].map(one => [one.metadata.uid, one]))
  return [...all.values()].map(({ metadata }) => ({
    name: metadata.name,
    uid: metadata.uid,
    isMarked: metadata.labels?.[endingLabel] === uid,
    isBeingDeleted: metadata.deletionTimestamp !== undefined,
  }))
}

/** The set that the template describes, as far as it does. */
function ownerInTemplate(app: App): ClaimOwner | undefined {
  const spec = app.spec.template?.spec as { selector?: LabelSelector; volumeClaimTemplates?: unknown } | undefined
  if (!spec || !Array.isArray(spec.volumeClaimTemplates)) return undefined
  const templates = spec.volumeClaimTemplates as readonly ({ metadata?: { name?: string } } | null)[]
  return {
    name: app.metadata.name,
    selector: spec.selector ?? defaultSelector(app),
    claimTemplates: templates.flatMap(one => one?.metadata?.name ?? []),
  }
}

export async function markClaim(client: CachedClient, app: App, { name, uid }: VolumeClaim): Promise<void> {
  const merge = { metadata: { uid, labels: { [endingLabel]: app.metadata.uid } } }
  await client.patch(PersistentVolumeClaim, { namespace: app.metadata.namespace, name }, { merge })
}

export async function deleteClaim(client: CachedClient, app: App, { name, uid }: VolumeClaim): Promise<void> {
  const ref = { namespace: app.metadata.namespace, name }
  await client.delete(PersistentVolumeClaim, ref, { preconditions: { uid } })
}
