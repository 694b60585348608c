/**
 * How long to wait when the same thing fails again and again: per custom resource, what failed, and the kind of error.
 *
 * Guarantees: each further failure of the same sort doubles the wait, up to a longest one; a failure of another sort begins from the first wait; what no
 * longer fails is forgotten. A reconciliation that something else has caused meanwhile neither lengthens a wait nor begins it anew. Memory is one small map
 * for each custom resource that fails now.
 */
import { type Backoff, delay } from '../../shared/backoff.ts'
import { type Clock, systemClock } from '../../shared/clock.ts'

export interface ThrottleOptions extends Partial<Backoff> {
  readonly random?: (() => number) | undefined
  readonly clock?: Clock | undefined
}

/** What failed, and how. */
export interface Failure {
  /** As `Deployment sample`. */
  readonly on: string
  /** As `Invalid`. */
  readonly kind: string
}

export interface Throttle {
  /** All that failed in one reconciliation; answers in how many milliseconds to try again. */
  failed(uid: string, failures: readonly Failure[]): number
  /** Nothing fails any more, or it is gone. */
  forget(uid: string): void
}

const usualThrottle: Backoff = { first: 1000, longest: 600_000, jitter: 0.2 }

interface Wait {
  /** How often it has failed, as far as that counts. */
  readonly failures: number
  /** When it is tried again, on the monotonic clock. */
  readonly until: number
}

export function createThrottle(options: ThrottleOptions = {}): Throttle {
  const { random = Math.random, clock = systemClock, ...given } = options
  const backoff = { ...usualThrottle, ...given }
  const waits = new Map<string, ReadonlyMap<string, Wait>>()
  return {
    failed(uid, failures) {
      const now = clock.monotonic()
      const before = waits.get(uid)
      const next = new Map<string, Wait>()
      for (const { on, kind } of failures) {
        const sort = `${kind} ${on}`
        const last = before?.get(sort)
        const count = (last?.failures ?? 0) + 1
        // A timer may come a moment early.
        if (last && now < last.until - 1) next.set(sort, last)
        else next.set(sort, { failures: count, until: now + delay(backoff, count, random) })
      }
      waits.set(uid, next)
      // What is new is tried again soon, even beside what has failed for long.
      return Math.min(...[...next.values()].map(({ until }) => until - now))
    },
    forget: uid => void waits.delete(uid),
  }
}
