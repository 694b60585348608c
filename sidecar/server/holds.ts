/**
 * Calls that are held until something happens, their time is up, their caller goes away, or the server stops.
 *
 * Guarantee: a hold leaves no timer and no listener behind, however it ends.
 */
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../shared/clock.ts'

/** Calls `wake` when what is waited for may have come; answers how to stop. */
export type Watch = (wake: () => void) => () => void

export interface Holds {
  /** Resolves when the hold ends, for whatever reason; the caller looks at what is the case then. */
  hold(response: ServerResponse, ms: number, watch: Watch): Promise<void>
  /** Ends all, and each that comes later at once. */
  release(): void
}

export function createHolds(clock: Clock): Holds {
  const held = new Set<() => void>()
  let released = false
  return {
    hold(response, ms, watch) {
      if (released || response.destroyed || ms <= 0) return Promise.resolve()
      return new Promise(resolve => {
        const end = () => {
          if (!held.delete(end)) return
          timer.cancel()
          response.off('close', end)
          stop()
          resolve()
        }
        held.add(end)
        const timer = clock.after(ms, end)
        response.on('close', end)
        const stop = watch(end)
      })
    },
    release() {
      released = true
      for (const end of [...held]) end()
    },
  }
}
