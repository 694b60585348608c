/**
 * JSON, merge and strategic merge patches.
 */
import { describe, expect, test } from 'vitest'
import { jsonPatch } from '../../../devcluster/api/patch/json.ts'
import { mergePatch } from '../../../devcluster/api/patch/merge.ts'
import { strategicMerge } from '../../../devcluster/api/patch/strategic.ts'
import { typeNamed } from '../../../devcluster/api/resources/link.ts'
import type { Obj } from '../../../devcluster/api/types.ts'

const object = (rest: object) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' }, ...rest }) as unknown as Obj
const pod = typeNamed('io.k8s.api.core.v1.Pod')
const patched = (spec: object, patch: object) => strategicMerge(object({ spec }), { spec: patch }, pod)['spec']
const rejected = expect.objectContaining({ status: expect.objectContaining({ code: 422, reason: 'Invalid' }) })

describe('a JSON patch', () => {
  const before = object({ spec: { list: ['a', 'b'], map: { 'x/y': 1 } } })
  test.each([
    [[{ op: 'add', path: '/spec/list/-', value: 'c' }], { list: ['a', 'b', 'c'], map: { 'x/y': 1 } }],
    [[{ op: 'add', path: '/spec/list/0', value: 'c' }], { list: ['c', 'a', 'b'], map: { 'x/y': 1 } }],
    [[{ op: 'remove', path: '/spec/list/-1' }], { list: ['a'], map: { 'x/y': 1 } }],
    [[{ op: 'replace', path: '/spec/map/x~1y', value: 2 }], { list: ['a', 'b'], map: { 'x/y': 2 } }],
    [[{ op: 'move', from: '/spec/list', path: '/spec/map/z' }], { map: { 'x/y': 1, z: ['a', 'b'] } }],
    [[{ op: 'copy', from: '/spec/list/0', path: '/spec/first' }], { list: ['a', 'b'], map: { 'x/y': 1 }, first: 'a' }],
    [[{ op: 'test', path: '/spec/list/0', value: 'a' }], { list: ['a', 'b'], map: { 'x/y': 1 } }],
  ])('%j', (patch, spec) => {
    expect(jsonPatch(before, patch)['spec']).toEqual(spec)
    expect(before['spec']).toEqual({ list: ['a', 'b'], map: { 'x/y': 1 } })
  })

  test.each([
    [{ op: 'test', path: '/spec/list/0', value: 'z' }],
    [{ op: 'remove', path: '/spec/nope' }],
    [{ op: 'add', path: '/nope/x', value: 1 }],
    [{ op: 'add', path: '/spec/list/9', value: 1 }],
    [{ op: 'what', path: '/spec' }],
  ])('that does not apply is refused: %j', operation => {
    expect(() => jsonPatch(before, [operation])).toThrow(rejected)
  })
})

test('a merge patch merges maps, removes by null and replaces all else', () => {
  const before = object({ spec: { a: 1, b: { c: 1, d: 2 }, list: [1] } })
  const patch = { spec: { a: null, b: { c: null, e: { f: null, g: 1 } }, list: [2, { h: null }] } }
  expect(mergePatch(before, patch)['spec']).toEqual({ b: { d: 2, e: { g: 1 } }, list: [2, {}] })
})

describe('a strategic merge patch', () => {
  test('merges lists by their key, what is patched first', () => {
    const before = {
      containers: [
        { name: 'a', image: '1' },
        { name: 'b', image: '1' },
      ],
    }
    expect(patched(before, { containers: [{ name: 'b', image: '2' }, { name: 'c' }] })).toEqual({
      containers: [{ name: 'a', image: '1' }, { name: 'b', image: '2' }, { name: 'c' }],
    })
  })

  test('deletes and replaces items and maps', () => {
    const before = { containers: [{ name: 'a' }, { name: 'b' }], nodeSelector: { x: '1' } }
    expect(
      patched(before, { containers: [{ name: 'a', $patch: 'delete' }], nodeSelector: { $patch: 'replace', y: '2' } }),
    ).toEqual({
      containers: [{ name: 'b' }],
      nodeSelector: { y: '2' },
    })
    expect(patched(before, { containers: [{ $patch: 'replace' }, { name: 'z' }] }).containers).toEqual([{ name: 'z' }])
  })

  test('orders items as it is told', () => {
    const before = { containers: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] }
    expect(patched(before, { '$setElementOrder/containers': [{ name: 'c' }, { name: 'a' }] }).containers).toEqual([
      { name: 'b' },
      { name: 'c' },
      { name: 'a' },
    ])
  })

  test('keeps the keys that it is told', () => {
    const before = { volumes: [{ name: 'v', emptyDir: {} }] }
    const volume = { name: 'v', $retainKeys: ['name', 'configMap'], configMap: { name: 'x' } }
    expect(patched(before, { volumes: [volume] }).volumes).toEqual([{ name: 'v', configMap: { name: 'x' } }])
  })

  test('deletes from lists of scalars', () => {
    const before = object({ spec: {} })
    before.metadata.finalizers = ['a', 'b', 'c']
    const after = strategicMerge(
      before,
      { metadata: { '$deleteFromPrimitiveList/finalizers': ['b'], finalizers: ['d'] } },
      pod,
    )
    expect(after.metadata.finalizers).toEqual(['d', 'a', 'c'])
  })

  test('is not for custom kinds', () => {
    expect(() => strategicMerge(object({}), {}, { type: 'object' })).toThrow(
      'strategic merge patch format is not supported',
    )
  })
})
