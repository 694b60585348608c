/**
 * N pods, one state. Pure.
 *
 * Guarantees: a pod that cannot be asked is Unknown, never assumed; a sidecar that cannot be reached counts as it last said for a grace period, so that a
 * broken connection is not taken for a change.
 */
import { unknownState } from '../../../shared/lifecycle/observe.ts'
import type { PodView, View } from '../view.ts'
import { isBeforeEnd } from './wish.ts'

/** For so long a sidecar that cannot be reached counts as it last said. */
export const unreachableGrace = 15_000

export interface ObservedPod {
  readonly name: string
  readonly uid: string
  readonly state: string
  readonly reason: string
  readonly role: string | undefined
  readonly bootId: string | undefined
  /** The run that is in progress there. */
  readonly run: string | undefined
  /** When to look again, if nothing changes. */
  readonly until: number | undefined
}

export interface Observed {
  readonly state: string
  readonly reason: string
  readonly pods: readonly ObservedPod[]
  /** When to look again, if nothing changes. */
  readonly until: number | undefined
}

export function observe(view: View): Observed {
  const pods = view.pods.filter(pod => !pod.isTerminating).map(pod => observePod(pod, view))
  const untils = pods.flatMap(({ until }) => until ?? [])
  return { ...stateOf(view, pods), pods, until: untils.length > 0 ? Math.min(...untils) : undefined }
}

function observePod({ name, uid, hasAgent, agent }: PodView, { now, lifecycle }: View): ObservedPod {
  const said = agent?.state
  const known = { name, uid, role: roleOf(said?.role), bootId: said?.bootId, run: said?.run?.id, until: undefined }
  const unknown = (reason: string) => ({ ...known, state: unknownState, reason })
  if (!hasAgent) return unknown('NoSidecar')
  if (!said) return unknown(agent && !agent.isReachable ? 'Unreachable' : 'NotConnected')
  const until = agent.since + unreachableGrace
  if (!agent.isReachable && now >= until) return unknown('Unreachable')
  if (said.state !== unknownState && !lifecycle?.graph.node(said.state)) return unknown('OtherLifecycle')
  return { ...known, state: said.state, reason: said.reason, until: agent.isReachable ? undefined : until }
}

/** A role is the probe's trimmed output. */
function roleOf(role: string | null | undefined): string | undefined {
  return role?.trim() || undefined
}

function stateOf(
  { app, lifecycle, workload }: View,
  pods: readonly ObservedPod[],
): { readonly state: string; readonly reason: string } {
  const { wish, operation } = app.status ?? {}
  const graph = lifecycle?.graph
  const [initial] = graph?.nodes ?? []
  if (!graph || !initial) return { state: unknownState, reason: 'NoLifecycle' }
  const wished = wish && graph.node(wish.state)
  if (wished?.kind === 'delete' && wish?.outcome === 'Succeeded') return { state: wished.name, reason: 'Ended' }
  if (operation?.state !== undefined && graph.node(operation.state))
    return { state: operation.state, reason: 'OperationInProgress' }
  // What was stopped is on its way to its end, whatever its pods still say.
  if (wish && isBeforeEnd(wish, graph)) return { state: wish.passed?.at(-1) ?? initial.name, reason: 'Ending' }
  if (!workload) return { state: initial.name, reason: 'Missing' }
  const end = graph.nodes.find(({ kind }) => kind === 'delete')
  if (workload.replicas === 0) {
    if (end && workload.keptReplicas !== undefined) return { state: end.name, reason: 'ScaledToZero' }
    return { state: initial.name, reason: 'ScaledToZero' }
  }
  if (pods.length === 0) return { state: initial.name, reason: 'Missing' }
  const needed = Math.min(app.spec.quorum ?? workload.replicas, workload.replicas)
  const held = graph.nodes
    .map(({ name }) => ({ name, by: pods.filter(pod => pod.state === name) }))
    .filter(({ by }) => by.length >= needed)
    .sort((a, b) => b.by.length - a.by.length)[0]
  if (held) return { state: held.name, reason: held.by[0]?.reason ?? 'Observed' }
  const unknown = pods.find(({ state }) => state === unknownState)
  if (unknown) return { state: unknownState, reason: unknown.reason }
  if (pods.length < workload.replicas) return { state: initial.name, reason: 'Missing' }
  const earliest = graph.nodes.find(({ name }) => pods.some(({ state }) => state === name))
  const first = pods.find(({ state }) => state === earliest?.name)
  return { state: first?.state ?? unknownState, reason: first?.reason ?? 'NotConnected' }
}
