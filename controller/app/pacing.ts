/**
 * How long to wait before something is tried once more: the safety net, for where nobody says that it is time.
 */
const first = 1000
const longest = 300_000

/** Milliseconds before the attempt after `times` of them: from a second to five minutes. */
export function nextDelay(times: number): number {
  return Math.min(first * 2 ** (Math.max(times, 1) - 1), longest)
}
