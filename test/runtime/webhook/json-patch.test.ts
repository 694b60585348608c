import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { patchBetween } from '../../../controller/runtime/webhook/json-patch.ts'
import { jsonPatch } from '../../../devcluster/api/patch/json.ts'

const seed = Number(process.env.SHIPMATE_SEED)
const runs = { seed, numRuns: Number(process.env.SHIPMATE_SCHEDULES) * 20 }
const value = fc.jsonValue({ maxDepth: 4 })
const object = fc.dictionary(fc.oneof(fc.constantFrom('a', 'b', 'a/b', 'm~n', '~1', ''), fc.string()), value)

it('gives what is wished, whatever it was before', () => {
  fc.assert(
    fc.property(object, object, (before, after) => {
      const patch = patchBetween(before, after)
      expect(jsonPatch(before as never, patch)).toEqual(JSON.parse(JSON.stringify(after)))
    }),
    runs,
  )
})

it('is empty where nothing differs', () => {
  fc.assert(
    fc.property(object, before => {
      expect(patchBetween(before, structuredClone(before))).toEqual([])
    }),
    runs,
  )
})

it('names only what differs', () => {
  const before = { spec: { containers: [{ name: 'db', image: 'db:1' }], size: 1, gone: true } }
  const after = { spec: { containers: [{ name: 'db', image: 'db:2' }, { name: 'agent' }], size: 1, note: undefined } }
  expect(patchBetween(before, after)).toEqual([
    { op: 'remove', path: '/spec/gone' },
    { op: 'replace', path: '/spec/containers/0/image', value: 'db:2' },
    { op: 'add', path: '/spec/containers/1', value: { name: 'agent' } },
  ])
})

it('takes what is too many off from the end', () => {
  expect(patchBetween({ list: [1, 2, 3] }, { list: [1] })).toEqual([
    { op: 'remove', path: '/list/2' },
    { op: 'remove', path: '/list/1' },
  ])
})
