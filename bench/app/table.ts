// The table of what was measured: a row for each figure, beside it what it is compared with.

import { medianOf } from '../statistics.ts'
import { lines } from '../table.ts'
import type { Figures } from './trial.ts'

export function figuresTable(n: number, figures: Figures): string {
  const { idle, connection, peak } = figures
  const { event, patch, begin, done } = medianOf(figures.rounds)
  const takeover = figures.takeovers.length > 0 ? medianOf(figures.takeovers) : undefined
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
  const times = ({ p50, p99 }: { p50: number; p99: number }) => `${p50.toFixed(1)} / ${p99.toFixed(1)} ms`
  const ratio = ({ p50, p99 }: { p50: number; p99: number }) =>
    `${(p50 / patch.p50).toFixed(2)}x / ${(p99 / patch.p99).toFixed(2)}x`
  const rows = [
    [
      'certificates for all apps',
      `${figures.certified.toFixed(1)} s`,
      `CPU ${figures.certifiedCpu.toFixed(1)} ms per app`,
    ],
    [
      'all pods reached and seen Running',
      `${figures.settled.toFixed(1)} s`,
      `CPU ${figures.settledCpu.toFixed(1)} ms per app`,
    ],
    ['idle: RSS', `${idle.rss.toFixed(0)} MB`, `${connection.toFixed(0)} KB per connection`],
    ['  the most so far', `${peak.toFixed(0)} MB`, ''],
    ['  CPU per minute', `${idle.cpu.toFixed(2)} s`, `${((idle.cpu / 60) * 100).toFixed(1)} % of a core`],
    ['  of that pings', `${((idle.ping * idle.pings) / 1e6).toFixed(2)} s`, `${idle.ping.toFixed(0)} µs each`],
    ['  requests per minute but lease and watches', idle.requests.toFixed(1), ''],
    ['a plain status PATCH p50 / p99', times(patch), '1'],
    ['event to status p50 / p99', times(event), ratio(event)],
    ["wish to its run's begin p50 / p99", times(begin), ratio(begin)],
    ['wish to its end in the status p50 / p99', times(done), ratio(done)],
    ...(takeover
      ? [
          ['leader killed: another leads', seconds(takeover.lease), ''],
          ['  the first sidecar is reached', seconds(takeover.first), ''],
          ['  a wish of that moment has its run', seconds(takeover.wish), ''],
          [
            '  all sidecars are reached',
            seconds(takeover.all),
            `${seconds(takeover.all - takeover.lease)} after it leads`,
          ],
          ['  writes per app', takeover.writes.toFixed(3), `${takeover.peak.toFixed(0)} MB at most`],
        ]
      : []),
  ]
  return lines([[`${n.toLocaleString('en')} apps of one pod`, 'measured', 'beside it'], ...rows])
}

export function requestsTable({ asked: { byKind, writes, reads, conflicts }, runsLeft }: Figures): string {
  const rows = Object.entries(byKind).map(([kind, count]) => [`  ${kind}`, count.toFixed(2)])
  const all = [
    ['writes, but events and the gate', writes.toFixed(2)],
    ['reads', reads.toFixed(2)],
  ]
  return lines([
    ['per completed operation', 'requests'],
    ...all,
    ...rows,
    ['conflicts in all', conflicts.toFixed(0)],
    ['runs that sidecars were not told to drop', runsLeft.toFixed(0)],
  ])
}
