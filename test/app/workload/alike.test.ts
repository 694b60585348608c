import { describe, expect, test } from 'vitest'
import { createAlike } from '../../../controller/app/workload/alike.ts'

/** Strings as they come from the network: each a copy of its own. */
const objectOf = (n: number) =>
  JSON.parse(
    `{"kind":"Pod","n":${n},"ok":true,"none":null,"list":["a long enough word","of-${n}"],"in":{"uid":"${n}"}}`,
  )

describe('what objects have alike', () => {
  test('is shared without changing what they say', () => {
    const share = createAlike()
    for (let n = 0; n < 10_000; n++) {
      const object = objectOf(n)
      share(object)
      expect(object).toEqual(objectOf(n))
    }
  })

  test('takes memory once, however much else passes by', () => {
    const share = createAlike()
    const text = 'x'.repeat(4000)
    const objects: object[] = []
    const before = process.memoryUsage().heapUsed
    for (let n = 0; n < 20_000; n++) {
      const object = JSON.parse(`{"text":"${text}","uid":"${n}"}`)
      share(object)
      objects.push(object)
    }
    const grown = process.memoryUsage().heapUsed - before
    expect(objects).toHaveLength(20_000)
    // As copies they would take 80 MB; what is not collected yet is in it.
    expect(grown).toBeLessThan(60e6)
  })
})
