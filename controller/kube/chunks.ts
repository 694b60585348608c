/**
 * The body of a stream as an async iterable, with back pressure: what the reader has not taken is bounded.
 *
 * Guarantee: every chunk that came before the end or the failure is handed over before it; leaving the loop closes the connection.
 */
export interface Source {
  pause(): void
  resume(): void
  cancel(): void
}

/** Bytes that may wait for the reader before the connection is told to pause. */
const highWater = 1 << 20

export class Chunks implements AsyncIterable<Uint8Array> {
  readonly #source: Source
  #waiting: Uint8Array[] = []
  #bytes = 0
  #paused = false
  #over: { error?: Error } | undefined
  #wake: (() => void) | undefined

  constructor(source: Source) {
    this.#source = source
  }

  push(chunk: Uint8Array): void {
    if (this.#over) return
    this.#waiting.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes > highWater && !this.#paused) {
      this.#paused = true
      this.#source.pause()
    }
    this.#wake?.()
  }

  end(): void {
    this.#over ??= {}
    this.#wake?.()
  }

  fail(error: Error): void {
    this.#over ??= { error }
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        while (this.#waiting.length > 0) {
          const chunk = this.#waiting.length === 1 ? (this.#waiting[0] as Uint8Array) : Buffer.concat(this.#waiting)
          this.#waiting = []
          this.#bytes = 0
          if (this.#paused) {
            this.#paused = false
            this.#source.resume()
          }
          yield chunk
        }
        if (this.#over?.error) throw this.#over.error
        if (this.#over) return
        await new Promise<void>(resolve => {
          this.#wake = resolve
        })
        this.#wake = undefined
      }
    } finally {
      if (!this.#over) {
        this.#over = {}
        this.#waiting = []
        this.#source.cancel()
      }
    }
  }
}
