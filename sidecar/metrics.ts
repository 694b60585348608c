/**
 * What can be counted, as a page in Prometheus' text format 0.0.4.
 *
 * Guarantee: the page is valid whatever the labels' values hold. A metric without labels is on it from the beginning, one with labels once a value of them
 * was set.
 */
export type Labels<L extends string> = Readonly<Record<L, string>>
type MetricName = `shipmate_sidecar_${string}`

/** How to name the series that is meant: nothing to say where there are no labels. */
type Which<L extends string> = [L] extends [never] ? [] : [labels: Labels<L>]

export interface Counter<L extends string = never> {
  /** Counts one more. */
  inc(...which: Which<L>): void
  /** Counts so many more; a negative number or NaN is not counted. */
  add(by: number, ...which: Which<L>): void
  /** Forgets that series, as when what it is about is gone. */
  remove(...which: Which<L>): void
}

export interface Gauge<L extends string = never> {
  set(value: number, ...which: Which<L>): void
  /** Forgets that series. */
  remove(...which: Which<L>): void
  /** Forgets every series, as when what they are about is gone. */
  clear(): void
}

export interface Histogram<L extends string = never> {
  observe(value: number, ...which: Which<L>): void
}

export interface Registry {
  /** The name ends with `_total`. */
  counter<L extends string = never>(name: `${MetricName}_total`, help: string, labels?: readonly L[]): Counter<L>
  gauge<L extends string = never>(name: MetricName, help: string, labels?: readonly L[]): Gauge<L>
  /** `buckets` are upper bounds, rising, without infinity. */
  histogram<L extends string = never>(
    name: MetricName,
    help: string,
    buckets: readonly number[],
    labels?: readonly L[],
  ): Histogram<L>
  /** Calls before each page, to set what is only known when asked. */
  beforePage(run: () => void): void
  /** The page. */
  page(): string
}

/** The content type of the page. */
export const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8'

export function createRegistry(): Registry {
  const metrics = new Map<string, () => string>()
  const first: (() => void)[] = []

  function register(name: string, type: string, help: string, labels: readonly string[], lines: () => string): void {
    if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name)) throw new TypeError(`"${name}" is no name of a metric`)
    if (metrics.has(name)) throw new TypeError(`there is a metric ${name} already`)
    for (const label of labels) {
      if (!/^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/.test(label) || label === 'le') {
        throw new TypeError(`"${label}" is no name of a label of ${name}`)
      }
    }
    const head = `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`
    metrics.set(name, () => head + lines())
  }

  /** One number for each set of labels. */
  function numbers(name: string, type: string, help: string, labels: readonly string[]) {
    const values = new Map<string, number>()
    if (labels.length === 0) values.set('', 0)
    register(name, type, help, labels, () =>
      [...values].map(([key, value]) => `${name}${braces(key)} ${number(value)}\n`).join(''),
    )
    return values
  }

  return {
    counter(name, help, labels = []) {
      const values = numbers(name, 'counter', help, labels)
      const add = (by: number, which: Labels<string> | undefined) => {
        const key = keyOf(labels, which)
        if (by >= 0) values.set(key, (values.get(key) ?? 0) + by)
      }
      return {
        inc: (...[which]) => add(1, which),
        add: (by, ...[which]) => add(by, which),
        remove: (...[which]) => void values.delete(keyOf(labels, which)),
      }
    },
    gauge(name, help, labels = []) {
      const values = numbers(name, 'gauge', help, labels)
      return {
        set: (value, ...[which]) => void values.set(keyOf(labels, which), value),
        remove: (...[which]) => void values.delete(keyOf(labels, which)),
        clear: () => values.clear(),
      }
    },
    histogram(name, help, buckets, labels = []) {
      if (buckets.some((bound, index) => !Number.isFinite(bound) || bound <= (buckets[index - 1] ?? -Infinity))) {
        throw new TypeError(`the buckets of ${name} do not rise: ${buckets.join(', ')}`)
      }
      const series = new Map<string, Observed>()
      const empty = (): Observed => ({ counts: buckets.map(() => 0), sum: 0, count: 0 })
      if (labels.length === 0) series.set('', empty())
      register(name, 'histogram', help, labels, () =>
        [...series].map(([key, observed]) => histogramLines(name, key, buckets, observed)).join(''),
      )
      return {
        observe(value, ...[which]) {
          if (Number.isNaN(value)) return
          const key = keyOf(labels, which)
          const observed = series.get(key) ?? empty()
          series.set(key, observed)
          const bucket = buckets.findIndex(bound => value <= bound)
          if (bucket >= 0) observed.counts[bucket] = (observed.counts[bucket] ?? 0) + 1
          observed.sum += value
          observed.count++
        },
      }
    },
    beforePage: run => void first.push(run),
    page() {
      for (const run of first) run()
      return [...metrics.values()].map(lines => lines()).join('')
    },
  }
}

interface Observed {
  /** How many fell into each bucket, those of the buckets below not counted. */
  readonly counts: number[]
  sum: number
  count: number
}

function histogramLines(name: string, key: string, buckets: readonly number[], { counts, sum, count }: Observed) {
  const before = key === '' ? '' : `${key},`
  let below = 0
  const lines = buckets.map((bound, index) => {
    below += counts[index] ?? 0
    return `${name}_bucket{${before}le="${number(bound)}"} ${below}\n`
  })
  lines.push(`${name}_bucket{${before}le="+Inf"} ${count}\n`)
  lines.push(`${name}_sum${braces(key)} ${number(sum)}\n${name}_count${braces(key)} ${count}\n`)
  return lines.join('')
}

/** The labels as they stand within braces, which is also what tells series apart. */
function keyOf(labels: readonly string[], values: Labels<string> | undefined): string {
  return labels.map(label => `${label}="${escapeLabel(String(values?.[label] ?? ''))}"`).join(',')
}

const braces = (key: string) => (key === '' ? '' : `{${key}}`)
const escapeHelp = (text: string) => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
const escapeLabel = (text: string) => escapeHelp(text.toWellFormed()).replace(/"/g, '\\"')

function number(value: number): string {
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : String(value)
}
