/**
 * Time, as something that is handed in: everything that waits takes a Clock, so that a test can own time.
 *
 * Guarantee: nothing in shared, controller or sidecar reads the time or sets a timer but through a Clock.
 */
export interface Clock {
  /** Milliseconds since the epoch. May jump, forwards or backwards; for display and for what other machines wrote. */
  now(): number
  /** Milliseconds that never go backwards. Only differences mean anything. */
  monotonic(): number
  /** Calls `run` once, `ms` from now, unless the timer is cancelled first. */
  after(ms: number, run: () => void): Timer
}

export interface Timer {
  cancel(): void
}

/**
 * The longest delay that a Node timer takes; above it Node would fire at once. Longer ones are waited for in pieces.
 */
const longest = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, run) {
    let left = Math.max(ms, 0)
    let timer: ReturnType<typeof setTimeout>
    const wait = () => {
      const piece = Math.min(left, longest)
      left -= piece
      timer = setTimeout(left > 0 ? wait : run, piece)
    }
    wait()
    return { cancel: () => clearTimeout(timer) }
  },
}

/**
 * Resolves after `ms`, or rejects with the signal's reason as soon as it is aborted. Leaves no timer and no listener
 * behind.
 */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => {
      timer.cancel()
      reject(signal?.reason)
    }
    const timer = clock.after(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/** RFC 3339 in whole seconds, as Kubernetes writes times. */
export function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
