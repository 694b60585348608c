/**
 * So many at once, the others in the order in which they came.
 */
export interface Turns {
  /** Does it when there is a turn; rejects with the signal's reason if that is aborted before. */
  take<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
}

export function createTurns(most: number): Turns {
  const waiting: (() => void)[] = []
  let free = most
  const next = () => {
    const first = waiting.shift()
    if (first) first()
    else free++
  }
  return {
    async take(work, signal) {
      if (free > 0) free--
      else await new Promise<void>(resolve => waiting.push(resolve))
      try {
        signal.throwIfAborted()
        return await work()
      } finally {
        next()
      }
    },
  }
}
