import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareVersions } from '../../controller/kube/versions.ts'

const version = fc.bigInt({ min: 0n, max: 2n ** 80n })

describe('resourceVersions', () => {
  it('compare as numbers, however large', () => {
    fc.assert(
      fc.property(version, version, (a, b) => {
        expect(Math.sign(compareVersions(String(a), String(b)))).toBe(a < b ? -1 : a > b ? 1 : 0)
      }),
    )
  })

  it('tell neighbours apart where a double no longer can', () => {
    expect(compareVersions('9007199254740992', '9007199254740993')).toBeLessThan(0)
    expect(compareVersions('99999999999999999999', '100000000000000000000')).toBeLessThan(0)
  })

  it('cannot be ordered when one is no number: nothing is older, nothing newer', () => {
    for (const odd of ['', 'abc', '1a', '-1', '1.5', ' 1', '٣', '1e3', '0x10']) {
      expect(compareVersions(odd, '5'), JSON.stringify(odd)).toBeNaN()
      expect(compareVersions('5', odd), JSON.stringify(odd)).toBeNaN()
    }
  })

  it('are the same when they are the same text, number or not', () => {
    expect(compareVersions('abc', 'abc')).toBe(0)
    expect(compareVersions('', '')).toBe(0)
  })

  it('with a leading zero are not what a server writes, so nothing is said about them', () => {
    expect(compareVersions('007', '8')).toBeNaN()
    expect(compareVersions('8', '08')).toBeNaN()
    expect(compareVersions('0', '1')).toBeLessThan(0)
  })
})
