import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { graphOf } from '../../../shared/lifecycle/graph.ts'
import { layoutOf } from '../../../shared/lifecycle/layout.ts'
import { mermaidOf } from '../../../shared/lifecycle/mermaid.ts'
import { svgOf } from '../../../shared/lifecycle/svg.ts'
import { postgres } from './postgres.ts'

const hostile = `<script>"&'x]]>\u0000--> [*]`
const odd = graphOf({
  states: [
    { name: hostile, next: ['end'] },
    { name: 'end', verb: 'Delete' },
  ],
})
const count = (text: string, part: string) => text.split(part).length - 1

const anyGraph = fc.integer({ min: 1, max: 9 }).chain(size => {
  const name = (index: number) => `S${index}`
  const targets = fc.uniqueArray(fc.nat(size - 1), { maxLength: size })
  return fc
    .array(targets, { minLength: size, maxLength: size })
    .map(nexts => graphOf({ states: nexts.map((next, index) => ({ name: name(index), next: next.map(name) })) }))
})

describe('Mermaid', () => {
  test('has every state, every step, the beginning, the end, and where the app is', () => {
    expect(mermaidOf(graphOf(postgres), { current: 'Running' })).toMatchInlineSnapshot(`
      "stateDiagram-v2
        direction LR
        state "Start" as s0
        state "Running" as s1
        state "Servicing<br/>backup, reload" as s2
        state "Stopping<br/>stop" as s3
        state "End" as s4
        [*] --> s0
        s0 --> s1
        s0 --> s3
        s1 --> s2
        s1 --> s3
        s2 --> s1
        s3 --> s4
        s4 --> s0
        s4 --> [*]
        classDef current fill:#2563eb,color:#ffffff,stroke:#1e3a8a
        class s1 current
      "
    `)
  })

  test('marks nothing where the state is none of its own', () => {
    expect(mermaidOf(graphOf(postgres), { current: 'Unknown' })).not.toContain('class ')
  })

  test('no name can be taken for something else', () => {
    const [, , label = '', ...rest] = mermaidOf(odd).split('\n')
    expect(label).toMatch(/^ {2}state "[\w#;, -]+" as s0$/)
    expect(rest.join('\n')).toBe('  state "end" as s1\n  [*] --> s0\n  s0 --> s1\n  s1 --> [*]\n')
  })
})

describe('SVG', () => {
  test('has a box for every state, a line for every step, and marks where the app is', () => {
    const drawn = svgOf(graphOf(postgres), { current: 'Servicing' })
    for (const { name } of postgres.states) expect(drawn).toContain(`>${name}</text>`)
    const steps = postgres.states.flatMap(({ next }) => next)
    expect(count(drawn, 'marker-end=')).toBe(steps.length)
    expect(count(drawn, 'font-weight="bold"')).toBe(1)
    expect(drawn).toContain('it is in Servicing')
    expect(svgOf(graphOf(postgres))).not.toContain('font-weight')
  })

  test('is well-formed whatever the names are, and holds no element but its own', () => {
    const drawn = svgOf(odd, { current: hostile })
    expect(drawn).not.toContain('\u0000')
    expect(elementsOf(drawn)).toEqual(new Set(['svg', 'title', 'defs', 'marker', 'path', 'g', 'rect', 'text']))
  })

  test('no line crosses a state, and all is within the picture', () => {
    fc.assert(
      fc.property(anyGraph, graph => {
        const drawn = svgOf(graph)
        const [, width = 0, height = 0] = (/viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(drawn) ?? []).map(Number)
        const boxes = [...drawn.matchAll(/<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" rx="8"/g)]
        expect(boxes).toHaveLength(graph.nodes.length)
        const rectangles = boxes.map(box => box.slice(1).map(Number))
        const isWrong = ([x, y]: [number, number]) =>
          !(x >= 0 && x <= width && y >= 0 && y <= height) ||
          rectangles.some(
            ([left = 0, top = 0, wide = 0, high = 0]) =>
              x > left + 0.01 && x < left + wide - 0.01 && y > top + 0.01 && y < top + high - 0.01,
          )
        const drawnLines = [...drawn.matchAll(/<path d="([^"]+)" marker-end/g)].map(([, d = '']) => d)
        expect(drawnLines.filter(d => pointsOf(d).some(isWrong))).toEqual([])
      }),
      { numRuns: 60 },
    )
  })
})

describe('the layout', () => {
  test('goes above what it passes by, and below where it leads back', () => {
    const states = [
      { name: 'A', next: ['B'] },
      { name: 'B', next: ['C'] },
      { name: 'C', next: ['D'] },
      { name: 'D', next: ['A'] },
      // Entered by observation alone.
      { name: 'E', when: 'true', next: ['B', 'D'] },
    ]
    const { columns, lines } = layoutOf(graphOf({ states }))
    expect(columns).toEqual([['A'], ['B', 'E'], ['C'], ['D']])
    const wayOf = (from: string, to: string) => lines.find(line => line.from === from && line.to === to)?.way
    expect([wayOf('E', 'D'), wayOf('D', 'A'), wayOf('E', 'B'), wayOf('B', 'C')]).toEqual([
      ...['above', 'below', 'below', 'straight'],
    ])
  })

  test('stands in columns from the beginning to the end', () => {
    expect(layoutOf(graphOf(postgres)).columns).toEqual([['Start'], ['Running', 'Stopping'], ['Servicing', 'End']])
  })

  test('has every state once, and every step once, each in a lane of its own', () => {
    fc.assert(
      fc.property(anyGraph, graph => {
        const { columns, lines } = layoutOf(graph)
        expect(columns.flat().sort()).toEqual(graph.nodes.map(({ name }) => name).sort())
        expect(columns.every(names => names.length > 0)).toBe(true)
        expect(lines.map(({ from, to }) => `${from}>${to}`).sort()).toEqual(
          graph.nodes.flatMap(({ name, next }) => next.map(to => `${name}>${to}`)).sort(),
        )
        expect(new Set(lines.map(({ way, lane }) => `${way} ${lane}`)).size).toBe(lines.length)
      }),
    )
  })
})

/** The names of the elements; throws where they do not nest. */
function elementsOf(xml: string): Set<string> {
  const open: string[] = []
  const names = new Set<string>()
  for (const [, close, name = '', rest = ''] of xml.matchAll(/<(\/?)([A-Za-z]+)([^<>]*)>/g)) {
    names.add(name)
    if (close) expect(open.pop()).toBe(name)
    else if (!rest.endsWith('/')) open.push(name)
  }
  expect(open).toEqual([])
  expect(xml.replaceAll(/<[^<>]*>/g, '')).not.toMatch(/[<>]/)
  return names
}

/** Points on a path, close to each other. */
function pointsOf(d: string): [number, number][] {
  const points: [number, number][] = []
  let at: [number, number] = [0, 0]
  for (const [, command, numbers = ''] of d.matchAll(/([MLCQ])([^MLCQ]*)/g)) {
    const given = numbers.trim().split(/[ ,]+/).map(Number)
    const controls: [number, number][] = [at]
    for (let i = 0; i < given.length; i += 2) controls.push([given[i] ?? 0, given[i + 1] ?? 0])
    const steps = command === 'M' ? 0 : 16
    for (let step = 0; step <= steps && command !== 'M'; step++) points.push(bezier(controls, step / steps))
    at = controls.at(-1) ?? at
  }
  return points
}

function bezier(points: readonly [number, number][], t: number): [number, number] {
  if (points.length === 1) return points[0] ?? [0, 0]
  const next = points.slice(1).map((point, index): [number, number] => {
    const [x, y] = points[index] ?? [0, 0]
    return [x + (point[0] - x) * t, y + (point[1] - y) * t]
  })
  return bezier(next, t)
}
