import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type HashablePart, hashAnnotation, hashOfParts, partsOf } from '../../controller/toolkit/hash.ts'
import { jsonProblem } from '../../shared/canonical.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)
const texts = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2'))
const anything = fc.jsonValue({ maxDepth: 2 }).filter(value => jsonProblem(value) === undefined)
const objects = fc.record(
  {
    apiVersion: fc.constant('v1'),
    metadata: fc.record(
      {
        name: fc.constantFrom('x', 'y'),
        namespace: fc.constantFrom('x', 'y'),
        labels: texts,
        annotations: texts,
        finalizers: fc.array(fc.constantFrom('a/b', 'c/d')),
      },
      { requiredKeys: [] },
    ),
    spec: anything,
    data: texts,
    binaryData: texts,
    other: anything,
    status: anything,
  },
  { requiredKeys: ['metadata'] },
)
const names = ['labels', 'annotations', 'metadata', 'spec', 'data', 'all'] as const
const part: fc.Arbitrary<HashablePart> = fc.oneof(
  fc.constantFrom(...names),
  fc.constantFrom('a', 'b', 'z').map(label => ({ label })),
  fc.constantFrom('a', 'b', 'z', hashAnnotation).map(annotation => ({ annotation })),
  anything.map(userData => ({ userData })),
)
const parts = fc.array(part, { maxLength: 5 })

describe('the hash of parts', () => {
  it('does not depend on the order of the parts, nor on one being named twice', () => {
    fc.assert(
      fc.property(objects, parts, (object, parts) => {
        const hash = hashOfParts(object, parts)
        expect(hash).toMatch(/^[0-9a-f]{64}$/)
        expect(hashOfParts(object, [...parts].reverse())).toBe(hash)
        expect(hashOfParts(object, [...parts, ...parts])).toBe(hash)
      }),
      { seed },
    )
  })

  it('does not depend on the order of keys, finalizers and owners', () => {
    const turned = (value: unknown): unknown =>
      Array.isArray(value) || typeof value !== 'object' || value === null
        ? value
        : Object.fromEntries(Object.entries(value).reverse())
    fc.assert(
      fc.property(objects, parts, (object, parts) => {
        const { metadata } = object
        const { finalizers } = metadata
        const other = turned({
          ...object,
          metadata: turned({ ...metadata, ...(finalizers && { finalizers: [...finalizers].reverse() }) }),
        })
        expect(hashOfParts(other as object, parts)).toBe(hashOfParts(object, parts))
      }),
      { seed },
    )
  })

  it('never counts itself, the status, or what only the server writes', () => {
    fc.assert(
      fc.property(objects, parts, anything, (object, parts, status) => {
        const { metadata } = object
        const server = {
          uid: 'u',
          resourceVersion: '7',
          generation: 3,
          creationTimestamp: '2026-01-01T00:00:00Z',
          managedFields: [{ manager: 'm' }],
        }
        const annotations = { ...metadata.annotations, [hashAnnotation]: 'something' }
        const live = { ...object, metadata: { ...metadata, ...server, annotations }, status }
        expect(hashOfParts(live, parts)).toBe(hashOfParts(object, parts))
      }),
      { seed },
    )
  })

  it('differs exactly when the parts do', () => {
    fc.assert(
      fc.property(objects, objects, parts, (one, other, parts) => {
        const areEqual = JSON.stringify(sorted(partsOf(one, parts))) === JSON.stringify(sorted(partsOf(other, parts)))
        expect(hashOfParts(one, parts) === hashOfParts(other, parts)).toBe(areEqual)
      }),
      { seed },
    )
  })

  it('is the same in every process', () => {
    expect(hashOfParts({ metadata: {}, spec: { b: 1, a: 'ä' } }, ['spec'])).toBe(
      '57cf4fcbc4ec892e4c5a86a09afb9c43251e5019d612701092ea65390e77aad1',
    )
  })
})

describe('the parts', () => {
  const object = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'n',
      labels: { a: '1', b: '2' },
      annotations: { c: '3', [hashAnnotation]: 'h' },
      uid: 'u',
      ownerReferences: [{ uid: 'o' }],
    },
    spec: { x: 1 },
    data: { d: 'ZA==' },
    stringData: {},
    status: { y: 2 },
  }

  it.each<[string, HashablePart[], object]>([
    ['none', [], { object: {} }],
    ['labels', ['labels'], { object: { metadata: { labels: { a: '1', b: '2' } } } }],
    ['one label', [{ label: 'b' }], { object: { metadata: { labels: { b: '2' } } } }],
    ['a label that is absent', [{ label: 'z' }], { object: {} }],
    ['annotations', ['annotations'], { object: { metadata: { annotations: { c: '3' } } } }],
    ['the annotation of the hash itself', [{ annotation: hashAnnotation }], { object: {} }],
    ['spec', ['spec'], { object: { spec: { x: 1 } } }],
    ['data', ['data'], { object: { data: { d: 'ZA==' } } }],
    [
      'several',
      ['spec', { label: 'a' }, { label: 'b' }],
      {
        object: { spec: { x: 1 }, metadata: { labels: { a: '1', b: '2' } } },
      },
    ],
    ['what is not in the object', [{ userData: 2 }, { userData: 1 }], { object: {}, userData: [1, 2] }],
    [
      'all',
      ['all'],
      {
        object: {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: {
            name: 'n',
            labels: { a: '1', b: '2' },
            annotations: { c: '3' },
            ownerReferences: [{ uid: 'o' }],
          },
          spec: { x: 1 },
          data: { d: 'ZA==' },
        },
      },
    ],
  ])('are exactly those that were chosen: %s', (_what, parts, wished) => {
    expect(partsOf(object, parts)).toStrictEqual(wished)
  })

  it('are refused where there are no such', () => {
    for (const part of ['sepc', 'constructor', {}] as never[])
      expect(() => partsOf(object, [part])).toThrow(/is no part of an object that can be hashed; there are labels,/)
  })
})

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? 0 : value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  )
}
