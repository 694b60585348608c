// The bar for the agent's memory, beside a bare server in the same run.

import { atMost, type Verdict } from '../bar.ts'
import type { BenchOptions } from './options.ts'
import type { AllFigures } from './trial.ts'

/** How many runs the second bar is for. */
const enough = 2_000

export function judge({ bare, agent }: AllFigures, { actions }: BenchOptions): Verdict[] {
  const after = actions < enough ? undefined : agent.after?.rss
  return [
    atMost("idle RSS at most 1.2 times the bare server's", agent.idle.rss / bare.idle.rss, 1.2, 'x'),
    atMost("RSS after 2,000 runs at most 1.4 times the bare server's idle", after && after / bare.idle.rss, 1.4, 'x'),
  ]
}
