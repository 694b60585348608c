/**
 * Time that passes when nothing else happens: a test of minutes takes milliseconds, and goes the same way each time.
 *
 * Guarantees: timers run in the order in which they are due, each at its own time; none runs while a request is under way or a promise can still settle. What a
 * process has set never runs once the process is dead.
 */
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import type { Clock, Timer } from '../../shared/clock.ts'

interface Due {
  readonly at: number
  readonly run: () => void
}

export interface Time extends Clock {
  /** The clock of a process; after `die` nothing that it has set runs. */
  process(): Clock & { die(): void }
  /** Lets time pass until `holds`, for `limit` milliseconds at most: whether it does. */
  pass(holds: () => boolean, limit: number): Promise<boolean>
}

/** Real milliseconds after which whoever is busy is no longer waited for: it waits for time itself. */
const longestBusy = 10_000
/** The same where a reconciliation is under way but asks nothing of the server: it talks to somebody else, or waits for time. */
const patience = 20

/** @param busy how many requests are under way @param working how many reconciliations are */
export function createTime(busy: () => number, working: () => Promise<number>, wall = Date.UTC(2026, 0, 1)): Time {
  const timers: Due[] = []
  let time = 0
  let isPassing = false

  function after(ms: number, run: () => void): Timer {
    const due: Due = { at: time + Math.max(ms, 0), run }
    timers.splice(timers.findLastIndex(other => other.at <= due.at) + 1, 0, due)
    return {
      cancel() {
        const index = timers.indexOf(due)
        if (index >= 0) timers.splice(index, 1)
      },
    }
  }

  /** Until nothing moves any more by itself. */
  async function rest(): Promise<void> {
    const began = performance.now()
    for (let quiet = 0; quiet < 3; quiet++) {
      await turn()
      const waited = performance.now() - began
      if (busy() > 0 && waited < longestBusy) quiet = -1
      else if (quiet === 2 && waited < patience && (await working()) > 0) {
        quiet = -1
        await wait(1)
      }
    }
  }

  async function pass(holds: () => boolean, limit: number): Promise<boolean> {
    if (isPassing) throw new Error('time passes already: await what was begun before')
    isPassing = true
    const end = time + limit
    try {
      await rest()
      while (!holds()) {
        const next = timers[0]
        if (!next || next.at > end) {
          time = end
          return holds()
        }
        timers.shift()
        time = next.at
        next.run()
        await rest()
      }
      return true
    } finally {
      isPassing = false
    }
  }

  const now = () => wall + time
  const monotonic = () => time
  return {
    ...{ now, monotonic, after, pass },
    process() {
      let isDead = false
      return {
        now,
        monotonic,
        after: (ms, run) => after(ms, () => isDead || run()),
        die: () => {
          isDead = true
        },
      }
    },
  }
}
