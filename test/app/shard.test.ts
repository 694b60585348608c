import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { isOfShard, leaseOf, parseShard } from '../../controller/app/shard.ts'

describe('a shard', () => {
  test('is written I/N, with I from 0', () => {
    expect(parseShard('0/3')).toEqual({ index: 0, count: 3 })
    expect(parseShard('2/3')).toEqual({ index: 2, count: 3 })
    for (const wrong of ['3/3', '0/0', '1', '-1/3', '1/3x', '', '1.5/3'])
      expect(parseShard(wrong), wrong).toBeUndefined()
  })

  test('has each app in one of them, and about as many in each', () => {
    const counts = [0, 0, 0]
    for (let n = 0; n < 3000; n++) {
      const uid = randomUUID()
      const of = [0, 1, 2].filter(index => isOfShard(uid, { index, count: 3 }))
      expect(of).toHaveLength(1)
      counts[of[0] ?? 0] = (counts[of[0] ?? 0] ?? 0) + 1
    }
    for (const count of counts) expect(count).toBeGreaterThan(800)
  })

  test('has a lease of its own', () => {
    expect(leaseOf('shipmate', undefined)).toBe('shipmate')
    expect(leaseOf('shipmate', { index: 0, count: 1 })).toBe('shipmate')
    expect(leaseOf('shipmate', { index: 1, count: 3 })).toBe('shipmate-1-of-3')
  })
})
