import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decode, encode } from '../../../sidecar/journal/line.ts'

const record = fc
  .dictionary(fc.string(), fc.jsonValue(), { maxKeys: 5 })
  .map(value => JSON.parse(JSON.stringify(value)))
const records = fc.array(record, { maxLength: 12 })

test('what was written is read', () => {
  fc.assert(
    fc.property(records, all => {
      const content = Buffer.from(all.map(encode).join(''))
      expect(decode(content)).toEqual({ records: all, good: content.length, torn: false, damaged: 0 })
    }),
  )
})

test('wherever writing stopped, everything before the last line is read, and nothing is taken for damage', () => {
  fc.assert(
    fc.property(records, fc.nat(), (all, at) => {
      const content = Buffer.from(all.map(encode).join(''))
      const cut = content.subarray(0, content.length === 0 ? 0 : at % (content.length + 1))
      const read = decode(cut)
      expect(read.records).toEqual(all.slice(0, read.records.length))
      expect(read.damaged).toBe(0)
      expect(read.torn).toBe(read.good < cut.length)
      // No more than one line is lost.
      expect(cut.subarray(read.good).filter(byte => byte === 10).length).toBe(0)
    }),
  )
})

test('a changed byte is found out: the line is not read, and the others are', () => {
  fc.assert(
    fc.property(
      fc.array(record, { minLength: 2, maxLength: 12 }),
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      (all, at, change) => {
        const content = Buffer.from(all.map(encode).join(''))
        const place = at % content.length
        content[place] = (content[place] ?? 0) ^ change
        const read = decode(content)
        expect(read.damaged + Number(read.torn)).toBeGreaterThan(0)
        for (const one of read.records) expect(all).toContainEqual(one)
      },
    ),
  )
})

test('a bad line that others follow is damage, a bad last one is torn', () => {
  const [one, two, three] = [encode({ one: 1 }), encode({ two: 2 }), encode({ three: 3 })]
  expect(decode(Buffer.from(`${one}rubbish\n${three}`))).toMatchObject({
    records: [{ one: 1 }, { three: 3 }],
    torn: false,
    damaged: 1,
  })
  expect(decode(Buffer.from(`${one}${two}rubbish`))).toMatchObject({
    records: [{ one: 1 }, { two: 2 }],
    torn: true,
    damaged: 0,
  })
  expect(decode(Buffer.from(`${one}rubbish\nrubbish\n`))).toMatchObject({
    records: [{ one: 1 }],
    torn: true,
    damaged: 1,
  })
})
