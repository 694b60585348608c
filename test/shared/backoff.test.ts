import fc from 'fast-check'
import { expect, it } from 'vitest'
import { delay } from '../../shared/backoff.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)

it('doubles from the first to the longest', () => {
  const delays = Array.from({ length: 7 }, (_, i) =>
    delay({ first: 100, longest: 2000, jitter: 0 }, i + 1, Math.random),
  )
  expect(delays).toEqual([100, 200, 400, 800, 1600, 2000, 2000])
})

it('loses up to half of it by chance, unless told otherwise', () => {
  expect(delay({ first: 100, longest: 1000 }, 1, () => 0)).toBe(100)
  expect(delay({ first: 100, longest: 1000 }, 1, () => 1)).toBe(50)
  expect(delay({ first: 100, longest: 1000, jitter: 1 }, 1, () => 0.9)).toBeCloseTo(10)
})

it('takes no failure for the first', () => {
  expect(delay({ first: 100, longest: 1000, jitter: 0 }, 0, Math.random)).toBe(100)
})

it(`is a time between nothing and the longest, and never shrinks, whatever the numbers: seed ${seed}`, () => {
  const backoffs = fc.record({
    first: fc.double({ min: 0, max: 1e6, noNaN: true }),
    longest: fc.double({ min: 0, max: 1e9, noNaN: true }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  const chances = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  const property = fc.property(backoffs, fc.nat(5000), chances, (backoff, failures, chance) => {
    const wait = delay(backoff, failures, () => chance)
    expect(wait).toBeGreaterThanOrEqual(0)
    expect(wait).toBeLessThanOrEqual(backoff.longest)
    expect(delay(backoff, failures + 1, () => chance)).toBeGreaterThanOrEqual(wait)
  })
  fc.assert(property, { seed })
})
