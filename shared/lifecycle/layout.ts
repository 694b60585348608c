/**
 * Where the states of a lifecycle stand when it is drawn: in columns, from where an app begins to where it ends. Pure.
 *
 * Guarantees: every state has a place of its own; a line never crosses a state, as what does not lead to the next column goes around by a lane of its own.
 */
import type { Graph } from './graph.ts'

export interface Line {
  readonly from: string
  readonly to: string
  /** Straight to the next column; or around, above what leads on and below what leads back. */
  readonly way: 'straight' | 'above' | 'below'
  /** Among those of the same way, from 0. */
  readonly lane: number
}

export interface Layout {
  /** Names by column, each from top to bottom. */
  readonly columns: readonly (readonly string[])[]
  readonly lines: readonly Line[]
}

export function layoutOf(graph: Graph): Layout {
  const column = columnsOf(graph)
  const columns: string[][] = []
  for (const [name, index] of column) {
    columns[index] ??= []
    columns[index].push(name)
  }
  const arranged = arrange(columns, graph)
  const lanes = { straight: 0, above: 0, below: 0 }
  const lines = [...column.keys()].flatMap(from =>
    (graph.node(from)?.next ?? []).map((to): Line => {
      const step = (column.get(to) ?? 0) - (column.get(from) ?? 0)
      const way = step === 1 ? 'straight' : step > 1 ? 'above' : 'below'
      return { from, to, way, lane: lanes[way]++ }
    }),
  )
  return { columns: arranged, lines }
}

/** As many steps as it takes from the first state; what is entered by observation alone stands before what it leads to, never before the first. */
function columnsOf(graph: Graph): Map<string, number> {
  const column = new Map<string, number>()
  const spread = (queue: string[]) => {
    for (const name of queue) {
      for (const next of graph.node(name)?.next ?? []) {
        if (column.has(next)) continue
        column.set(next, (column.get(name) ?? 0) + 1)
        queue.push(next)
      }
    }
  }
  const [first] = graph.nodes
  if (first) {
    column.set(first.name, 0)
    spread([first.name])
  }
  for (const { name, next } of graph.nodes) {
    if (column.has(name)) continue
    const reached = next.flatMap(one => column.get(one) ?? [])
    column.set(name, reached.length > 0 ? Math.max(1, Math.min(...reached) - 1) : 1)
    spread([name])
  }
  // Columns without a state would be gaps.
  const used = [...new Set(column.values())].sort((a, b) => a - b)
  const inOrder = graph.nodes.map(({ name }): [string, number] => [name, used.indexOf(column.get(name) ?? 0)])
  return new Map(inOrder)
}

/** Each state at about the height of those that lead to it, so that fewer lines cross; ties stay in the order of declaration. */
function arrange(columns: readonly string[][], graph: Graph): string[][] {
  const arranged: string[][] = []
  for (const [index, names] of columns.entries()) {
    const before = arranged[index - 1] ?? []
    const height = (name: string) => {
      const above = before.flatMap((other, at) => (graph.node(other)?.next.includes(name) ? [at] : []))
      return above.length === 0 ? before.length : above.reduce((sum, at) => sum + at, 0) / above.length
    }
    arranged.push(names.toSorted((a, b) => height(a) - height(b)))
  }
  return arranged
}
