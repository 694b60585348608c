/**
 * A lifecycle as a Mermaid state diagram, for documents and pull requests. Pure.
 *
 * Guarantee: no name can be mistaken for Mermaid's own words or signs.
 */
import type { Graph } from './graph.ts'

export interface DrawingOptions {
  /** The state that is marked as the one the app is in. Default: none. */
  readonly current?: string | undefined
}

export function mermaidOf(graph: Graph, { current }: DrawingOptions = {}): string {
  const ids = new Map(graph.nodes.map(({ name }, index) => [name, `s${index}`]))
  const lines = graph.nodes.map(({ name, kind, actions }) => {
    const label = [name, ...(kind === 'transient' ? [actions.join(', ')] : [])].map(escaped).join('<br/>')
    return `  state "${label}" as ${ids.get(name)}`
  })
  const [initial] = graph.nodes
  if (initial) lines.push(`  [*] --> ${ids.get(initial.name)}`)
  for (const { name, next } of graph.nodes) {
    for (const to of next) lines.push(`  ${ids.get(name)} --> ${ids.get(to)}`)
  }
  for (const { name, kind } of graph.nodes) if (kind === 'delete') lines.push(`  ${ids.get(name)} --> [*]`)
  const here = current === undefined ? undefined : ids.get(current)
  if (here !== undefined) {
    lines.push('  classDef current fill:#2563eb,color:#ffffff,stroke:#1e3a8a', `  class ${here} current`)
  }
  return `stateDiagram-v2\n  direction LR\n${lines.join('\n')}\n`
}

/** Whatever is no plain letter becomes an entity, as Mermaid writes them. */
function escaped(text: string): string {
  return text.replaceAll(/[^\w, -]/gu, sign => `#${sign.codePointAt(0)};`)
}
