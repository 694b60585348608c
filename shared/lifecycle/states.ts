/**
 * Whether a lifecycle's states make a graph that can be walked. Pure.
 */
import { messageOf } from '../errors.ts'
import { shown, suggestion } from '../nearest.ts'
import { type Graph, graphOf, type Node } from './graph.ts'
import { compileGuard } from './guard.ts'
import type { LifecycleSpec } from './model.ts'
import { unknownState } from './observe.ts'
import { error, type Finding, warning } from './shape.ts'

export function stateFindings(spec: LifecycleSpec): Finding[] {
  const { states = [], actions = [], probes = [] } = spec
  const graph = graphOf(spec)
  const names = states.map(state => state.name)
  const actionNames = actions.map(action => action.name)
  const probeNames = probes.map(probe => probe.name)
  const listedBy = new Map<string, string>()
  const findings = states.flatMap((state, index): Finding[] => {
    const found: Finding[] = []
    const path = ['states', index]
    const node = graph.nodes[index]
    if (state.name === unknownState) {
      found.push(error([...path, 'name'], `${shown(state.name)} is what a state is called that is not known`))
    }
    for (const [at, next] of (state.next ?? []).entries()) {
      const where = [...path, 'next', at]
      if (!names.includes(next)) found.push(error(where, `${shown(next)} is no state${suggestion(next, names)}`))
      else if (state.next?.indexOf(next) !== at) found.push(error(where, `${shown(next)} stands here twice`))
    }
    for (const [at, action] of (state.actions ?? []).entries()) {
      const where = [...path, 'actions', at]
      const other = listedBy.get(action)
      if (!actionNames.includes(action)) {
        found.push(error(where, `${shown(action)} is no action${suggestion(action, actionNames)}`))
      } else if (other !== undefined) {
        found.push(error(where, `${shown(action)} is listed by ${shown(other)} already; one state at most may list it`))
      } else listedBy.set(action, state.name)
    }
    if (state.when !== undefined) {
      if (node?.verb === 'Delete') {
        found.push(
          error([...path, 'when'], 'a Delete state has no `when`: that it is reached is for the controller to say'),
        )
      }
      try {
        compileGuard(state.when, probeNames)
      } catch (thrown) {
        found.push(error([...path, 'when'], messageOf(thrown)))
      }
    }
    if (node) found.push(...kindFindings(node, state.next ?? [], path))
    return found
  })
  const repeated = duplicates(names, ['states'])
  // What a walk would find is, more often than not, only what a wrong name brings about.
  const isNamed = repeated.length === 0 && states.every(state => (state.next ?? []).every(next => names.includes(next)))
  return [...findings, ...repeated, ...verbFindings(graph), ...(isNamed ? walkFindings(graph) : [])]
}

/** An error for each name that an earlier one has. */
export function duplicates(names: readonly string[], path: (string | number)[]): Finding[] {
  return names.flatMap((name, index) => {
    const first = names.indexOf(name)
    return first === index
      ? []
      : [error([...path, index, 'name'], `${shown(name)} is the name of ${path.join('.')}[${first}] already`)]
  })
}

function kindFindings(node: Node, next: readonly string[], path: (string | number)[]): Finding[] {
  const { kind, actions, isInitial, isGuarded, name } = node
  const found: Finding[] = []
  if (kind !== 'delete' && next.length === 0) {
    found.push(error(path, `${shown(name)} leads nowhere: give it \`next\`, or \`verb: Delete\` if the app ends there`))
  }
  if (kind === 'delete' && isInitial) {
    found.push(error([...path, 'verb'], 'the first state is where an app begins; it cannot be a Delete state'))
  }
  if (kind === 'delete' && actions.length > 0) {
    found.push(
      warning([...path, 'actions'], 'never asked for: what is done before the end belongs into a state before it'),
    )
  }
  if (kind === 'observed' && !isGuarded && !isInitial) {
    found.push(warning(path, `${shown(name)} can never be observed: give it \`when\` or \`actions\``))
  }
  if (kind === 'transient' && isInitial) {
    found.push(
      warning(
        [...path, 'actions'],
        'the first state is where a pod is when nothing else is observed, so it should not be transient',
      ),
    )
  }
  return found
}

function verbFindings({ nodes }: Graph): Finding[] {
  const creates = nodes.filter(node => node.verb === 'Create')
  return nodes.flatMap((node, index) => {
    if (node.verb !== 'Create' || node === creates[0]) return []
    return [error(['states', index, 'verb'], `only one state may be Create, and ${shown(creates[0]?.name)} is`)]
  })
}

function walkFindings(graph: Graph): Finding[] {
  const { nodes } = graph
  if (nodes.length === 0) return []
  // A state with a guard is entered by observation too.
  const entered = graph.reachable(nodes.filter(node => node.isInitial || node.isGuarded).map(node => node.name))
  const found: Finding[] = []
  const inCycle = new Set<string>()
  for (const [index, node] of nodes.entries()) {
    const path = ['states', index]
    if (!entered.has(node.name))
      found.push(error(path, `${shown(node.name)} cannot be reached: no \`next\` leads to it`))
    if (node.kind === 'transient' && !inCycle.has(node.name)) {
      const cycle = transientCycle(graph, node.name)
      for (const name of cycle ?? []) inCycle.add(name)
      if (cycle) {
        found.push(
          error(
            [...path, 'next'],
            `transient states in a circle, in which nothing is ever observed: ${cycle.join(' → ')}`,
          ),
        )
      }
    }
  }
  if (!nodes.some(node => node.kind === 'delete')) {
    found.push(warning(['states'], 'no state has `verb: Delete`, so the app cannot be ended'))
    return found
  }
  for (const [index, node] of nodes.entries()) {
    if (node.kind !== 'observed' || canEnd(graph, node.name)) continue
    found.push(
      warning(
        ['states', index, 'next'],
        `from ${shown(node.name)} no Delete state can be reached without waiting for a guard`,
      ),
    )
  }
  return found
}

/** Whether a Delete state can be reached through states that are entered at will. */
function canEnd(graph: Graph, from: string): boolean {
  const seen = new Set([from])
  for (const name of seen) {
    const node = graph.node(name)
    if (name !== from && (!node?.isPassable || node.isGuarded)) continue
    for (const next of node?.next ?? []) {
      if (graph.node(next)?.kind === 'delete') return true
      seen.add(next)
    }
  }
  return false
}

/** The way from a transient state back to itself through transient states alone. */
function transientCycle(graph: Graph, from: string): string[] | undefined {
  const cameFrom = new Map<string, string>()
  const queue = [from]
  for (const name of queue) {
    for (const next of graph.node(name)?.next ?? []) {
      if (graph.node(next)?.kind !== 'transient' || cameFrom.has(next)) continue
      cameFrom.set(next, name)
      if (next === from) {
        const cycle = [from]
        for (let at = name; at !== from; at = cameFrom.get(at) ?? from) cycle.unshift(at)
        return [from, ...cycle]
      }
      queue.push(next)
    }
  }
  return undefined
}
