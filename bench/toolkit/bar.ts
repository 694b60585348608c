// The bar for the toolkit: no request that nothing asks for.

import { atMost, type Verdict } from '../bar.ts'
import type { BenchOptions } from './options.ts'
import { ours } from './programs.ts'
import type { Figures } from './trial.ts'

export function judge(figures: ReadonlyMap<string, Figures>, { n, changes }: BenchOptions): Verdict[] {
  const own = figures.get(ours)
  return [
    atMost('no request when nothing changed', own?.unchanged.requests, 0, ''),
    atMost(
      '11 requests for the first deployment: ten children, one status',
      own && own.deployment.requests / n,
      11,
      '',
    ),
    atMost('2 requests per change: the child, the status', own && own.change.requests / (n * changes), 2, ''),
    atMost('no write after a restart', own?.restart.writes, 0, ''),
  ]
}
