import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatDuration, parseDuration } from '../../shared/duration.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)

it.each([
  ['200ms', 200],
  ['30s', 30_000],
  ['1.5s', 1500],
  ['5m', 300_000],
  ['1h30m', 5_400_000],
  ['2h', 7_200_000],
  ['1h2m3s4ms', 3_723_004],
  ['0s', 0],
])('%s is a duration', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

it.each(['', '5', 's', '1d', '-1s', '1s1m', '1m1m', ' 1s', '1s ', '1.s', '1.5h', '1e3s', '99999999999999999h'])(
  '%j is none',
  text => {
    expect(parseDuration(text)).toBeUndefined()
  },
)

it(`what is written is read back: seed ${seed}`, () => {
  const property = fc.property(fc.oneof(fc.nat(), fc.nat(2 ** 50)), ms => {
    expect(parseDuration(formatDuration(ms))).toBe(ms)
  })
  fc.assert(property, { seed })
})
