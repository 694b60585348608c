/**
 * An async iterable that is read while a controller works.
 *
 * Guarantees: it is read once, from its beginning to its end, however often the work is interrupted: what has been
 * asked for and has not come is waited for the next time. Nothing is kept of what has been read. It is closed once, and
 * nobody waits for that.
 */
export class Source<V> {
  readonly #iterable: AsyncIterable<V>
  #iterator: AsyncIterator<V> | undefined
  /** Asked for, and not there yet. */
  #next: Promise<IteratorResult<V>> | undefined
  #isOver = false

  constructor(iterable: AsyncIterable<V>) {
    this.#iterable = iterable
  }

  /**
   * Hands over what comes, until the signal is aborted or no more comes. If the iterable or `take` throws, it is over,
   * and that is thrown.
   */
  async read(take: (value: V) => void, signal: AbortSignal): Promise<void> {
    /** Ends the wait for the next one. */
    let leave = () => {}
    const stop = () => leave()
    signal.addEventListener('abort', stop, { once: true })
    try {
      while (!signal.aborted && !this.#isOver) {
        this.#iterator ??= this.#iterable[Symbol.asyncIterator]()
        this.#next ??= Promise.resolve(this.#iterator.next())
        const asked = this.#next
        // No race with a promise that outlives the round: that one would keep something of every round.
        const next = await new Promise<IteratorResult<V> | undefined>((resolve, reject) => {
          leave = () => resolve(undefined)
          asked.then(resolve, reject)
        })
        if (!next) return
        this.#next = undefined
        if (next.done) this.#isOver = true
        else take(next.value)
      }
    } catch (error) {
      this.close()
      throw error
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  close(): void {
    if (this.#isOver) return
    this.#isOver = true
    // Not awaited: an iterator that waits for its next value may not return before it has one.
    void Promise.resolve()
      .then(() => this.#iterator?.return?.())
      .catch(() => undefined)
  }
}
