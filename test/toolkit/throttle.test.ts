import { describe, expect, it } from 'vitest'
import { createThrottle } from '../../controller/toolkit/throttle.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

const quota = { on: 'Deployment a', kind: 'Forbidden' }

/** A throttle, and a custom resource that fails whenever it is tried again. */
function create() {
  const clock = new VirtualClock()
  const throttle = createThrottle({ first: 1000, longest: 8000, jitter: 0, clock })
  return {
    ...{ clock, throttle },
    async fail(times: number, ...failures: (typeof quota)[]) {
      const waits: number[] = []
      for (let i = 0; i < times; i++) {
        const wait = throttle.failed('uid', failures)
        waits.push(wait)
        await clock.advance(wait)
      }
      return waits
    },
  }
}

describe('the same failure again and again', () => {
  it('is tried again at growing intervals, up to the longest', async () => {
    expect(await create().fail(6, quota)).toEqual([1000, 2000, 4000, 8000, 8000, 8000])
  })

  it('starts over after a success', async () => {
    const { fail, throttle } = create()
    await fail(5, quota)
    throttle.forget('uid')
    expect(await fail(1, quota)).toEqual([1000])
  })

  it.each([
    ['another kind of error', { on: 'Deployment a', kind: 'Invalid' }],
    ['another resource', { on: 'Service a', kind: 'Forbidden' }],
  ])('starts over with %s', async (_, other) => {
    const { fail } = create()
    await fail(3, quota)
    expect(await fail(1, other)).toEqual([1000])
    expect(await fail(1, quota)).toEqual([1000])
  })

  it('does not hold up a new failure beside it, and goes on where it was', async () => {
    const { fail } = create()
    await fail(3, quota)
    expect(await fail(1, quota, { on: 'Service a', kind: 'Invalid' })).toEqual([1000])
    expect(await fail(1, quota)).toEqual([7000])
  })

  it('neither waits longer nor less when something else has caused a reconciliation meanwhile', async () => {
    const { fail, throttle, clock } = create()
    await fail(2, quota)
    expect(throttle.failed('uid', [quota])).toBe(4000)
    await clock.advance(1500)
    expect(throttle.failed('uid', [quota])).toBe(2500)
    await clock.advance(2500)
    expect(await fail(1, quota)).toEqual([8000])
  })

  it('is one custom resource’s own', async () => {
    const { fail, throttle } = create()
    await fail(3, quota)
    expect(throttle.failed('two', [quota])).toBe(1000)
  })
})
