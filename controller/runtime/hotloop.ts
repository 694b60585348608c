/**
 * Finds a key that is written again and again without getting anywhere, and says how long to hold it.
 *
 * Guarantee: a key whose reconciliations change the cluster more than `burst` times in a row, faster than one in
 * `refill`, while nobody else changes its spec and it gets no further, is held; a new generation, a step further, or
 * quiet sets it free. A legitimate busy key is slowed down, never stopped.
 */
import { type Clock, systemClock } from '../../shared/clock.ts'

export interface HotLoopOptions {
  /** Reconciliations with effect that are free. Default 20. */
  readonly burst?: number | undefined
  /** Another one is free every so many milliseconds. Default 5,000. */
  readonly refill?: number | undefined
  /** The longest hold, in milliseconds. Default 60,000. */
  readonly longest?: number | undefined
  readonly clock?: Clock | undefined
}

interface Track {
  tokens: number
  at: number
  generation: number | undefined
  /** How far it has got. */
  further: unknown
  /** Holds in a row. */
  holds: number
}

export class HotLoop {
  readonly #burst: number
  readonly #refill: number
  readonly #longest: number
  readonly #clock: Clock
  readonly #tracks = new Map<string, Track>()
  #sweepAt = 1024

  constructor(options: HotLoopOptions = {}) {
    this.#burst = options.burst ?? 20
    this.#refill = options.refill ?? 5000
    this.#longest = options.longest ?? 60_000
    this.#clock = options.clock ?? systemClock
  }

  /**
   * A reconciliation of `key` changed the cluster. `generation` is the one that it began with; `after` the one that it
   * left, if it wrote the spec itself; `further` tells how far it has got, by whoever knows. Returns milliseconds to
   * hold it, and 0 for none.
   */
  wrote(key: string, generation: number | undefined, after = generation, further?: unknown): number {
    const now = this.#clock.monotonic()
    let track = this.#tracks.get(key)
    if (!track || track.generation !== generation || track.further !== further) {
      if (!track) this.#sweep(now)
      track = { tokens: this.#burst, at: now, generation, further, holds: 0 }
      this.#tracks.set(key, track)
    }
    track.tokens = Math.min(this.#burst, track.tokens + Math.max(now - track.at, 0) / this.#refill)
    track.at = now
    track.generation = after
    if (track.tokens >= 1) {
      track.tokens--
      if (track.tokens > this.#burst / 2) track.holds = 0
      return 0
    }
    track.holds++
    const hold = Math.min(this.#refill * 2 ** (track.holds - 1), this.#longest)
    // Being held is not quiet: nothing becomes free by it.
    track.at = now + hold
    return hold
  }

  forget(key: string): void {
    this.#tracks.delete(key)
  }

  /** Forgets who has been quiet long enough to start over anyway; each time the number of tracks has doubled. */
  #sweep(now: number): void {
    if (this.#tracks.size < this.#sweepAt) return
    for (const [key, track] of this.#tracks) if (now - track.at > this.#burst * this.#refill) this.#tracks.delete(key)
    this.#sweepAt = Math.max(1024, this.#tracks.size * 2)
  }
}
