/**
 * Growing, jittered delays. Pure: the attempt and the random source come in.
 */
export interface Backoff {
  /** The first delay, in milliseconds. */
  readonly first: number
  /** No delay is longer, in milliseconds. */
  readonly longest: number
  /** How much of the delay is random, from 0 (none) to 1 (all of it). Default 0.5. */
  readonly jitter?: number
}

/**
 * The delay before try `failures + 1`: doubles with each failure from `first` up to `longest`, then loses a random part
 * of `jitter`.
 */
export function delay(backoff: Backoff, failures: number, random: () => number): number {
  const full = Math.min(backoff.first * 2 ** Math.min(Math.max(failures - 1, 0), 60), backoff.longest)
  return full * (1 - (backoff.jitter ?? 0.5) * random())
}
