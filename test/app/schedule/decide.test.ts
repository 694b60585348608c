import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Child } from '../../../controller/app/schedule/child.ts'
import { beginOf, decide, type Situation } from '../../../controller/app/schedule/decide.ts'
import { ticksOf } from '../../../controller/app/schedule/ticks.ts'

const minute = 60_000
const at = (text: string) => Date.parse(`2026-06-01T${text}Z`)
const said = (times: readonly number[]) => times.map(time => new Date(time).toISOString().slice(11, 16))

interface Given {
  readonly now: string
  readonly last?: string
  readonly schedule?: string
  readonly spec?: Partial<Situation['spec']>
  readonly status?: Partial<Situation['status']>
  readonly children?: readonly Child[]
  readonly since?: string
}

function situation({ now, last, schedule = '0 * * * *', spec, status, children = [], since }: Given): Situation {
  const plan = { schedule, timeZone: 'Etc/UTC', suspend: spec?.suspend ?? false }
  return {
    now: at(now),
    uid: 'u',
    createdAt: at('00:00'),
    spec: {
      ...{ ...plan, jitter: '0s', catchUp: 1, overlap: 'Allow', successfulHistory: 3, failedHistory: 1 },
      template: { app: 'db', action: 'backup', priority: 0, ttlSecondsAfterFinished: 60, suspend: false },
      ...spec,
    },
    status: { plan, ...(last && { lastTick: new Date(at(last)).toISOString() }), ...status },
    ticks: ticksOf(spec?.schedule ?? schedule, 'Etc/UTC'),
    since: since === undefined ? undefined : at(since),
    children,
  }
}

function child(time: string, more: Partial<Child> = {}): Child {
  const tick = at(time)
  return {
    ...{
      name: `s-${tick / minute}`,
      uid: `uid-${time}`,
      tick,
      isHeld: false,
      isBeingDeleted: false,
      isCancelled: false,
    },
    ...{ outcome: 'none', isFinished: false },
    ...more,
  }
}
const ended = (time: string, outcome: 'success' | 'other' = 'success') => child(time, { outcome, isFinished: true })

describe('what is made', () => {
  it('is nothing before its time', () => {
    const { make, lastTick, nextTick, wakeAt } = decide(situation({ now: '09:59', last: '09:00' }))
    expect([make, lastTick, nextTick, wakeAt]).toEqual([[], at('09:00'), at('10:00'), at('10:00')])
  })
  it('is a tick at its time, and not twice', () => {
    const { make, lastTick, nextTick } = decide(situation({ now: '10:00', last: '09:00' }))
    expect([said(make), lastTick, nextTick]).toEqual([['10:00'], at('10:00'), at('11:00')])
    expect(decide(situation({ now: '10:00', last: '10:00' })).make).toEqual([])
  })
  it('is nothing from before it was created', () => {
    expect(decide(situation({ now: '00:30' })).make).toEqual([])
    expect(said(decide(situation({ now: '01:00' })).make)).toEqual(['01:00'])
  })
  it('is nothing while the clock is behind the last tick', () => {
    const { make, lastTick, nextTick } = decide(situation({ now: '08:00', last: '10:00' }))
    expect([make, lastTick, nextTick]).toEqual([[], at('10:00'), at('11:00')])
  })
})

describe('of ticks that were missed', () => {
  it.each([
    [1, ['15:00']],
    [3, ['13:00', '14:00', '15:00']],
    [100, ['10:00', '11:00', '12:00', '13:00', '14:00', '15:00']],
    [0, []],
  ])('with catchUp %i the newest are made: %j', (catchUp, expected) => {
    const { make, skip, lastTick, events } = decide(situation({ now: '15:20', last: '09:00', spec: { catchUp } }))
    expect(said(make)).toEqual(expected)
    expect(make.length + skip.length).toBe(6)
    expect(lastTick).toBe(at('15:00'))
    expect(events.map(({ reason }) => reason)).toEqual(skip.length > 0 ? ['Missed'] : [])
  })
  it('with catchUp 0 one that is on time is made', () => {
    expect(said(decide(situation({ now: '15:01', last: '14:00', spec: { catchUp: 0 } })).make)).toEqual(['15:00'])
  })
  it('a year of minutes costs no more than a hundred', () => {
    const given = situation({ now: '15:20', schedule: '* * * * *' })
    const { make, events } = decide({ ...given, createdAt: given.now - 365 * 86_400_000 })
    expect(said(make)).toEqual(['15:20'])
    expect(events[0]?.note).toMatch(/^more than 102 ticks up to 2026-06-01T15:19:00Z: missed/)
  })
  it('those beyond the starting deadline are missed for good', () => {
    const spec = { catchUp: 10, startingDeadline: '90m' }
    const { make, lastTick, events } = decide(situation({ now: '15:20', last: '09:00', spec }))
    expect(said(make)).toEqual(['14:00', '15:00'])
    expect(lastTick).toBe(at('15:00'))
    expect(events[0]?.note).toContain('startingDeadline 90m')
  })
})

describe('jitter', () => {
  const spec = { jitter: '30m' }
  it('is the same in every process, another for another tick or schedule, and within its bounds', () => {
    const one = situation({ now: '15:20', spec })
    const delays = Array.from({ length: 24 }, (_, hour) => beginOf(one, at('00:00') + hour * 3_600_000) % 3_600_000)
    expect(new Set(delays).size).toBeGreaterThan(20)
    for (const delay of delays) expect(delay).toBeLessThan(30 * minute)
    expect(beginOf(situation({ now: '03:00', spec }), at('10:00'))).toBe(beginOf(one, at('10:00')))
    expect(beginOf({ ...one, uid: 'v' }, at('10:00'))).not.toBe(beginOf(one, at('10:00')))
  })
  it('delays the tick, whose name and lastTick are those of its minute', () => {
    const one = situation({ now: '15:00', last: '14:00', spec })
    const begin = beginOf(one, at('15:00'))
    const early = decide({ ...one, now: begin - 1 })
    expect([early.make, early.nextTick, early.wakeAt, early.lastTick]).toEqual([[], at('15:00'), begin, at('14:00')])
    const due = decide({ ...one, now: begin })
    expect([due.make, due.lastTick]).toEqual([[at('15:00')], at('15:00')])
  })
  it('never lets a later tick begin before an earlier one', () => {
    const one = situation({ now: '15:00', schedule: '* * * * *', spec: { jitter: '1h' } })
    for (let tick = at('10:00'); tick < at('12:00'); tick += minute)
      expect(beginOf(one, tick)).toBeLessThan(beginOf(one, tick + minute))
  })
})

describe('beside a child that has not ended', () => {
  const busy = child('09:00')
  const given = { now: '10:00', last: '09:00', children: [busy] }
  it('Allow makes the tick', () => {
    expect(said(decide(situation({ ...given, spec: { overlap: 'Allow' } })).make)).toEqual(['10:00'])
  })
  it('Forbid skips it, says so, and goes on', () => {
    const { make, skip, lastTick, events } = decide(situation({ ...given, spec: { overlap: 'Forbid' } }))
    expect([make, said(skip), lastTick]).toEqual([[], ['10:00'], at('10:00')])
    expect(events).toEqual([
      {
        type: 'Warning',
        reason: 'Overlap',
        note: `the tick of 2026-06-01T10:00:00Z is skipped: ${busy.name} has not ended`,
      },
    ])
  })
  it('Replace cancels it first', () => {
    const { make, cancel } = decide(situation({ ...given, spec: { overlap: 'Replace' } }))
    expect([said(make), cancel]).toEqual([['10:00'], [busy]])
  })
  it.each(['Forbid', 'Replace'] as const)('%s is not stopped by the child of the tick itself', overlap => {
    const own = child('10:00', { isHeld: true })
    const { make, cancel, events } = decide(situation({ ...given, children: [own], spec: { overlap } }))
    expect([said(make), cancel, events]).toEqual([['10:00'], [], []])
  })
  it.each(['Forbid', 'Replace'] as const)('%s makes the newest alone of several', overlap => {
    const { make, lastTick } = decide(situation({ now: '15:20', last: '09:00', spec: { overlap, catchUp: 3 } }))
    expect([said(make), lastTick]).toEqual([['15:00'], at('15:00')])
  })
})

describe('while it is suspended, and after', () => {
  it('nothing is made, and nothing is waited for', () => {
    const { make, lastTick, nextTick, wakeAt } = decide(
      situation({ now: '15:20', last: '09:00', spec: { suspend: true } }),
    )
    expect([make, lastTick, nextTick, wakeAt]).toEqual([[], at('09:00'), undefined, undefined])
  })
  it('what passed meanwhile is not made, what is due since is', () => {
    const status = { plan: { schedule: '0 * * * *', timeZone: 'Etc/UTC', suspend: true } }
    const spec = { catchUp: 10 }
    const { make, lastTick, events } = decide(situation({ now: '15:20', last: '09:00', since: '13:30', status, spec }))
    expect([said(make), lastTick, events]).toEqual([['14:00', '15:00'], at('15:00'), []])
    const none = decide(situation({ now: '13:31', last: '09:00', since: '13:30', status, spec }))
    expect([none.make, none.lastTick]).toEqual([[], at('13:00')])
  })
})

describe('a schedule that was changed', () => {
  const status = { plan: { schedule: '0 * * * *', timeZone: 'Etc/UTC', suspend: false } }
  it.each([
    [{ schedule: '*/10 * * * *' }, ['13:10']],
    [{ schedule: '5 13 * * *' }, []],
    [{ schedule: '7 13 * * *' }, ['13:07']],
  ])('to %j makes nothing from before its change', (spec, expected) => {
    const { make, skip } = decide(
      situation({ now: '13:12', last: '12:00', since: '13:05', status, spec: { ...spec, catchUp: 10 } }),
    )
    expect([said(make), skip]).toEqual([expected, []])
  })
  it('is written down as far as it is dealt with', () => {
    const { lastTick } = decide(
      situation({ now: '13:06', last: '12:00', since: '13:05', status, spec: { schedule: '*/2 * * * *' } }),
    )
    expect(lastTick).toBe(at('13:06'))
    const { lastTick: kept } = decide(
      situation({ now: '13:06', last: '12:00', since: '13:05', status, spec: { schedule: '0 3 * * *' } }),
    )
    expect(kept).toBe(at('12:00'))
  })
  it('keeps a child that was made before, and lets it go', () => {
    const made = child('13:00', { isHeld: true })
    const spec = { schedule: '0 3 * * *' }
    const given = { now: '13:06', last: '12:00', since: '13:05', status, spec, children: [made] }
    const { lastTick, surplus } = decide(situation(given))
    expect([lastTick, surplus]).toEqual([at('13:00'), []])
  })
})

describe('a child that is held, of a tick that is written down', () => {
  it('is one too many, unless it is the one that was written down', () => {
    const late = child('09:00', { isHeld: true })
    expect(decide(situation({ now: '09:30', last: '09:00', children: [late] })).surplus).toEqual([late])
    const status = { active: [{ name: late.name, uid: late.uid }] }
    expect(decide(situation({ now: '09:30', last: '09:00', children: [late], status })).surplus).toEqual([])
  })
})

describe('the history', () => {
  it('keeps the newest, by outcome, and never what has not ended', () => {
    const children = [
      ...['01:00', '02:00', '04:00', '05:00', '07:00'].map(time => ended(time)),
      ...['03:00', '06:00'].map(time => ended(time, 'other')),
      child('00:30'),
      child('00:40', { outcome: 'success' }),
    ]
    const gone = decide(situation({ now: '07:30', last: '07:00', children })).delete
    expect(gone.map(({ tick }) => said([tick ?? 0])[0]).sort()).toEqual(['01:00', '02:00', '03:00'])
  })
})

it('whatever happens, no tick is made at or before the last, in the future, or beyond the limits', () => {
  const spec = fc.record({
    catchUp: fc.nat(5),
    overlap: fc.constantFrom('Allow' as const, 'Forbid' as const, 'Replace' as const),
    jitter: fc.constantFrom('0s', '45s', '20m'),
    suspend: fc.boolean(),
    schedule: fc.constantFrom('* * * * *', '*/7 * * * *', '0 * * * *', '30 2,14 * * *'),
  })
  const time = fc.integer({ min: at('00:00'), max: at('23:59') })
  fc.assert(
    fc.property(spec, time, time, fc.option(time), fc.boolean(), (given, now, last, since, isHeld) => {
      const status = {
        lastTick: new Date(last).toISOString(),
        plan: { schedule: 'x', timeZone: 'Etc/UTC', suspend: false },
      }
      const one = { ...situation({ now: '00:00', spec: given, status, children: [child('12:00', { isHeld })] }), now }
      const { make, skip, lastTick } = decide({ ...one, since: since ?? undefined })
      for (const tick of [...make, ...skip]) {
        expect(tick).toBeGreaterThan(last)
        if (since !== null) expect(tick).toBeGreaterThan(since)
        expect(beginOf(one, tick)).toBeLessThanOrEqual(now)
        expect(tick).toBeLessThanOrEqual(lastTick ?? 0)
      }
      expect(make.length).toBeLessThanOrEqual(Math.max(given.catchUp, 1))
      expect(lastTick).toBeGreaterThanOrEqual(last)
      if (given.suspend) expect(make).toEqual([])
    }),
    { numRuns: 300 },
  )
})
