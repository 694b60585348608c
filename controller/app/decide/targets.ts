/**
 * Whom an operation is asked of. Pure.
 *
 * Guarantees: pods are chosen only when all that the choice depends on is known; the order is that of the names, by number where they end in one.
 */
import { unknownState } from '../../../shared/lifecycle/observe.ts'
import type { PodView, Target, WorkloadView } from '../view.ts'
import type { ObservedPod } from './observe.ts'

export type Resolved =
  | { readonly targets: readonly Target[] }
  /** Not yet: for this. */
  | { readonly waitFor: string }
  /** Never, until a person does something. */
  | { readonly stalled: { readonly reason: 'NoPrimary' | 'SeveralPrimaries'; readonly message: string } }

export type Order = 'parallel' | 'serial' | 'primaryLast'

export interface Choice {
  /** all | one | primary | replicas | the name of a pod. */
  readonly target: string
  readonly order: Order
  readonly workload: WorkloadView | undefined
  readonly pods: readonly PodView[]
  readonly observed: readonly ObservedPod[]
}

const primary = 'primary'

export function resolveTargets(choice: Choice): Resolved {
  const { target, order, workload, pods } = choice
  const observed = choice.observed.toSorted((a, b) => byOrdinal(a.name, b.name))
  const wished = workload?.replicas ?? 0
  const asTargets = (chosen: readonly ObservedPod[]): Resolved => ({
    targets: chosen.map(({ name, uid, role }) => ({ pod: name, uid, ...(role !== undefined && { role }) })),
  })
  if (target === 'one') {
    const first = observed.find(({ uid }) => pods.find(pod => pod.uid === uid)?.isReady)
    return first ? asTargets([first]) : { waitFor: 'a pod to be ready' }
  }
  if (!['all', primary, 'replicas'].includes(target)) {
    const named = observed.find(({ name }) => name === target)
    return named ? asTargets([named]) : { waitFor: `pod ${target} to be there` }
  }
  if (observed.length < wished) return { waitFor: `${wished - observed.length} of ${wished} pods to be there` }
  const needsRoles = target !== 'all' || order === 'primaryLast'
  if (!needsRoles) return asTargets(observed)
  const silent = observed.find(({ state, role }) => role === undefined && state === unknownState)
  if (silent) return { waitFor: `the role of ${silent.name} to be known` }
  const primaries = observed.filter(({ role }) => role === primary)
  const replicas = observed.filter(({ role }) => role !== undefined && role !== primary)
  if (primaries.length > 1)
    return {
      stalled: {
        reason: 'SeveralPrimaries',
        message: `${primaries.map(({ name }) => name).join(' and ')} both say that they are the primary`,
      },
    }
  if (primaries.length === 0 && target !== 'all')
    return { stalled: { reason: 'NoPrimary', message: `none of ${observed.length} pods says that it is the primary` } }
  if (target === primary) return asTargets(primaries)
  if (target === 'replicas')
    return replicas.length > 0 ? asTargets(replicas) : { waitFor: 'a pod that says that it is a replica' }
  return asTargets(observed)
}

/** The targets that may be begun now, given those that have succeeded. */
export function inTurn(targets: readonly Target[], order: Order, isDone: (target: Target) => boolean): Target[] {
  const open = targets.filter(target => !isDone(target))
  if (order === 'parallel') return open
  const [first] = order === 'serial' ? open : open.toSorted((a, b) => rank(a) - rank(b))
  return first ? [first] : []
}

function rank({ role }: Target): number {
  return role === primary ? 1 : 0
}

function byOrdinal(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true })
}
