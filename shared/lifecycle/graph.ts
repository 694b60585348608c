/**
 * The graph of a lifecycle's states: what kind each is, what verb it asks for, and how to get from one to another. Pure.
 *
 * Guarantees: a path is a shortest one, and of those the first in the order in which `next` is written; it never leads through a Delete state, nor
 * through a transient state whose action would have to be guessed. Names that are not states are passed over: to name them is for validate.ts.
 */
import { type Machine, successors } from '../machine.ts'
import { isRequired } from '../params/schema.ts'
import type { Action, LifecycleSpec } from './model.ts'

/**
 * - `observed`: a pod is in it by what probes say, or, in the first one, by nothing else being observed.
 * - `transient`: the app is in it while a run of one of its actions is in progress.
 * - `delete`: the controller's own word.
 */
export type Kind = 'observed' | 'transient' | 'delete'
export type Verb = 'Create' | 'Update' | 'Delete'

export interface Node {
  readonly name: string
  readonly kind: Kind
  /** As written, or by default: the first state Create, others Update. */
  readonly verb: Verb
  readonly isInitial: boolean
  /** Whether it has a guard, so that to enter it is to wait for that. */
  readonly isGuarded: boolean
  readonly actions: readonly string[]
  readonly next: readonly string[]
  /** Whether a path may lead through it: it is no Delete state, and if it is transient, its one action needs no parameter. */
  readonly isPassable: boolean
}

export interface Graph {
  /** In the order in which they are declared; the first is the initial one. */
  readonly nodes: readonly Node[]
  node(name: string): Node | undefined
  /** The same as a state machine: an event is the state to which it leads. */
  readonly machine: Machine<string, string>
  /** The transient state that lists an action. */
  transientOf(action: string): Node | undefined
  /** The states to pass from `from` to `to`, both included (one if they are the same), or undefined if there is no path. */
  path(from: string, to: string): string[] | undefined
  /** Every state that `next` leads to from these, themselves included, by whatever way. */
  reachable(from: Iterable<string>): Set<string>
}

export function graphOf({ states = [], actions = [] }: Pick<LifecycleSpec, 'states' | 'actions'>): Graph {
  const declared = new Map(actions.map(action => [action.name, action]))
  const names = new Set(states.map(state => state.name))
  const nodes = states.map((state, index): Node => {
    const verb = state.verb ?? (index === 0 ? 'Create' : 'Update')
    const kind = verb === 'Delete' ? 'delete' : state.when === undefined && state.actions ? 'transient' : 'observed'
    return {
      name: state.name,
      kind,
      verb,
      isInitial: index === 0,
      isGuarded: state.when !== undefined,
      actions: state.actions ?? [],
      next: (state.next ?? []).filter(next => names.has(next)),
      isPassable: kind === 'observed' || (kind === 'transient' && isImplied(state.actions, declared)),
    }
  })
  // Of two of the same name the first counts; validate.ts names the second.
  const byName = new Map(nodes.toReversed().map(node => [node.name, node]))
  const transient = new Map<string, Node>()
  for (const node of nodes.toReversed()) {
    if (node.kind === 'transient') for (const action of node.actions) transient.set(action, node)
  }
  const machine = successors(Object.fromEntries([...byName].map(([name, { next }]) => [name, next])))
  return {
    nodes,
    machine,
    node: name => byName.get(name),
    transientOf: action => transient.get(action),
    path: (from, to) => shortest(machine, byName, from, to),
    reachable(from) {
      const reached = new Set([...from].filter(name => byName.has(name)))
      for (const name of reached) for (const next of machine.events(name)) reached.add(next)
      return reached
    },
  }
}

function isImplied(actions: readonly string[] | undefined, declared: ReadonlyMap<string, Action>): boolean {
  const [only, ...others] = actions ?? []
  if (only === undefined || others.length > 0) return false
  return !Object.values(declared.get(only)?.params ?? {}).some(isRequired)
}

function shortest(
  machine: Machine<string, string>,
  byName: ReadonlyMap<string, Node>,
  from: string,
  to: string,
): string[] | undefined {
  if (!byName.has(from) || !byName.has(to)) return undefined
  const cameFrom = new Map<string, string | undefined>([[from, undefined]])
  for (const [name] of cameFrom) {
    if (name === to) break
    const node = byName.get(name)
    if (!node || (name !== from && !node.isPassable)) continue
    for (const next of machine.events(name)) if (!cameFrom.has(next)) cameFrom.set(next, name)
  }
  if (!cameFrom.has(to)) return undefined
  const path: string[] = []
  for (let at: string | undefined = to; at !== undefined; at = cameFrom.get(at)) path.unshift(at)
  return path
}
