// The bar for the app controller.

import { atMost, type Verdict } from '../bar.ts'
import { medianOf } from '../statistics.ts'
import type { Figures } from './trial.ts'

/** From so many apps on, the bar is for the memory; below, for the times. */
const many = 10_000

export function judge(n: number, figures: Figures): Verdict[] {
  const { idle, asked, peak, rounds, takeovers } = figures
  const { event } = medianOf(rounds)
  const most = Math.max(peak, ...takeovers.map(one => one.peak))
  return [
    atMost('no idle request but lease and watches', idle.requests, 0, ''),
    atMost('8 writes per operation of one pod, but events and the gate', asked.writes, 8, ''),
    n < many
      ? atMost('event to status p99 under 100 ms', event.p99, 100, ' ms')
      : atMost('peak RSS within 1 GiB', most, 1073.7, ' MB'),
  ]
}
