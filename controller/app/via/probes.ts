/**
 * The probes of one pod, asked from here at their own intervals, and the state that follows from them.
 *
 * Guarantees: no two attempts of one probe at once; as many attempts at once, of all pods, as there are turns. What was answered counts as it does in a sidecar.
 */
import type { Clock, Timer } from '../../../shared/clock.ts'
import { parseDuration } from '../../../shared/duration.ts'
import { defaults, type Probe } from '../../../shared/lifecycle/model.ts'
import {
  type Attempt,
  differs,
  no,
  none,
  nothingKnown,
  type ProbeMemory,
  step,
  viewOf,
  yes,
} from '../../../shared/lifecycle/threshold.ts'
import type { ProbeState } from '../../../shared/protocol/schemas.ts'
import type { Answer } from './asking.ts'
import type { Call, Unaskable } from './calls.ts'
import type { Turns } from './turns.ts'

export interface ViaProbes {
  /** By name. */
  view(): Record<string, ProbeState & { readonly answered: boolean }>
  /** Whether each has been tried. */
  isTried(): boolean
  stop(): void
}

export interface ViaProbesOptions {
  readonly probes: readonly { readonly probe: Probe; readonly call: Call | Unaskable }[]
  readonly clock: Clock
  readonly turns: Turns
  ask(call: Call, timeout: number, signal: AbortSignal): Promise<Answer>
  /** Something is known that was not. */
  onChange(): void
}

/** So much of an answer is a probe's value, in characters. */
const longestValue = 4096

export function startProbes({ probes, clock, turns, ask, onChange }: ViaProbesOptions): ViaProbes {
  const ending = new AbortController()
  const memories = new Map<string, ProbeMemory>(probes.map(({ probe }) => [probe.name, nothingKnown]))
  const timers = new Map<string, Timer>()

  async function attempt(probe: Probe, call: Call | Unaskable): Promise<Attempt> {
    if ('why' in call) return none(call.why)
    const timeout = milliseconds(probe.timeout ?? defaults.probe.timeout, 1)
    return attemptOf(await turns.take(() => ask(call, timeout, ending.signal), ending.signal))
  }

  async function begin({ probe, call }: ViaProbesOptions['probes'][number]): Promise<void> {
    const began = clock.monotonic()
    const result = await attempt(probe, call).catch(() => none('it was stopped'))
    if (ending.signal.aborted) return
    const before = memories.get(probe.name) ?? nothingKnown
    const { successThreshold, failureThreshold } = { ...defaults.probe, ...given(probe) }
    const after = step(before, result, clock.now(), { successThreshold, failureThreshold })
    memories.set(probe.name, after)
    const every = milliseconds(probe.every ?? defaults.probe.every, 100)
    const wait = Math.max(began + every - clock.monotonic(), 0)
    timers.set(
      probe.name,
      clock.after(wait, () => void begin({ probe, call })),
    )
    if (before.at === null || differs(viewOf(before), viewOf(after))) onChange()
  }

  for (const one of probes) {
    const delay = milliseconds(one.probe.initialDelay ?? defaults.probe.initialDelay, 0)
    timers.set(
      one.probe.name,
      clock.after(delay, () => void begin(one)),
    )
  }
  return {
    view: () =>
      Object.fromEntries([...memories].map(([name, one]) => [name, { ...viewOf(one), answered: one.answered }])),
    isTried: () => [...memories.values()].every(({ at }) => at !== null),
    stop() {
      ending.abort()
      for (const timer of timers.values()) timer.cancel()
    },
  }
}

function given({ successThreshold, failureThreshold }: Probe) {
  return {
    ...(successThreshold !== undefined && { successThreshold }),
    ...(failureThreshold !== undefined && { failureThreshold }),
  }
}

function attemptOf(answer: Answer): Attempt {
  switch (answer.is) {
    case 'done':
      return yes(trimmed(answer.text))
    case 'refused':
      return no(trimmed(answer.text), answer.message)
    case 'unsent':
      return answer.isClosed ? no(null, answer.message) : none(answer.message)
    case 'lost':
      return none(answer.message)
  }
}

const trimmed = (text: string) => text.replace(/[\r\n]+$/, '').slice(0, longestValue)

function milliseconds(duration: string, least: number): number {
  return Math.max(parseDuration(duration) ?? 0, least)
}
