import { describe, expect, it } from 'vitest'
import { type Ticks, ticksOf } from '../../../controller/app/schedule/ticks.ts'

const berlin = 'Europe/Berlin'
const newYork = 'America/New_York'

/** The ticks of some days, in UTC. */
function ticksIn(ticks: Ticks, from: string, to: string): string[] {
  const found: string[] = []
  for (let tick = ticks.next(Date.parse(from)); tick !== undefined && tick < Date.parse(to); tick = ticks.next(tick))
    found.push(`${new Date(tick).toISOString().slice(5, 16)}`)
  return found
}

describe('where clocks are set forward', () => {
  it.each([
    ['a time of day that is left out', '30 2 * * *', berlin, '2026-03-28T12:00Z', ['03-29T01:00', '03-30T00:30']],
    ['a time of day that is left out', '30 2 * * *', newYork, '2026-03-07T12:00Z', ['03-08T07:00', '03-09T06:30']],
    [
      'one of several that is left out',
      '30 2,14 * * *',
      berlin,
      '2026-03-28T14:00Z',
      ['03-29T01:00', '03-29T12:30', '03-30T00:30', '03-30T12:30'],
    ],
    [
      'several that are left out',
      '15,45 2 * * *',
      newYork,
      '2026-03-07T12:00Z',
      ['03-08T07:00', '03-09T06:15', '03-09T06:45'],
    ],
    [
      'midnight, if that is left out',
      '@daily',
      'America/Sao_Paulo',
      '2018-11-03T12:00Z',
      ['11-04T03:00', '11-05T02:00'],
    ],
  ])('%s is a tick once, after the gap: %s in %s', (_, schedule, zone, from, expected) => {
    const to = new Date(Date.parse(from) + 48 * 3_600_000).toISOString()
    expect(ticksIn(ticksOf(schedule, zone), from, to)).toEqual(expected)
  })

  it('an interval goes on', () => {
    const all = ticksIn(ticksOf('*/30 * * * *', berlin), '2026-03-29T00:00Z', '2026-03-29T02:31Z')
    expect(all).toEqual(['03-29T00:30', '03-29T01:00', '03-29T01:30', '03-29T02:00', '03-29T02:30'])
  })
})

describe('where clocks are set back', () => {
  it.each([
    ['30 2 * * *', berlin, '2026-10-24T12:00Z', ['10-25T00:30', '10-26T01:30']],
    ['30 1 * * *', newYork, '2026-10-31T12:00Z', ['11-01T05:30', '11-02T06:30']],
    ['30 2,14 * * *', berlin, '2026-10-24T22:00Z', ['10-25T00:30', '10-25T13:30', '10-26T01:30', '10-26T13:30']],
    ['*/30 1 * * *', newYork, '2026-10-31T12:00Z', ['11-01T05:00', '11-01T05:30', '11-02T06:00', '11-02T06:30']],
  ])('a time of day that comes twice is a tick once: %s in %s', (schedule, zone, from, expected) => {
    const to = new Date(Date.parse(from) + 48 * 3_600_000).toISOString()
    expect(ticksIn(ticksOf(schedule, zone), from, to)).toEqual(expected)
  })

  it('an interval goes on, through both hours', () => {
    const all = ticksIn(ticksOf('0 * * * *', newYork), '2026-11-01T04:30Z', '2026-11-01T08:30Z')
    expect(all).toEqual(['11-01T05:00', '11-01T06:00', '11-01T07:00', '11-01T08:00'])
  })
})

it.each([
  ['*/7 * * * *', berlin],
  ['*/20 * * * *', 'Australia/Lord_Howe'],
  ['30 2,14 * * *', berlin],
  ['0,30 1-3 * * *', newYork],
  ['@daily', 'America/Sao_Paulo'],
  ['0 3 13 * 5', newYork],
])('going back finds what going forward finds: %s in %s', (schedule, zone) => {
  const ticks = ticksOf(schedule, zone)
  for (const day of [
    '2026-03-08',
    '2026-03-29',
    '2026-04-05',
    '2026-10-04',
    '2026-10-25',
    '2026-11-01',
    '2018-11-04',
  ]) {
    const from = Date.parse(`${day}T00:00Z`) - 86_400_000
    const to = from + 3 * 86_400_000
    const forward: number[] = []
    for (let tick = ticks.next(from); tick !== undefined && tick <= to; tick = ticks.next(tick)) forward.push(tick)
    expect(ticks.newest(from, to, 10_000)).toEqual(forward.reverse())
    expect(ticks.newest(from, to, 2)).toEqual(forward.slice(0, 2))
  }
})

describe('the bounds', () => {
  const ticks = ticksOf('*/5 * * * *', 'UTC')
  const five = Date.parse('2026-01-01T00:05Z')
  it('a tick is not after itself, and is at its own moment', () => {
    expect(ticks.next(five)).toBe(five + 300_000)
    expect(ticks.next(five - 1)).toBe(five)
    expect(ticks.newest(five - 1, five, 5)).toEqual([five])
    expect(ticks.newest(five, five + 299_999, 5)).toEqual([])
    expect(ticks.newest(five, five - 1, 5)).toEqual([])
  })
  it('a day that never comes has no tick', () => {
    expect(ticksOf('0 0 31 2 *', 'UTC').next(five)).toBeUndefined()
    expect(ticksOf('0 0 31 2 *', 'UTC').newest(0, five, 1)).toEqual([])
  })
  it('a leap day is found', () => {
    expect(ticksOf('0 0 29 2 *', 'UTC').next(five)).toBe(Date.parse('2028-02-29T00:00Z'))
  })
})

it.each([
  ['61 * * * *', 'UTC', '"61 * * * *" is no schedule: Invalid value for minute: 61'],
  ['0 0 0 0 0', 'UTC', 'is no schedule'],
  ['a b c d e', 'UTC', 'is no schedule'],
  ['*/0 * * * *', 'UTC', 'is no schedule'],
  ['* * * * * *', 'UTC', 'is no schedule'],
  ['@reboot', 'UTC', 'is no schedule'],
  ['* * * * *', 'Europe/Berln', 'spec.timeZone: "Europe/Berln" is no time zone; did you mean "Europe/Berlin"?'],
])('%s in %s is refused', (schedule, zone, message) => {
  expect(() => ticksOf(schedule, zone)).toThrow(message)
})
