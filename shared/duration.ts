/**
 * Durations as Kubernetes writes them: `200ms`, `30s`, `1h30m`. Pure.
 *
 * Guarantee: `parseDuration(formatDuration(ms))` is `ms`, for every whole number of milliseconds from 0 up.
 */
const units = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const

/** One or more numbers with units, largest unit first, each at most once. Without look-ahead, which the API server does not have. */
export const durationPattern =
  /^(\d+h(\d+m)?(\d+(\.\d{1,3})?s)?(\d+ms)?|\d+m(\d+(\.\d{1,3})?s)?(\d+ms)?|\d+(\.\d{1,3})?s(\d+ms)?|\d+ms)$/

/** Milliseconds, or undefined for what is not a duration. */
export function parseDuration(text: string): number | undefined {
  if (!durationPattern.test(text)) return undefined
  let total = 0
  for (const [, number, unit] of text.matchAll(/([\d.]+)(h|ms|m|s)/g)) {
    total += Math.round(Number(number) * units[unit as keyof typeof units])
  }
  return Number.isSafeInteger(total) ? total : undefined
}

/** The shortest way to write so many milliseconds. */
export function formatDuration(ms: number): string {
  let left = Math.round(Math.max(ms, 0))
  if (left === 0) return '0s'
  let text = ''
  for (const [unit, size] of Object.entries(units)) {
    if (left >= size) text += `${Math.floor(left / size)}${unit}`
    left %= size
  }
  return text
}
