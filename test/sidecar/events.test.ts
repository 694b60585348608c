import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../shared/protocol/schemas.ts'
import { createEvents, type EventsOptions, type News } from '../../sidecar/events.ts'
import { createFakeAgent } from '../fixtures/sidecar-agent.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

const seed = Number(process.env.SHIPMATE_SEED)
const state = createFakeAgent().state()
const probe = (name: string): News => ({
  type: 'probe',
  name,
  probe: { ok: true, value: null, error: null, at: null, failures: 0 },
})
const create = (options: Partial<EventsOptions> = {}) =>
  createEvents({ bootId: 'b', clock: new VirtualClock(), ...options })
const numbers = (messages: Message[] | undefined) => messages?.map(({ seq }) => seq)

describe('events', () => {
  it('are numbered from 1, with a cursor and a time', () => {
    const events = create()
    expect([events.seq, events.cursor]).toEqual([0, 'b.0'])
    const heard: Message[] = []
    events.subscribe(message => heard.push(message))
    events.publish(probe('x'))
    expect(heard).toEqual([{ ...probe('x'), seq: 1, cursor: 'b.1', at: '2026-01-01T00:00:00.000Z' }])
    expect([events.seq, events.cursor]).toEqual([1, 'b.1'])
  })

  it('give a state the number of its message', () => {
    const events = create()
    events.publish(probe('x'))
    events.publish({ type: 'state', state })
    expect(events.since('b.1')).toMatchObject([{ seq: 2, state: { seq: 2, cursor: 'b.2' } }])
  })

  it('are remembered from a cursor on', () => {
    const events = create()
    for (const name of ['x', 'y', 'z']) events.publish(probe(name))
    expect(numbers(events.since('b.0'))).toEqual([1, 2, 3])
    expect(numbers(events.since('b.2'))).toEqual([3])
    expect(numbers(events.since('b.3'))).toEqual([])
  })

  it.each(['', 'b', 'b.', 'b.4', 'b.-1', 'b.01', 'b.1.0', 'b.1x', 'c.1', 'b.99999999999999999999', 'b.NaN', '1'])(
    'know nothing of a cursor "%s"',
    cursor => {
      const events = create()
      for (const name of ['x', 'y', 'z']) events.publish(probe(name))
      expect(events.since(cursor)).toBeUndefined()
    },
  )

  it('are forgotten by count', () => {
    const events = create({ keep: 2 })
    for (const name of ['x', 'y', 'z']) events.publish(probe(name))
    expect(events.since('b.0')).toBeUndefined()
    expect(numbers(events.since('b.1'))).toEqual([2, 3])
  })

  it('are forgotten by size, the largest at once', () => {
    const events = create({ keepSize: 1_000 })
    for (let count = 0; count < 100; count++) events.publish(probe('x'.repeat(100)))
    const kept = Array.from({ length: 101 }, (_, from) => events.since(`b.${from}`)).filter(
      known => known !== undefined,
    )
    expect(JSON.stringify(kept[0]).length).toBeLessThan(1_100)
    events.publish(probe('x'.repeat(2_000)))
    expect(events.since('b.100')).toBeUndefined()
    expect(events.since('b.101')).toEqual([])
  })

  it('that are remembered cannot be changed by who has read them', () => {
    const events = create()
    events.publish({ type: 'state', state })
    const [first] = events.since('b.0') ?? []
    if (first?.type === 'state') first.state.state = 'changed'
    expect(events.since('b.0')).toMatchObject([{ state: { state: 'Running' } }])
  })
})

describe('subscribers', () => {
  it('do not disturb each other', () => {
    const errors: unknown[] = []
    const events = create({ failed: error => errors.push(error) })
    const heard: string[] = []
    const stop = events.subscribe(() => {
      heard.push('a')
      stop()
      stopLast()
      throw new Error('no')
    })
    events.subscribe(({ seq }) => heard.push(`b${seq}`))
    const stopLast = events.subscribe(() => heard.push('never'))
    events.publish(probe('x'))
    events.publish(probe('y'))
    expect(heard).toEqual(['a', 'b1', 'b2'])
    expect(errors).toHaveLength(1)
  })

  it('hear in order what is published by one of them, and nothing from before they came', () => {
    const events = create()
    const first: number[] = []
    const second: number[] = []
    const third: number[] = []
    events.subscribe(({ seq }) => {
      first.push(seq)
      if (seq !== 1) return
      events.publish(probe('y'))
      events.subscribe(message => third.push(message.seq))
    })
    events.subscribe(({ seq }) => second.push(seq))
    events.publish(probe('x'))
    events.publish(probe('z'))
    expect([first, second, third]).toEqual([[1, 2, 3], [1, 2, 3], [3]])
  })

  it('of a log are told of that log, until they stop', () => {
    const events = create()
    let told = 0
    const count = () => told++
    const stop = [events.followLog('a', count), events.followLog('a', count)]
    events.logGrown('a')
    events.logGrown('b')
    expect(told).toBe(2)
    stop[0]?.()
    stop[0]?.()
    events.logGrown('a')
    expect(told).toBe(3)
    stop[1]?.()
    events.logGrown('a')
    expect(told).toBe(3)
  })
})

it('whoever reads on from a cursor has each message once, or is told that it cannot', () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ do: fc.constant('publish' as const), size: fc.nat(300) }),
      fc.constant({ do: 'leave' as const }),
      fc.constant({ do: 'come' as const }),
    ),
    { maxLength: 60 },
  )
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 8 }), fc.integer({ min: 100, max: 2_000 }), (all, keep, keepSize) => {
      const events = create({ keep, keepSize })
      const heard: number[] = []
      let cursor = events.cursor
      const hear = (message: Message) => {
        heard.push(message.seq)
        cursor = message.cursor
      }
      let stop: (() => void) | undefined = events.subscribe(hear)
      for (const step of all) {
        if (step.do === 'publish') events.publish(probe('x'.repeat(step.size)))
        if (step.do === 'leave') {
          stop?.()
          stop = undefined
        }
        if (step.do !== 'come' || stop) continue
        const missed = events.since(cursor)
        // A reset: what it stands for is not told one by one.
        if (!missed) for (let seq = (heard.at(-1) ?? 0) + 1; seq <= events.seq; seq++) heard.push(seq)
        else for (const message of missed) hear(message)
        cursor = events.cursor
        stop = events.subscribe(hear)
      }
      expect(heard).toEqual(heard.map((_, index) => index + 1))
      if (stop) expect(heard.length).toBe(events.seq)
    }),
    { seed },
  )
})
