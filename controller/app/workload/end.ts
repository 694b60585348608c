/**
 * What becomes of a workload at the end: `onEnd`, one step at a time. Each step can be taken again.
 *
 * Guarantees: whatever is deleted is the very object that was decided about. A workload is deleted with its pods before it, so that when it is gone they are; what the pods need
 * goes after them, volumes last. `Delete` leaves volumes to the retention policy of the StatefulSet.
 */
import type { Ending } from '../../../shared/kinds/app.ts'
import type { CachedClient } from '../../kube/cached.ts'
import type { Kind, Snapshot } from '../../kube/kind.ts'
import type { App, PodView } from '../view.ts'
import { madeFor, type Workload } from './gather.ts'
import { scaleToZero } from './scale.ts'
import { deleteClaim, markClaim, readClaims, type VolumeClaim } from './volumes.ts'

export interface EndView {
  readonly ending: Ending
  readonly workload: Workload | undefined
  /** Terminating ones too. */
  readonly pods: readonly Pick<PodView, 'name'>[]
  /** Services and ConfigMaps of the app's template. */
  readonly made: readonly { readonly kind: Kind; readonly live: Snapshot }[]
  /** Empty unless volumes are to go. */
  readonly claims: readonly VolumeClaim[]
}

export type EndStep =
  | { readonly is: 'done' }
  /** `for`: what is waited for, as in "waiting for …". */
  | { readonly is: 'wait'; readonly for: string }
  /** Only a person can mend it. */
  | { readonly is: 'refused'; readonly message: string }
  | { readonly is: 'scale'; readonly workload: Workload }
  | { readonly is: 'mark'; readonly claims: readonly VolumeClaim[] }
  | { readonly is: 'delete'; readonly workload: Workload }
  | { readonly is: 'prune'; readonly made: EndView['made'] }
  | { readonly is: 'deleteClaims'; readonly claims: readonly VolumeClaim[] }

export function endingOf({ spec }: App, workload: Workload | undefined): Ending {
  return spec.onEnd ?? (workload && !workload.isScalable ? 'Orphan' : 'ScaleToZero')
}

/** @param pods those of the workload */
export async function gatherEnd(
  client: CachedClient,
  app: App,
  workload: Workload | undefined,
  pods: readonly Pick<PodView, 'name'>[],
): Promise<EndView> {
  const ending = endingOf(app, workload)
  const isDeletion = ending === 'Delete' || ending === 'DeleteWithVolumes'
  return {
    ...{ ending, workload, pods },
    made: isDeletion ? madeFor(client, app) : [],
    claims: ending === 'DeleteWithVolumes' ? await readClaims(client, app, workload) : [],
  }
}

export function decideEnd(view: EndView): EndStep {
  switch (view.ending) {
    case 'Orphan':
      return { is: 'done' }
    case 'ScaleToZero':
      return decideScale(view)
    default:
      return decideDelete(view)
  }
}

export function isEndDone(view: EndView): boolean {
  return decideEnd(view).is === 'done'
}

function decideScale({ workload, pods }: EndView): EndStep {
  if (!workload) return { is: 'done' }
  if (workload.replicas > 0 && !workload.isBeingDeleted) {
    if (workload.isScalable) return { is: 'scale', workload }
    return {
      is: 'refused',
      message: `spec.onEnd: a ${workload.kind} cannot be scaled to zero; use Orphan, Delete or DeleteWithVolumes`,
    }
  }
  return podsGone(pods) ?? { is: 'done' }
}

function decideDelete({ workload, pods, made, claims }: EndView): EndStep {
  const unmarked = claims.filter(({ isMarked, isBeingDeleted }) => !isMarked && !isBeingDeleted)
  if (unmarked.length > 0) return { is: 'mark', claims: unmarked }
  if (workload && !workload.isBeingDeleted) return { is: 'delete', workload }
  const waiting = podsGone(pods)
  if (waiting) return waiting
  if (workload) return { is: 'wait', for: `${workload.kind} ${workload.name} to be gone` }
  const left = made.filter(({ live }) => live.metadata.deletionTimestamp === undefined)
  if (left.length > 0) return { is: 'prune', made: left }
  const open = claims.filter(({ isBeingDeleted }) => !isBeingDeleted)
  if (open.length > 0) return { is: 'deleteClaims', claims: open }
  if (claims.length > 0) return { is: 'wait', for: `${named('claim', claims)} to be gone` }
  return { is: 'done' }
}

function podsGone(pods: EndView['pods']): EndStep | undefined {
  return pods.length > 0 ? { is: 'wait', for: `${named('pod', pods)} to end` } : undefined
}

/** `pods a, b and 3 more`. */
function named(word: string, all: readonly { readonly name: string }[]): string {
  const shown = all.slice(0, 3).map(({ name }) => name)
  const more = all.length > shown.length ? ` and ${all.length - shown.length} more` : ''
  return `${word}${all.length === 1 ? '' : 's'} ${shown.join(', ')}${more}`
}

/** Does what was decided. A Conflict means that somebody was faster: read, and decide anew. */
export async function end(client: CachedClient, app: App, step: EndStep): Promise<void> {
  switch (step.is) {
    case 'scale':
      return scaleToZero(client, step.workload)
    case 'mark':
      for (const claim of step.claims) await markClaim(client, app, claim)
      return
    case 'delete': {
      const { of, namespace, name, uid, resourceVersion } = step.workload
      const preconditions = { uid, resourceVersion }
      await client.delete(of, { namespace, name }, { propagation: 'Foreground', preconditions })
      return
    }
    case 'prune':
      for (const { kind, live } of step.made) await client.delete(kind, live, { propagation: 'Background' })
      return
    case 'deleteClaims':
      for (const claim of step.claims) await deleteClaim(client, app, claim)
      return
    default:
      return
  }
}
