/**
 * The ticks of a schedule: the minutes at which cron says that it is time, in a time zone. Pure.
 *
 * Guarantees: where clocks are set forward, a time of day that is left out is a tick once, at the first minute after the gap; where they are set back, a time of
 * day that comes twice is a tick once, the first time. A schedule by intervals (`*` in its hours) goes on by the clock that nobody sets.
 */
import { Cron } from 'croner'
import { messageOf } from '../../../shared/errors.ts'
import { nearest } from '../../../shared/nearest.ts'
import { TerminalError } from '../../runtime/index.ts'

export interface Ticks {
  /** The first tick after that moment; undefined if there is none any more. */
  next(after: number): number | undefined
  /** The newest ticks in (after, until], newest first, so many at most. */
  newest(after: number, until: number, limit: number): number[]
}

/** A tick each: so many times of day are looked at one by one. Beyond, a time that is left out or comes twice is as the library has it. */
const mostTimes = 120

/** Ticks are told apart by their minute: @hourly and the like stand for five fields. */
const nicknames: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

/** @throws TerminalError, with what is wrong */
export function ticksOf(schedule: string, timeZone: string): Ticks {
  checkZone(timeZone)
  const whole = patternOf(schedule, timeZone)
  const patterns = timesOf(nicknames[schedule] ?? schedule)?.map(one => patternOf(one, timeZone)) ?? [whole]
  const ticks: Ticks = {
    next(after) {
      const all = patterns.flatMap(one => one.nextRun(new Date(after))?.getTime() ?? [])
      return all.length > 0 ? Math.min(...all) : undefined
    },
    newest(after, until, limit) {
      if (until <= after || limit <= 0) return []
      const all = patterns.flatMap(one => backwards(one, after, until, limit))
      return [...new Set(all)].sort((a, b) => b - a).slice(0, limit)
    },
  }
  return ticks
}

/** One by one, as nobody knows how many there are. */
function backwards(pattern: Cron, after: number, until: number, limit: number): number[] {
  const found: number[] = []
  // The library counts whole seconds, and answers what is before its reference.
  let reference = (Math.floor(until / 1000) + 1) * 1000
  while (found.length < limit) {
    const tick = pattern.previousRuns(1, new Date(reference))[0]?.getTime()
    if (tick === undefined || tick <= after) break
    found.push(tick)
    reference = tick
  }
  return found
}

function patternOf(schedule: string, timeZone: string): Cron {
  try {
    return new Cron(schedule, { mode: '5-part', timezone: timeZone, paused: true })
  } catch (error) {
    const why = messageOf(error).replace(/^Cron\w*: /, '')
    throw new TerminalError(`spec.schedule: ${JSON.stringify(schedule)} is no schedule: ${why}`)
  }
}

function checkZone(timeZone: string): void {
  try {
    new Intl.DateTimeFormat('en', { timeZone })
  } catch {
    const near = nearest(timeZone, Intl.supportedValuesOf('timeZone'))
    const hint = near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`
    throw new TerminalError(`spec.timeZone: ${JSON.stringify(timeZone)} is no time zone${hint}`)
  }
}

/**
 * A schedule with several times of day as one for each. The library treats one time of day as above, but several as an interval, of which a tick that is left out
 * is lost, and one that comes twice is two.
 */
function timesOf(schedule: string): string[] | undefined {
  const [minute = '', hour = '', ...days] = schedule.trim().split(/\s+/)
  if (/[*?]/.test(hour)) return undefined
  const minutes = numbersIn(minute, 59)
  const hours = numbersIn(hour, 23)
  if (minutes.length * hours.length > mostTimes) return undefined
  return hours.flatMap(h => minutes.map(m => [m, h, ...days].join(' ')))
}

/** The numbers of a field that is known to be well formed. */
function numbersIn(field: string, last: number): number[] {
  const all = field.split(',').flatMap(part => {
    const [range = '', step = '1'] = part.split('/')
    const [from = 0, to = from] = /^[*?]/.test(range) ? [0, last] : range.split('-').map(Number)
    return Array.from({ length: Math.floor((to - from) / Number(step)) + 1 }, (_, i) => from + i * Number(step))
  })
  return [...new Set(all)]
}
