// The bar for the embedded API server, beside the real one in the same run.

import { atMost, type Verdict } from '../bar.ts'
import { reference } from './servers.ts'
import type { Figures } from './trial.ts'

export function judge(figures: ReadonlyMap<string, Figures>): Verdict[] {
  const [own, inside, real] = ['embedded', 'inside', reference].map(name => figures.get(name))
  const ratio = (rule: string, of: (figures: Figures) => number | undefined, limit: number) => {
    const [a, b] = [own && of(own), real && of(real)]
    return atMost(rule, a !== undefined && b !== undefined ? a / b : undefined, limit, 'x')
  }
  return [
    atMost('as a program ready within 300 ms', own?.start, 300, ' ms'),
    atMost("within a test's process ready within 50 ms", inside?.start, 50, ' ms'),
    ratio('start 10 times faster', ({ start }) => start, 0.1),
    ratio('create p50 lower', ({ create }) => create.p50, 1),
    ratio('create p99 lower', ({ create }) => create.p99, 1),
    ratio('change to a watcher p50 lower', ({ watch }) => watch?.each.p50, 1),
    ratio('change to a watcher p99 lower', ({ watch }) => watch?.each.p99, 1),
    ratio('change to all watchers p50 lower', ({ watch }) => watch?.all.p50, 1),
  ]
}
