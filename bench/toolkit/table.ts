// The side-by-side table: a row for each figure, a column for each program, with the ratio to controller-runtime.

import { lines } from '../table.ts'
import type { BenchOptions } from './options.ts'
import { reference } from './programs.ts'
import type { Figures } from './trial.ts'

interface Row {
  title: string
  digits: number
  /** Whether a ratio to the reference says something. */
  isCompared: boolean
  of(figures: Figures): number
}

const row = (title: string, digits: number, isCompared: boolean, of: Row['of']): Row => ({
  title,
  digits,
  isCompared,
  of,
})

export function figuresTable(figures: ReadonlyMap<string, Figures>, { n, changes }: BenchOptions): string {
  const all = n * changes
  const rows = [
    row('first deployment, per Stack: requests', 3, true, ({ deployment }) => deployment.requests / n),
    row('  writes', 3, true, ({ deployment }) => deployment.writes / n),
    row('  of them conflicts (409)', 3, false, ({ deployment }) => deployment.conflicts / n),
    row('  reconciliations', 2, false, ({ deployment }) => deployment.reconciliations / n),
    row('  CPU, ms', 2, true, ({ deployment }) => (deployment.cpu * 1_000) / n),
    row('nothing changed, per reconciliation: requests', 3, true, perReconciliation('requests')),
    row('  writes', 3, true, perReconciliation('writes')),
    row('  CPU, ms', 2, true, ({ unchanged }) => (unchanged.cpu * 1_000) / unchanged.reconciliations),
    row('one child changed, per change: requests', 3, true, ({ change }) => change.requests / all),
    row('  writes', 3, true, ({ change }) => change.writes / all),
    row('  of them conflicts (409)', 3, false, ({ change }) => change.conflicts / all),
    row('  reconciliations', 2, false, ({ change }) => change.reconciliations / all),
    row('  CPU, ms', 2, true, ({ change }) => (change.cpu * 1_000) / all),
    row('restart: writes in all', 0, false, ({ restart }) => restart.writes),
    row('  reconciliations per Stack', 2, false, ({ restart }) => restart.reconciliations / n),
    row('  CPU in all, s', 2, true, ({ restart }) => restart.cpu),
    row('peak RSS, MB', 1, true, ({ rss }) => rss),
  ]
  const names = [...figures.keys()]
  const base = figures.get(reference)
  const cells = rows.map(({ title, digits, isCompared, of }) => [
    title,
    ...names.map(name => {
      const value = of(figures.get(name) as Figures)
      const other = base && isCompared && name !== reference ? of(base) : undefined
      return value.toFixed(digits) + (other ? ` (${(value / other).toFixed(2)}x)` : '')
    }),
  ])
  return lines([[`${n.toLocaleString('en')} Stacks`, ...names], ...cells])
}

function perReconciliation(what: 'requests' | 'writes'): Row['of'] {
  return ({ unchanged }) => unchanged[what] / unchanged.reconciliations
}
