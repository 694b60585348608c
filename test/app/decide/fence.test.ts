import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mintFence, operationFence, runFence, runsPerFence } from '../../../controller/app/decide/fence.ts'
import { earlier, sentenceOf } from '../../../controller/app/decide/waiting.ts'
import { timeOf } from '../../../shared/clock.ts'

describe('a fence', () => {
  test('is above the app’s last and above all that pods have seen', () => {
    const fences = fc.nat({ max: 2 ** 30 })
    fc.assert(
      fc.property(fc.option(fences, { nil: undefined }), fc.array(fences), (last, operations) => {
        const seen = operations.map(fence => ({ fence: fence * runsPerFence + 7 }))
        const minted = mintFence(last, seen)
        expect(minted).toBeGreaterThan(last ?? 0)
        // So that the first of its runs is above every one that was accepted.
        for (const { fence } of seen) expect(runFence(minted, 1)).toBeGreaterThan(fence)
      }),
    )
  })

  test('is found again in the number that a run carries, which no other run does', () => {
    expect(operationFence(runFence(5, 1))).toBe(5)
    expect(operationFence(runFence(5, runsPerFence - 1))).toBe(5)
    expect(runFence(6, 1)).toBeGreaterThan(runFence(5, runsPerFence - 1))
    expect(() => runFence(5, 0)).toThrow(RangeError)
    expect(() => runFence(5, runsPerFence)).toThrow(RangeError)
  })
})

describe('what is waited for', () => {
  test('is a sentence: what, since when, until when, what next', () => {
    const since = '2026-11-18T14:02:59Z'
    expect(
      sentenceOf({ what: 'db-0 to finish backup', since, until: Date.parse(since) + 60_000, next: 'then Running' }),
    ).toBe('db-0 to finish backup, since 2026-11-18 14:02Z, until 2026-11-18 14:03Z, then Running')
    expect(sentenceOf({ what: 'a pod to be ready' })).toBe('a pod to be ready')
  })

  test('the earlier of two times is the one that is there, or the first', () => {
    expect([earlier(undefined, 1), earlier(2, undefined), earlier(2, 1), earlier(undefined, undefined)]).toEqual([
      1,
      2,
      1,
      undefined,
    ])
    expect(timeOf(1500)).toBe('1970-01-01T00:00:01Z')
  })
})
