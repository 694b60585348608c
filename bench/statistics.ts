// Percentiles by nearest rank, and the median of many trials' figures, number by number.

/** The smallest value that at least so many percent of the values do not exceed. */
export function percentile(values: number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN
}

/** An object of the same shape whose every number is the median of that number in those that have it. */
export function medianOf<T extends object>(all: T[]): T {
  const keys = new Set(all.flatMap(one => Object.keys(one))) as Set<keyof T & string>
  const entries = [...keys].map(key => {
    const values = all.map(one => one[key]).filter(value => value !== undefined)
    return [key, typeof values[0] === 'object' ? medianOf(values as object[]) : median(values as number[])]
  })
  return Object.fromEntries(entries) as T
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? upper
  return (lower + upper) / 2
}
