import { beforeEach, describe, expect, it } from 'vitest'
import { HotLoop } from '../../controller/runtime/hotloop.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

let clock: VirtualClock
let loop: HotLoop

beforeEach(() => {
  clock = new VirtualClock()
  loop = new HotLoop({ burst: 3, refill: 1000, longest: 8000, clock })
})

const write = (times: number, key = 'a/x', generation: number | undefined = 1) =>
  Array.from({ length: times }, () => loop.wrote(key, generation))

describe('a key that is written again and again', () => {
  it('is held after the burst, longer each time, up to the longest', () => {
    expect(write(8)).toEqual([0, 0, 0, 1000, 2000, 4000, 8000, 8000])
  })

  it('has one write after each hold, and no more', async () => {
    write(3)
    for (const hold of [1000, 2000, 4000, 8000, 8000, 8000]) {
      expect(write(1)).toEqual([hold])
      await clock.advance(hold)
    }
  })

  it('may write once for each refill, if it keeps to that', async () => {
    write(3)
    for (let i = 0; i < 20; i++) {
      await clock.advance(1000)
      expect(write(1)).toEqual([0])
    }
  })

  it('is slowed down to one write in the longest hold, not stopped', async () => {
    let writes = 0
    for (; clock.monotonic() < 1_000_000; writes++) await clock.advance(loop.wrote('a/x', 1))
    expect(writes).toBeGreaterThanOrEqual(1_000_000 / 8000)
    expect(writes).toBeLessThanOrEqual(1_000_000 / 8000 + 7)
  })

  it('is free again when somebody changes what it wishes', () => {
    expect(write(4)).toEqual([0, 0, 0, 1000])
    expect(write(4, 'a/x', 2)).toEqual([0, 0, 0, 1000])
  })

  it('is free as long as it gets further', () => {
    const steps = Array.from({ length: 12 }, (_, i) => loop.wrote('a/x', 1, 1, Math.floor(i / 3)))
    expect(steps).toEqual(steps.map(() => 0))
    expect(loop.wrote('a/x', 1, 1, 3)).toBe(1000)
  })

  it('is not set free by generations that it makes itself', () => {
    const holds = Array.from({ length: 5 }, (_, i) => loop.wrote('a/x', i, i + 1))
    expect(holds).toEqual([0, 0, 0, 1000, 2000])
    expect(loop.wrote('a/x', 99, 100), 'somebody else changed it meanwhile').toBe(0)
  })

  it('is free again after quiet, which begins when the hold ends', async () => {
    expect(write(5)).toEqual([0, 0, 0, 1000, 2000])
    await clock.advance(2000)
    await clock.advance(3000)
    expect(write(4)).toEqual([0, 0, 0, 1000])
  })

  it('is found among kinds that have no generation, too', () => {
    const holds = Array.from({ length: 4 }, () => loop.wrote('a/x', undefined))
    expect(holds).toEqual([0, 0, 0, 1000])
  })

  it('does not concern others', () => {
    write(5)
    expect(write(3, 'a/y')).toEqual([0, 0, 0])
  })

  it('is forgotten when it is gone', () => {
    write(5)
    loop.forget('a/x')
    expect(write(4)).toEqual([0, 0, 0, 1000])
  })
})

it('has 20 writes and one in five seconds by default, and holds for a minute at most', () => {
  loop = new HotLoop({ clock })
  expect(write(26)).toEqual([...Array(20).fill(0), 5000, 10_000, 20_000, 40_000, 60_000, 60_000])
})

it('forgets who has been quiet, so that it does not grow with the keys that were ever there', async () => {
  const marked = 'a/marked'
  write(4, marked)
  // Enough others, quiet for long enough: the marked one is swept away, and would be free either way.
  for (let i = 0; i < 5000; i++) {
    write(1, `a/${i}`)
    await clock.advance(10)
  }
  expect(write(3, marked)).toEqual([0, 0, 0])
})
