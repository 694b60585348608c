/**
 * What comes next on the way from the state of an app to the one that is wished. Pure.
 *
 * Guarantees: the way is the graph's shortest; a transient state that has been passed is not asked for again; nothing is planned from a state that is not known, nor
 * from one that lasts only as long as a run.
 */
import type { Graph, Node } from '../../../shared/lifecycle/graph.ts'
import { unknownState } from '../../../shared/lifecycle/observe.ts'
import type { Wish, WishStatus, WorkloadView } from '../view.ts'
import { actionOf, goalOf, isBeforeEnd } from './wish.ts'

export type Next =
  /** The wished state is held. */
  | { readonly is: 'there'; readonly goal: Node }
  /** A state that is observed has to come. */
  | { readonly is: 'wait'; readonly goal: Node; readonly for: Node }
  /** A run that no operation of the app asks for has to end. */
  | { readonly is: 'busy'; readonly goal: Node; readonly state: Node }
  /** An action has to be carried out. */
  | { readonly is: 'act'; readonly goal: Node; readonly state: Node; readonly action: string }
  /** The workload has to be there. */
  | { readonly is: 'create'; readonly goal: Node }
  /** What `onEnd` says. */
  | { readonly is: 'end'; readonly goal: Node }
  | { readonly is: 'noPath'; readonly from: string; readonly to: string }
  /** The state is not known. */
  | { readonly is: 'unknown'; readonly goal: Node }

export interface Position {
  readonly graph: Graph
  /** What is observed. */
  readonly state: string
  readonly wish: Wish
  readonly memory: WishStatus
  readonly workload: WorkloadView | undefined
  /** Whether the workload is the app's own, made from its template. */
  readonly isOwn: boolean
}

export function planNext(position: Position): Next {
  const { graph, wish, memory } = position
  const goal = goalOf(memory, graph)
  if (!goal) return { is: 'noPath', from: position.state, to: memory.state }
  if (goal.kind === 'delete') {
    if (memory.outcome === 'Succeeded') return { is: 'there', goal }
    // Where nothing is, there is nothing to stop.
    if (isBeforeEnd(memory, graph) || isEmpty(position)) return { is: 'end', goal }
  }
  if (position.state === unknownState) return { is: 'unknown', goal }
  if (goal.kind !== 'delete' && isAbsent(position)) return { is: 'create', goal }
  // It is passed when its run has succeeded, and that is not known yet.
  const here = graph.node(position.state)
  if (here?.kind === 'transient') return { is: 'busy', goal, state: here }
  const from = standsAt(position)
  if (from === goal.name && goal.kind !== 'transient') return { is: 'there', goal }
  // A transient state that is wished is entered from where the app is, were it from itself.
  const path = graph.path(from, goal.name)
  const reached = path && path[1] === position.state && from !== position.state
  // What follows the state that was passed is there already.
  if (reached && goal.name === position.state) return { is: 'there', goal }
  const hop = path && graph.node((reached ? path[2] : path[1]) ?? goal.name)
  if (!hop) return { is: 'noPath', from, to: goal.name }
  if (hop.kind === 'delete') return { is: 'end', goal }
  if (hop.kind === 'observed') return hop.isInitial ? { is: 'create', goal } : { is: 'wait', goal, for: hop }
  const action = hop.name === wish.state ? actionOf(wish, hop) : hop.actions[0]
  if (action === undefined) return { is: 'noPath', from, to: goal.name }
  return { is: 'act', goal, state: hop, action }
}

/** Where the app is on its way: after a transient state that was passed, there, whatever the probes still say. */
function standsAt({ state, memory, graph }: Position): string {
  const last = memory.passed?.at(-1)
  if (last === undefined) return state
  return graph.node(state)?.kind === 'observed' && memory.passedFrom !== state ? state : last
}

function isEmpty({ workload }: Position): boolean {
  return !workload || workload.replicas === 0
}

/** Whether the Create verb has something to do before anything else can happen. */
function isAbsent({ workload, isOwn }: Position): boolean {
  if (!workload) return isOwn
  return workload.replicas === 0 && workload.keptReplicas !== undefined
}
