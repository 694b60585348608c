// The bar for our own runtime, beside Go's controller-runtime in the same run. A bar whose figure is missing is not
// met and not missed: it is said to be unknown.

import { programs, reference } from './programs.ts'
import type { Figures } from './trial.ts'

export interface Verdict {
  rule: string
  /** What was measured, in words. */
  measured: string
  /** Undefined when there is nothing to compare. */
  isMet: boolean | undefined
}

/** Ours, whom the bar is for. */
export const ours = programs[0]?.name ?? ''

export function judge(n: number, figures: ReadonlyMap<string, Figures>): Verdict[] {
  const own = figures.get(ours)
  const go = figures.get(reference)
  const ratio = (rule: string, of: (figures: Figures) => number | undefined, limit: number) => {
    const [a, b] = [own && of(own), go && of(go)]
    return atMost(rule, a !== undefined && b !== undefined ? a / b : undefined, limit, 'x')
  }
  const idle = own?.idle
  const memory = n <= 1_000 ? 120 : 200
  return [
    ratio("cold convergence no slower than controller-runtime's", ({ cold }) => cold, 1),
    ratio("change to status p99 no slower than controller-runtime's", ({ change }) => change?.p99, 1),
    ratio("CPU at most twice controller-runtime's", ({ cpu }) => cpu, 2),
    atMost(`peak RSS at most ${memory} MB`, own?.rss, memory, ' MB'),
    atMost('2 requests per Widget: one create, one status write', own && perWidget(own, n), 2, ''),
    atMost('no write after a restart', own?.restart?.writes, 0, ''),
    atMost('no idle request but watches and leases', idle && idle.gets + idle.writes + idle.lists, 0, ''),
  ]
}

/** @param value undefined, as the limit, when it was not measured */
export function atMost(rule: string, value: number | undefined, limit: number | undefined, unit: string): Verdict {
  if (value === undefined || limit === undefined) return { rule, measured: 'not measured', isMet: undefined }
  return { rule, measured: `${value.toFixed(2)}${unit} ≤ ${limit.toFixed(2)}${unit}`, isMet: value <= limit }
}

/** Requests for single objects, divided by how many Widgets there are. */
export const perWidget = ({ requests }: Figures, n: number) => (requests.gets + requests.writes) / n
