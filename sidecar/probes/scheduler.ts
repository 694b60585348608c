/**
 * Makes the attempts of all probes, each in its own time, and keeps what is known.
 *
 * Guarantees: no two attempts of one probe at once, be it that one hangs and cannot be ended. Attempts begin at whole multiples of `every` from the first,
 * on the monotonic clock, so they do not drift; those that would begin within another are left out. Who listens is told in the same turn of the event loop.
 */
import { canonicalJson } from '../../shared/canonical.ts'
import type { Clock, Timer } from '../../shared/clock.ts'
import { parseDuration } from '../../shared/duration.ts'
import { defaults, type Probe } from '../../shared/lifecycle/model.ts'
import {
  type Attempt,
  differs,
  none,
  nothingKnown,
  type ProbeMemory,
  step,
  type Thresholds,
  viewOf,
} from '../../shared/lifecycle/threshold.ts'
import type { Logger } from '../../shared/log.ts'
import type { ProbeState } from '../../shared/protocol/schemas.ts'
import type { SeenFiles } from './file.ts'
import { attemptProbe } from './kinds.ts'

export interface ProbesOptions {
  readonly clock: Clock
  readonly log: Pick<Logger, 'error' | 'debug'>
  /** Called after each attempt; `changed` if its `ok`, `value` or `error` has. */
  readonly onAnswer: (name: string, view: ProbeState, changed: boolean) => void
}

export interface Probes {
  /** From now on these, each with a name of its own. One whose declaration is as it was goes on undisturbed; one that is new or changed begins anew. */
  set(probes: readonly Probe[]): void
  /** What is known of each, by name, in the order of declaration. */
  view(): Record<string, ProbeState>
  /** Whether it has ever said enough for its `ok` to be known, since it was declared so. */
  answered(name: string): boolean
  /** Those that have not answered, or failed to, even once, by name. */
  awaited(): string[]
  /** Ends all attempts. Nobody is told anything any more. */
  stop(): void
}

interface Scheduled {
  readonly probe: Probe
  /** Tells whether a declaration is the same. */
  readonly declaration: string
  readonly every: number
  readonly timeout: number
  readonly thresholds: Thresholds
  /** When the first attempt is due, on the monotonic clock. */
  readonly first: number
  /** How many times `every` after the first the next one is due. */
  turn: number
  memory: ProbeMemory
  view: ProbeState
  timer: Timer | undefined
  /** Set while an attempt is under way, or ended for us but not in truth. */
  underWay: AbortController | undefined
  /** Set while one is due that cannot begin yet. */
  isWaiting: boolean
  isStopped: boolean
}

/** How far apart probes that are declared together begin, in milliseconds: starting a command takes 2 or 3. */
const apart = 20

export function createProbes({ clock, log, onAnswer }: ProbesOptions): Probes {
  const seen: SeenFiles = new Map()
  let scheduled = new Map<string, Scheduled>()

  function schedule(probe: Probe, declaration: string, place: number): Scheduled {
    const every = milliseconds(probe.every ?? defaults.probe.every)
    const delay = milliseconds(probe.initialDelay ?? defaults.probe.initialDelay, 0) + place * Math.min(apart, every)
    const one: Scheduled = {
      probe,
      declaration,
      every,
      timeout: milliseconds(probe.timeout ?? defaults.probe.timeout),
      thresholds: {
        successThreshold: probe.successThreshold ?? defaults.probe.successThreshold,
        failureThreshold: probe.failureThreshold ?? defaults.probe.failureThreshold,
      },
      first: clock.monotonic() + delay,
      turn: 0,
      memory: nothingKnown,
      view: viewOf(nothingKnown),
      timer: undefined,
      underWay: undefined,
      isWaiting: false,
      isStopped: false,
    }
    one.timer = clock.after(delay, () => begin(one))
    return one
  }

  function begin(one: Scheduled): void {
    if (one.underWay) return wait(one)
    const attempt = new AbortController()
    one.underWay = attempt
    let isOpen = true
    const end = (result: Attempt) => {
      if (!isOpen) return
      isOpen = false
      one.timer?.cancel()
      learn(one, result)
    }
    one.timer = clock.after(one.timeout, () => {
      end(none(`no answer within ${one.probe.timeout ?? defaults.probe.timeout}`))
      attempt.abort()
    })
    attemptProbe(one.probe, { clock, signal: attempt.signal, seen }).then(result => {
      one.underWay = undefined
      end(result)
      if (one.isWaiting) {
        one.isWaiting = false
        one.timer?.cancel()
        begin(one)
      }
    })
  }

  /** An attempt is due, but the one before, which is given up, has not ended: a moment after it was killed, or for ever if it hangs in a system call. */
  function wait(one: Scheduled): void {
    one.isWaiting = true
    one.timer = clock.after(one.timeout, () => {
      one.isWaiting = false
      learn(one, none('the attempt before this one has not ended'))
    })
  }

  function learn(one: Scheduled, attempt: Attempt): void {
    if (one.isStopped) return
    one.memory = step(one.memory, attempt, clock.now(), one.thresholds)
    const before = one.view
    one.view = viewOf(one.memory)
    scheduleNext(one)
    const { name } = one.probe
    const changed = differs(before, one.view)
    if (changed) log.debug({ probe: name, ...one.view }, 'a probe has another answer')
    try {
      onAnswer(name, one.view, changed)
    } catch (error) {
      log.error({ err: error, probe: name }, 'what listens to probes failed')
    }
  }

  function scheduleNext(one: Scheduled): void {
    const now = clock.monotonic()
    one.turn = Math.max(one.turn + 1, Math.ceil((now - one.first) / one.every))
    one.timer = clock.after(one.first + one.turn * one.every - now, () => begin(one))
  }

  function end(one: Scheduled): void {
    one.isStopped = true
    one.isWaiting = false
    one.timer?.cancel()
    one.underWay?.abort()
  }

  return {
    set(probes) {
      const next = new Map<string, Scheduled>()
      let fresh = 0
      for (const probe of probes) {
        const declaration = canonicalJson(probe)
        const known = scheduled.get(probe.name)
        if (known?.declaration === declaration) next.set(probe.name, known)
        else next.set(probe.name, schedule(probe, declaration, fresh++))
      }
      for (const [name, one] of scheduled) if (next.get(name) !== one) end(one)
      scheduled = next
    },
    view: () => Object.fromEntries([...scheduled].map(([name, { view }]) => [name, { ...view }])),
    answered: name => scheduled.get(name)?.memory.answered ?? false,
    awaited: () => [...scheduled].filter(([, { memory }]) => memory.at === null).map(([name]) => name),
    stop() {
      for (const one of scheduled.values()) end(one)
      scheduled = new Map()
    },
  }
}

/** At least `least`: a period of 0 would be an endless loop. */
function milliseconds(duration: string, least = 1): number {
  return Math.max(parseDuration(duration) ?? 0, least)
}
