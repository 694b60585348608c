/**
 * Who may connect when: a few at once; the urgent first, in their order; the others one after the other with jitter, so that ten thousand sidecars
 * are not greeted in the same second.
 */
import type { Clock, Timer } from '../../../shared/clock.ts'

export interface PaceOptions {
  readonly clock: Clock
  readonly random: () => number
  /** How many may be connecting at once. */
  readonly atOnce: number
  /** How many that are not urgent may begin in a second, on average. */
  readonly perSecond: number
}

export type Urgency = 'urgent' | 'usual'

export interface Pace {
  /** Calls `begin` when it is the turn of `key`, which then holds a place until `leave`. Asking again changes its urgency alone. */
  ask(key: object, urgency: Urgency, begin: () => void): void
  /** It is not connecting any more, or does not want to. */
  leave(key: object): void
  close(): void
}

export function createPace({ clock, random, atOnce, perSecond }: PaceOptions): Pace {
  const urgent = new Map<object, () => void>()
  const usual = new Map<object, () => void>()
  const busy = new Set<object>()
  let timer: Timer | undefined

  const start = (waiting: Map<object, () => void>): boolean => {
    const [first] = waiting
    if (!first) return false
    const [key, begin] = first
    waiting.delete(key)
    busy.add(key)
    begin()
    return true
  }

  const go = () => {
    while (busy.size < atOnce && start(urgent)) {}
    if (timer || usual.size === 0 || busy.size >= atOnce) return
    timer = clock.after((1000 / perSecond) * 2 * random(), () => {
      timer = undefined
      if (busy.size < atOnce && urgent.size === 0) start(usual)
      go()
    })
  }

  return {
    ask(key, urgency, begin) {
      if (busy.has(key)) return
      if (urgency === 'urgent') {
        usual.delete(key)
        urgent.set(key, begin)
      } else if (!urgent.has(key)) usual.set(key, begin)
      go()
    },
    leave(key) {
      urgent.delete(key)
      usual.delete(key)
      if (busy.delete(key)) go()
    },
    close() {
      timer?.cancel()
      for (const waiting of [urgent, usual]) waiting.clear()
    },
  }
}
