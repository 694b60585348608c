import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { sleep, systemClock } from '../../shared/clock.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

afterEach(() => {
  vi.useRealTimers()
})

describe('the system clock', () => {
  it('calls once, when it is time', () => {
    vi.useFakeTimers()
    const run = vi.fn()
    systemClock.after(1000, run)
    vi.advanceTimersByTime(999)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(100_000)
    expect(run).toHaveBeenCalledOnce()
  })

  it('does not call when cancelled, however often', () => {
    vi.useFakeTimers()
    const run = vi.fn()
    const timer = systemClock.after(1000, run)
    timer.cancel()
    timer.cancel()
    vi.advanceTimersByTime(100_000)
    expect(run).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('waits for longer than a timer of Node can, and can be cancelled on the way', () => {
    vi.useFakeTimers()
    const month = 30 * 24 * 3_600_000
    const run = vi.fn()
    const never = vi.fn()
    systemClock.after(month, run)
    const timer = systemClock.after(month, never)
    vi.advanceTimersByTime(month - 1)
    expect(run, 'before its time').not.toHaveBeenCalled()
    timer.cancel()
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledOnce()
    expect(never).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('never calls for an infinite delay', () => {
    vi.useFakeTimers()
    const run = vi.fn()
    const timer = systemClock.after(Number.POSITIVE_INFINITY, run)
    vi.advanceTimersByTime(365 * 24 * 3_600_000)
    expect(run).not.toHaveBeenCalled()
    timer.cancel()
    expect(vi.getTimerCount()).toBe(0)
  })

  it.each([0, -1, Number.NaN])('calls soon for a delay of %s, but not before it has returned', ms => {
    vi.useFakeTimers()
    const run = vi.fn()
    systemClock.after(ms, run)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledOnce()
  })

  it('tells the time, and time that does not go backwards', () => {
    vi.useFakeTimers({ now: 1234 })
    expect(systemClock.now()).toBe(1234)
    const before = systemClock.monotonic()
    vi.advanceTimersByTime(5)
    expect(systemClock.monotonic()).toBeGreaterThanOrEqual(before)
  })
})

describe('sleep', () => {
  it('ends when it is time, and leaves nothing behind', async () => {
    const clock = new VirtualClock()
    const { signal } = new AbortController()
    let over = false
    const sleeping = sleep(clock, 100, signal).then(() => {
      over = true
    })
    await clock.advance(99)
    expect(over).toBe(false)
    await clock.advance(1)
    await sleeping
    expect(clock.pending).toBe(0)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('is rejected with the reason of an abort, at once, and leaves nothing behind', async () => {
    const clock = new VirtualClock()
    const control = new AbortController()
    const sleeping = sleep(clock, 100, control.signal)
    const reason = new Error('enough')
    control.abort(reason)
    await expect(sleeping).rejects.toBe(reason)
    expect(clock.pending).toBe(0)
    expect(getEventListeners(control.signal, 'abort')).toEqual([])
  })

  it('does not begin when aborted before', async () => {
    const clock = new VirtualClock()
    await expect(sleep(clock, 100, AbortSignal.abort('no'))).rejects.toBe('no')
    expect(clock.pending).toBe(0)
  })
})
