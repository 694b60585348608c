import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, hashOf, jsonProblem } from '../../shared/canonical.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)

describe('canonical JSON', () => {
  it('is that of RFC 8785', () => {
    const value = {
      numbers: [333333333.3333333, 1e30, 4.5, 2e-3, 1e-27],
      string: '€$\u000f\nA\'B"\\"/',
      literals: [null, true],
    }
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\"/"}',
    )
  })

  it('has a hash that others compute too', () => {
    // printf '{"a":1,"b":[]}' | sha256sum
    expect(hashOf({ b: [], a: 1, c: undefined })).toBe(
      'f87e4099e9be5e75094e0a4f46d3dc18a9c37429314a5a2490fb78d31e7e170c',
    )
  })

  it(`does not depend on the order of keys, and says the same: seed ${seed}`, () => {
    const property = fc.property(fc.jsonValue(), value => {
      fc.pre(jsonProblem(value) === undefined)
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
      expect(canonicalJson(reversed(value))).toBe(canonicalJson(value))
    })
    fc.assert(property, { seed })
  })
})

describe('a value has no canonical JSON', () => {
  const itself: { a: unknown[] } = { a: [] }
  itself.a.push(itself)

  it.each<[string, unknown, (string | number)[], string]>([
    ['with a number that is not finite', { a: [1, Number.NaN] }, ['a', 1], 'NaN is no number that JSON has'],
    ['with half of a character', { a: '\ud800' }, ['a'], 'the text has half of a surrogate pair'],
    ['with a date', [new Date(0)], [0], 'an object of a class is nothing that JSON has'],
    ['with a big number', { a: 1n }, ['a'], 'bigint is nothing that JSON has'],
    ['with something undefined', { a: undefined }, ['a'], 'undefined is nothing that JSON has'],
    ['when it holds itself', itself, ['a', 0], 'the value holds itself'],
    ['with __proto__', JSON.parse('{"a": {"__proto__": 1}}'), ['a', '__proto__'], '"__proto__" cannot be a name'],
  ])('%s', (_, value, path, message) => {
    expect(jsonProblem(value)).toEqual({ path, message })
  })

  it('when it is nested too deeply', () => {
    const nested = (depth: number) => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)
    expect(jsonProblem(nested(128))).toBeUndefined()
    expect(jsonProblem(nested(129))?.message).toBe('nested deeper than 128')
    expect(jsonProblem(nested(100_000))?.message).toBe('nested deeper than 128')
  })

  it('but one that stands twice beside itself has', () => {
    const shared = { a: 1 }
    expect(jsonProblem([shared, { b: shared }])).toBeUndefined()
  })
})

it(`what has no problem has a canonical JSON: seed ${seed}`, () => {
  const property = fc.property(fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true }), value => {
    if (jsonProblem(value) === undefined) expect(() => canonicalJson(value)).not.toThrow()
  })
  fc.assert(property, { seed })
})

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, member]) => [key, reversed(member)]),
  )
}
