// The side-by-side tables: a row for each figure, a column for each program, with the ratio to the bare server's.

import { lines } from '../table.ts'
import type { BenchOptions } from './options.ts'
import { type AllFigures, type Figures, names } from './trial.ts'

type Of = (figures: Figures) => number | undefined

interface Row {
  title: string
  digits: number
  of: Of
  /** What of the bare server's it is compared to. */
  to: Of
}

const row = (title: string, digits: number, of: Of, to = of): Row => ({ title, digits, of, to })
/** Where a ratio says nothing. */
const nothing: Of = () => undefined

export function figuresTable(figures: AllFigures, { actions, readers }: BenchOptions): string {
  const count = actions.toLocaleString('en')
  return tableOf('', figures, [
    row('start to ready, ms', 0, ({ ready }) => ready),
    row('idle RSS, MB', 1, ({ idle }) => idle.rss),
    row('idle PSS, two on a node, MB', 1, ({ idle }) => idle.pss),
    row(
      `RSS after ${count} runs, MB`,
      1,
      ({ after }) => after?.rss,
      ({ idle }) => idle.rss,
    ),
    row(
      '  the most until then, MB',
      1,
      ({ peak }) => peak,
      ({ idle }) => idle.rss,
    ),
    row('RSS of shipmate-init, MB', 1, ({ supervisor }) => supervisor, nothing),
    row('CPU with five probes per 2 s, ms/s', 1, ({ cpu }) => cpu),
    row('a run (spawn) p50, ms', 2, ({ run }) => run.p50),
    row('a run (spawn) p99, ms', 2, ({ run }) => run.p99),
    row('PUT to first event p50, ms', 2, ({ first }) => first?.p50, nothing),
    row('PUT to first event p99, ms', 2, ({ first }) => first?.p99, nothing),
    row('one fsync p50, ms', 2, ({ fsync }) => fsync?.p50, nothing),
    row('one fsync p99, ms', 2, ({ fsync }) => fsync?.p99, nothing),
    row('runs (spawns) per s, 16 at once', 0, ({ burst }) => burst?.runs),
    row('  events per s', 0, ({ burst }) => burst?.events, nothing),
    row(
      `the same with ${readers} readers, runs per s`,
      0,
      ({ crowd }) => crowd?.runs,
      ({ burst }) => burst?.runs,
    ),
    row('  messages per s, to all of them', 0, ({ crowd }) => crowd?.messages, nothing),
  ])
}

/** How much of the memory is what. */
export function memoryTable(figures: AllFigures, { actions }: BenchOptions): string {
  const count = actions.toLocaleString('en')
  const own = (memory: Figures['after']) => memory && memory.changed + memory.malloc + memory.anonymous
  return tableOf('MB', figures, [
    row('idle', 1, ({ idle }) => idle.rss),
    row("  Node's binary, shared", 1, ({ idle }) => idle.binary),
    row('  libraries, shared', 1, ({ idle }) => idle.libraries),
    row('  of its own', 1, ({ idle }) => own(idle)),
    row('    changed pages of files', 1, ({ idle }) => idle.changed),
    row("    the C library's heap", 1, ({ idle }) => idle.malloc),
    row('    other anonymous memory', 1, ({ idle }) => idle.anonymous),
    row("      of it V8's heap", 1, ({ heap }) => heap.heap),
    row('  buffers outside the heap', 1, ({ heap }) => heap.external),
    row(`after ${count} runs`, 1, ({ after }) => after?.rss, nothing),
    row("  Node's binary, shared", 1, ({ after }) => after?.binary, nothing),
    row('  of its own', 1, ({ after }) => own(after), nothing),
    row("    the C library's heap", 1, ({ after }) => after?.malloc, nothing),
    row('    other anonymous memory', 1, ({ after }) => after?.anonymous, nothing),
  ])
}

function tableOf(title: string, figures: AllFigures, rows: Row[]): string {
  const cells = rows.map(({ title, digits, of, to }) => [
    title,
    ...names.map(name => {
      const value = of(figures[name])
      if (value === undefined) return '–'
      const base = name === 'bare' ? undefined : to(figures.bare)
      return value.toFixed(digits) + (base ? ` (${(value / base).toFixed(2)}x)` : '')
    }),
  ])
  return lines([[title, ...names], ...cells])
}
