/**
 * A value that is fetched when it is first wanted, and then kept.
 *
 * Guarantees: whoever asks at the same time shares one fetch, which is given up when the last of them has left; a failure
 * is told and not kept; a fetch that was under way when the value was forgotten is not kept either.
 */
import type { Clock } from '../../shared/clock.ts'

interface Fetch<T> {
  readonly value: Promise<T>
  readonly at: number
  readonly stop: AbortController
  waiting: number
}

export class Memo<T> {
  readonly #fetch: (signal: AbortSignal) => Promise<T>
  readonly #clock: Clock
  #kept: { value: T; at: number } | undefined
  #underWay: Fetch<T> | undefined

  constructor(fetch: (signal: AbortSignal) => Promise<T>, clock: Clock) {
    this.#fetch = fetch
    this.#clock = clock
  }

  /** The value, at most `maxAge` milliseconds old. Rejects with the signal's reason when it is aborted. */
  async get(maxAge: number, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    if (this.#kept && this.#clock.monotonic() - this.#kept.at < maxAge) return this.#kept.value
    this.#underWay ??= this.#begin()
    const mine = this.#underWay
    mine.waiting++
    let abort: (() => void) | undefined
    try {
      const left = new Promise<never>((_resolve, reject) => {
        abort = () => reject(signal?.reason)
        signal?.addEventListener('abort', abort, { once: true })
      })
      return await Promise.race([mine.value, left])
    } finally {
      if (abort) signal?.removeEventListener('abort', abort)
      mine.waiting--
      if (mine.waiting === 0) {
        mine.stop.abort()
        if (this.#underWay === mine) this.#underWay = undefined
      }
    }
  }

  /** The next to ask gets a new one. */
  forget(): void {
    this.#kept = undefined
    this.#underWay = undefined
  }

  #begin(): Fetch<T> {
    const stop = new AbortController()
    // As old as the question: the answer may have been decided at any time since.
    const at = this.#clock.monotonic()
    const value = this.#fetch(stop.signal)
    const fetch: Fetch<T> = { value, at, stop, waiting: 0 }
    const done = () => {
      if (this.#underWay !== fetch) return false
      this.#underWay = undefined
      return true
    }
    value.then(
      value => {
        if (done()) this.#kept = { value, at }
      },
      () => done(),
    )
    return fetch
  }
}
