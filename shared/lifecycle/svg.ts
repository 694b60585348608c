/**
 * A lifecycle as an SVG image, for a page or a terminal that shows images. Pure.
 *
 * Guarantee: whatever the names are, the text is well-formed XML without scripts or references to anything outside.
 */
import type { Graph, Node } from './graph.ts'
import { type Layout, type Line, layoutOf } from './layout.ts'
import type { DrawingOptions } from './mermaid.ts'

interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
}

const height = 44
const rowGap = 22
const laneGap = 12
const gutter = 44
const margin = 16

export function svgOf(graph: Graph, { current }: DrawingOptions = {}): string {
  const layout = layoutOf(graph)
  const gutters = gutterWidths(layout)
  const above = lanesOf(layout, 'above') * laneGap
  const boxes = new Map<string, Box>()
  const rows = Math.max(1, ...layout.columns.map(names => names.length))
  const inner = rows * height + (rows - 1) * rowGap
  let x = margin
  for (const [column, names] of layout.columns.entries()) {
    x += gutters[column] ?? 0
    const width = Math.max(...names.map(name => widthOf(graph.node(name))))
    const used = names.length * height + (names.length - 1) * rowGap
    for (const [row, name] of names.entries()) {
      const y = margin + above + (inner - used) / 2 + row * (height + rowGap)
      boxes.set(name, { x, y, width })
    }
    x += width
  }
  const width = x + (gutters[layout.columns.length] ?? 0) + margin
  const bottom = margin + above + inner
  const total = bottom + lanesOf(layout, 'below') * laneGap + margin
  const around = layout.lines.filter(({ way }) => way !== 'straight')
  const routes = layout.lines.map(line => pathOf(line, around.indexOf(line), boxes, { top: margin + above, bottom }))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${total}" viewBox="0 0 ${width} ${total}" role="img" font-family="system-ui, sans-serif" font-size="14">`,
    `<title>${escaped(titleOf(graph, current))}</title>`,
    '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#64748b"/></marker></defs>',
    '<g fill="none" stroke="#64748b" stroke-width="1.5">',
    ...routes.map(d => `<path d="${d}" marker-end="url(#to)"/>`),
    '</g>',
    ...graph.nodes.flatMap(node => {
      const box = boxes.get(node.name)
      return box ? [boxOf(node, box, node.name === current)] : []
    }),
    '</svg>',
    '',
  ].join('\n')
}

function titleOf({ nodes }: Graph, current: string | undefined): string {
  const names = nodes.map(({ name }) => name).join(', ')
  return nodes.some(({ name }) => name === current) ? `${names}; it is in ${current}` : names
}

function widthOf(node: Node | undefined): number {
  const texts = node ? [node.name, ...(node.kind === 'transient' ? [node.actions.join(', ')] : [])] : ['']
  return Math.max(72, 24 + Math.max(...texts.map((text, line) => text.length * (line === 0 ? 8.5 : 6.5))))
}

const lanesOf = ({ lines }: Layout, way: Line['way']) => lines.filter(line => line.way === way).length

/** Every line that goes around takes a place in the gutter that it leaves by and in the one that it comes in by. */
function gutterWidths({ columns, lines }: Layout): number[] {
  const place = new Map(columns.flatMap((names, column) => names.map(name => [name, column] as const)))
  const around = lines.filter(({ way }) => way !== 'straight')
  return Array.from({ length: columns.length + 1 }, (_, index) => {
    const through = around.filter(({ from, to }) => (place.get(from) ?? 0) + 1 === index || place.get(to) === index)
    const isOuter = index === 0 || index === columns.length
    return (isOuter ? 0 : gutter) + (through.length > 0 ? (around.length + 1) * (laneGap / 2) : 0)
  })
}

interface Frame {
  readonly top: number
  readonly bottom: number
}

/** @param place its own among those that go around */
function pathOf(
  { from, to, way, lane }: Line,
  place: number,
  boxes: ReadonlyMap<string, Box>,
  { top, bottom }: Frame,
): string {
  const [start, end] = [boxes.get(from), boxes.get(to)]
  if (!start || !end) return ''
  const [x1, y1] = [start.x + start.width, start.y + height / 2]
  const [x2, y2] = [end.x, end.y + height / 2]
  if (way === 'straight') {
    const middle = (x1 + x2) / 2
    return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`
  }
  const shift = (place + 1) * (laneGap / 2)
  const y = way === 'above' ? top - (lane + 1) * laneGap + 4 : bottom + (lane + 1) * laneGap - 4
  // Those above come in higher and those below lower than what comes straight, so that arrows do not lie upon each other.
  const offset = way === 'above' ? -8 : 8
  return rounded([
    [x1, y1 + offset],
    [x1 + shift, y1 + offset],
    [x1 + shift, y],
    [x2 - shift - 6, y],
    [x2 - shift - 6, y2 + offset],
    [x2, y2 + offset],
  ])
}

type Point = readonly [number, number]

/** A line through the points with soft corners. */
function rounded(points: readonly Point[]): string {
  return points
    .map(([x, y], index) => {
      const [before, after] = [points[index - 1], points[index + 1]]
      if (!before) return `M${x} ${y}`
      if (!after) return `L${x} ${y}`
      const [fromX, fromY] = towards([x, y], before)
      const [toX, toY] = towards([x, y], after)
      return `L${fromX} ${fromY}Q${x} ${y} ${toX} ${toY}`
    })
    .join('')
}

function towards([x, y]: Point, [otherX, otherY]: Point): Point {
  const far = Math.hypot(otherX - x, otherY - y)
  const part = far === 0 ? 0 : Math.min(5, far / 2) / far
  return [x + (otherX - x) * part, y + (otherY - y) * part]
}

function boxOf({ name, kind, actions, isGuarded }: Node, { x, y, width }: Box, isCurrent: boolean): string {
  const [fill, ink] = isCurrent ? ['#2563eb', '#ffffff'] : ['#f8fafc', '#0f172a']
  const dashes = kind === 'transient' ? ' stroke-dasharray="5 3"' : ''
  const frame = `x="${x}" y="${y}" width="${width}" height="${height}" rx="8"`
  const second =
    kind === 'delete'
      ? `<rect x="${x + 3}" y="${y + 3}" width="${width - 6}" height="${height - 6}" rx="6" fill="none" stroke="#64748b"/>`
      : ''
  const middle = x + width / 2
  const told = kind === 'transient' ? actions.join(', ') : ''
  const place = told === '' ? y + height / 2 + 5 : y + height / 2 - 2
  const small =
    told === ''
      ? ''
      : `<text x="${middle}" y="${y + height / 2 + 14}" text-anchor="middle" font-size="11" fill="${ink}">${escaped(told)}</text>`
  const hint = `${name}: ${kind}${isGuarded ? ', observed by its guard' : ''}${isCurrent ? ', here' : ''}`
  return `<g><title>${escaped(hint)}</title><rect ${frame} fill="${fill}" stroke="#334155" stroke-width="1.5"${dashes}/>${second}<text x="${middle}" y="${place}" text-anchor="middle" fill="${ink}"${isCurrent ? ' font-weight="bold"' : ''}>${escaped(name)}</text>${small}</g>`
}

/** As text or as an attribute; what XML cannot hold at all is left out. */
function escaped(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '')
    .replaceAll(/[&<>"']/g, sign => `&#${sign.codePointAt(0)};`)
}
