/**
 * When a container that ended starts again: the first time at once, then after a time that doubles; one that ran for long begins anew. Pure.
 */
export interface CrashBackoff {
  /** Milliseconds before the second restart. Default 10,000, as a kubelet's. */
  readonly first: number
  /** No wait is longer. Default 300,000. */
  readonly longest: number
}

export const kubeletBackoff: CrashBackoff = { first: 10_000, longest: 300_000 }

/** How often it has ended in a row, after one more end. */
export function nextCrashes(crashes: number, ranMs: number, { longest }: CrashBackoff): number {
  return ranMs > 2 * longest ? 1 : crashes + 1
}

/** Milliseconds from its end until it starts again. */
export function crashDelay(crashes: number, { first, longest }: CrashBackoff): number {
  return crashes <= 1 ? 0 : Math.min(first * 2 ** Math.min(crashes - 2, 40), longest)
}
