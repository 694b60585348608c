// The side-by-side table: a row for each figure, a column for each server, with the ratio to the real one.

import { lines } from '../table.ts'
import { reference } from './servers.ts'
import type { Figures } from './trial.ts'

interface Row {
  title: string
  digits: number
  of(figures: Figures): number | undefined
}

const row = (title: string, digits: number, of: Row['of']): Row => ({ title, digits, of })

const rows: Row[] = [
  row('loading the code, ms', 0, ({ load }) => load),
  row('start to first answer, ms', 0, ({ start }) => start),
  row('a create p50, ms', 2, ({ create }) => create.p50),
  row('a create p99, ms', 2, ({ create }) => create.p99),
  row('creates per s', 0, ({ perSecond }) => perSecond),
  row('change to a watcher p50, ms', 2, ({ watch }) => watch?.each.p50),
  row('change to a watcher p99, ms', 2, ({ watch }) => watch?.each.p99),
  row('change to all watchers p50, ms', 2, ({ watch }) => watch?.all.p50),
  row('change to all watchers p99, ms', 2, ({ watch }) => watch?.all.p99),
  row('RSS before, MB', 1, ({ memory }) => memory?.idle),
  row('RSS per 1,000 objects, MB', 2, ({ memory }) => memory?.perThousand),
]

export function figuresTable(figures: ReadonlyMap<string, Figures>): string {
  const names = [...figures.keys()]
  const base = figures.get(reference)
  const cells = rows.map(({ title, digits, of }) => [
    title,
    ...names.map(name => {
      const value = of(figures.get(name) as Figures)
      if (value === undefined) return '–'
      const other = base && name !== reference ? of(base) : undefined
      return value.toFixed(digits) + (other ? ` (${(value / other).toFixed(value / other < 0.1 ? 3 : 2)}x)` : '')
    }),
  ])
  return lines([['', ...names], ...cells])
}
