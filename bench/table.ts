// The side-by-side table: a row for each figure, a column for each program, with the ratio to controller-runtime.

import { perWidget, type Verdict } from './bar.ts'
import { reference } from './programs.ts'
import type { Figures } from './trial.ts'

interface Row {
  title: string
  digits: number
  /** Whether a ratio to the reference says something. */
  isCompared: boolean
  of(figures: Figures, n: number): number | undefined
}

const row = (title: string, digits: number, isCompared: boolean, of: Row['of']): Row => ({
  title,
  digits,
  isCompared,
  of,
})

const rows: Row[] = [
  row('cold convergence, s', 2, true, ({ cold }) => cold),
  row('CPU, s', 2, true, ({ cpu }) => cpu),
  row('peak RSS, MB', 1, true, ({ rss }) => rss),
  row('requests per Widget', 3, true, perWidget),
  row('  writes', 0, true, ({ requests }) => requests.writes),
  row('  of them conflicts (409)', 0, false, ({ requests }) => requests.conflicts),
  row('  gets', 0, false, ({ requests }) => requests.gets),
  row('  other failures', 0, false, ({ requests }) => requests.failures),
  row('lists and discovery', 0, false, ({ requests }) => requests.lists),
  row('watches', 0, false, ({ requests }) => requests.watches),
  row('change to status p50, ms', 1, true, ({ change }) => change?.p50),
  row('change to status p99, ms', 1, true, ({ change }) => change?.p99),
  row('deleted child repaired, ms', 1, true, ({ repair }) => repair?.deleted),
  row('changed child repaired, ms', 1, true, ({ repair }) => repair?.changed),
  row('writes after a restart', 0, false, ({ restart }) => restart?.writes),
  row('CPU of a restart, s', 2, true, ({ restart }) => restart?.cpu),
  row('idle requests per minute', 1, false, ({ idle }) => idle && idle.gets + idle.writes + idle.lists),
  row('  idle watches per minute', 1, false, ({ idle }) => idle?.watches),
  row('  idle lease requests per minute', 1, false, ({ idle }) => idle?.leases),
]

export function figuresTable(n: number, figures: ReadonlyMap<string, Figures>): string {
  const names = [...figures.keys()]
  const base = figures.get(reference)
  const cells = rows.map(({ title, digits, isCompared, of }) => [
    title,
    ...names.map(name => {
      const value = of(figures.get(name) as Figures, n)
      if (value === undefined) return '–'
      const other = base && isCompared && name !== reference ? of(base, n) : undefined
      return value.toFixed(digits) + (other ? ` (${(value / other).toFixed(2)}x)` : '')
    }),
  ])
  return lines([[`N = ${n.toLocaleString('en')}`, ...names], ...cells])
}

export function verdictTable(verdicts: Verdict[]): string {
  const word = (isMet: boolean | undefined) => (isMet === undefined ? '?' : isMet ? 'pass' : 'MISS')
  return verdicts.map(({ rule, measured, isMet }) => `${word(isMet).padEnd(5)} ${rule}: ${measured}`).join('\n')
}

/** The first column to the left, the others to the right, the first line underlined. */
export function lines(cells: string[][]): string {
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map(line => line[column]?.length ?? 0)))
  const text = cells.map(line =>
    line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  '),
  )
  return [text[0], '─'.repeat(text[0]?.length ?? 0), ...text.slice(1)].join('\n')
}
