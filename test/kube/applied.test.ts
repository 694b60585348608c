import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isApplied, mergePatchOf, same } from '../../controller/kube/applied.ts'

/** An object on the server of which we own `fields`. */
const live = (body: object, fields: object, metadata: object = {}, entry: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: {
    name: 'a',
    namespace: 'x',
    uid: 'u',
    resourceVersion: '1',
    ...metadata,
    managedFields: [
      { manager: 'others', operation: 'Update', apiVersion: 'v1', fieldsV1: { 'f:spec': { 'f:theirs': {} } } },
      { manager: 'us', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: fields, ...entry },
    ],
  },
  ...body,
})
const wish = (body: object, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'a', namespace: 'x', ...metadata },
  ...body,
})

type Case = [string, boolean, wished: object, body: object, fields: object, wishedMeta?: object, liveMeta?: object]
const key = (keys: object) => `k:${JSON.stringify(keys)}`
const leaf = {}

const cases: Case[] = [
  ['a value that is ours', true, { spec: { a: 1 } }, { spec: { a: 1 } }, { 'f:spec': { 'f:a': leaf } }],
  ['beside values of others', true, { spec: { a: 1 } }, { spec: { a: 1, b: 2 } }, { 'f:spec': { 'f:a': leaf } }],
  ['another value', false, { spec: { a: 2 } }, { spec: { a: 1 } }, { 'f:spec': { 'f:a': leaf } }],
  ['the right value of others', false, { spec: { b: 2 } }, { spec: { a: 1, b: 2 } }, { 'f:spec': { 'f:a': leaf } }],
  [
    'a value of ours that is wished no more',
    false,
    { spec: { a: 1 } },
    { spec: { a: 1, b: 2 } },
    { 'f:spec': { 'f:a': leaf, 'f:b': leaf } },
  ],
  ['everything of ours wished no more', false, {}, { spec: { a: 1 } }, { 'f:spec': { 'f:a': leaf } }],
  ['nothing wished, nothing ours', true, {}, { spec: { a: 1 } }, {}],
  [
    'values given as undefined or null',
    true,
    { spec: { a: 1, b: undefined, c: null } },
    { spec: { a: 1 } },
    { 'f:spec': { 'f:a': leaf } },
  ],
  ['a text that looks like a number', false, { spec: { a: '1' } }, { spec: { a: 1 } }, { 'f:spec': { 'f:a': leaf } }],
  [
    'labels',
    true,
    {},
    {},
    { 'f:metadata': { 'f:labels': { 'f:app': leaf } } },
    { labels: { app: 'x' } },
    { labels: { app: 'x', other: 'y' } },
  ],
  [
    'a label changed by force',
    false,
    {},
    {},
    { 'f:metadata': { 'f:labels': { 'f:app': leaf } } },
    { labels: { app: 'x' } },
    { labels: { app: 'y' } },
  ],
  [
    'a label too few',
    false,
    {},
    {},
    { 'f:metadata': { 'f:labels': { 'f:app': leaf, 'f:b': leaf } } },
    { labels: { app: 'x' } },
    { labels: { app: 'x', b: 'y' } },
  ],
  [
    'a label too many',
    false,
    {},
    {},
    { 'f:metadata': { 'f:labels': { 'f:app': leaf } } },
    { labels: { app: 'x', b: 'y' } },
    { labels: { app: 'x', b: 'y' } },
  ],
  [
    'an annotation with an odd name',
    true,
    {},
    {},
    { 'f:metadata': { 'f:annotations': { '.': {}, 'f:a.b/c:d': leaf } } },
    { annotations: { 'a.b/c:d': '' } },
    { annotations: { 'a.b/c:d': '' } },
  ],
  [
    'an owner reference',
    true,
    {},
    {},
    { 'f:metadata': { 'f:ownerReferences': { [key({ uid: 'o' })]: leaf } } },
    { ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'o', uid: 'o', controller: true }] },
    {
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Y', name: 'p', uid: 'p' },
        { apiVersion: 'v1', kind: 'X', name: 'o', uid: 'o', controller: true },
      ],
    },
  ],
  [
    'an owner reference that differs inside: it is one thing',
    false,
    {},
    {},
    { 'f:metadata': { 'f:ownerReferences': { [key({ uid: 'o' })]: leaf } } },
    { ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'o', uid: 'o' }] },
    { ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'o', uid: 'o', controller: true }] },
  ],
  [
    'finalizers, a set, among those of others',
    true,
    {},
    {},
    { 'f:metadata': { 'f:finalizers': { '.': {}, 'v:"x/a"': leaf } } },
    { finalizers: ['x/a'] },
    { finalizers: ['y/b', 'x/a'] },
  ],
  [
    'a finalizer that is ours and wished no more',
    false,
    {},
    {},
    { 'f:metadata': { 'f:finalizers': { 'v:"x/a"': leaf, 'v:"x/b"': leaf } } },
    { finalizers: ['x/a'] },
    { finalizers: ['x/a', 'x/b'] },
  ],
]

const containers = (ours: object) => ({ 'f:spec': { 'f:containers': ours } })
const inLists: Case[] = [
  [
    'containers by name, with what the server filled in',
    true,
    { spec: { containers: [{ name: 'a', image: 'x' }] } },
    { spec: { containers: [{ name: 'a', image: 'x', imagePullPolicy: 'Always' }, { name: 'injected' }] } },
    containers({ [key({ name: 'a' })]: { '.': {}, 'f:name': leaf, 'f:image': leaf } }),
  ],
  [
    'containers in another order: the server would reorder them',
    false,
    { spec: { containers: [{ name: 'b' }, { name: 'a' }] } },
    { spec: { containers: [{ name: 'a' }, { name: 'b' }] } },
    containers({
      [key({ name: 'a' })]: { '.': {}, 'f:name': leaf },
      [key({ name: 'b' })]: { '.': {}, 'f:name': leaf },
    }),
  ],
  [
    'containers in order, with one of others between',
    true,
    { spec: { containers: [{ name: 'a' }, { name: 'b' }] } },
    { spec: { containers: [{ name: 'a' }, { name: 'injected' }, { name: 'b' }] } },
    containers({
      [key({ name: 'b' })]: { '.': {}, 'f:name': leaf },
      [key({ name: 'a' })]: { '.': {}, 'f:name': leaf },
    }),
  ],
  [
    'a container too many',
    false,
    { spec: { containers: [{ name: 'a' }, { name: 'b' }] } },
    { spec: { containers: [{ name: 'a' }, { name: 'b' }] } },
    containers({ [key({ name: 'a' })]: { '.': {}, 'f:name': leaf } }),
  ],
  [
    'a container too few',
    false,
    { spec: { containers: [{ name: 'a' }] } },
    { spec: { containers: [{ name: 'a' }, { name: 'b' }] } },
    containers({
      [key({ name: 'a' })]: { '.': {}, 'f:name': leaf },
      [key({ name: 'b' })]: { '.': {}, 'f:name': leaf },
    }),
  ],
  [
    'a container that somebody took away',
    false,
    { spec: { containers: [{ name: 'a' }] } },
    { spec: { containers: [{ name: 'b' }] } },
    containers({ [key({ name: 'a' })]: { '.': {}, 'f:name': leaf } }),
  ],
  [
    'the same item twice',
    false,
    { spec: { containers: [{ name: 'a' }, { name: 'a' }] } },
    { spec: { containers: [{ name: 'a' }] } },
    containers({ [key({ name: 'a' })]: { '.': {}, 'f:name': leaf } }),
  ],
  [
    'env by name',
    true,
    { spec: { containers: [{ name: 'a', env: [{ name: 'X', value: '1' }] }] } },
    {
      spec: {
        containers: [
          {
            name: 'a',
            env: [
              { name: 'X', value: '1' },
              { name: 'Y', value: '2' },
            ],
          },
        ],
      },
    },
    containers({
      [key({ name: 'a' })]: {
        '.': {},
        'f:name': leaf,
        'f:env': { [key({ name: 'X' })]: { '.': {}, 'f:name': leaf, 'f:value': leaf } },
      },
    }),
  ],
  [
    'env that is ours and wished no more',
    false,
    { spec: { containers: [{ name: 'a' }] } },
    { spec: { containers: [{ name: 'a', env: [{ name: 'X', value: '1' }] }] } },
    containers({
      [key({ name: 'a' })]: {
        '.': {},
        'f:name': leaf,
        'f:env': { [key({ name: 'X' })]: { '.': {}, 'f:name': leaf, 'f:value': leaf } },
      },
    }),
  ],
]

const port = (number: number, protocol: string, ...fields: string[]) => ({
  [key({ port: number, protocol })]: { '.': {}, ...Object.fromEntries(fields.map(field => [`f:${field}`, leaf])) },
})
const ports: Case[] = [
  [
    'ports whose protocol the server filled in',
    true,
    { spec: { ports: [{ port: 53 }, { port: 80 }] } },
    {
      spec: {
        ports: [
          { port: 53, protocol: 'TCP' },
          { port: 80, protocol: 'TCP' },
        ],
      },
    },
    { 'f:spec': { 'f:ports': { ...port(53, 'TCP', 'port'), ...port(80, 'TCP', 'port') } } },
  ],
  [
    'one number with two protocols, one of them filled in',
    true,
    { spec: { ports: [{ port: 53 }, { port: 53, protocol: 'UDP' }] } },
    {
      spec: {
        ports: [
          { port: 53, protocol: 'TCP' },
          { port: 53, protocol: 'UDP' },
        ],
      },
    },
    { 'f:spec': { 'f:ports': { ...port(53, 'UDP', 'port', 'protocol'), ...port(53, 'TCP', 'port') } } },
  ],
  [
    'the same the other way round',
    true,
    { spec: { ports: [{ port: 53, protocol: 'UDP' }, { port: 53 }] } },
    {
      spec: {
        ports: [
          { port: 53, protocol: 'UDP' },
          { port: 53, protocol: 'TCP' },
        ],
      },
    },
    { 'f:spec': { 'f:ports': { ...port(53, 'TCP', 'port'), ...port(53, 'UDP', 'port', 'protocol') } } },
  ],
  [
    'a protocol that is wished now and was filled in before: it would become ours',
    false,
    { spec: { ports: [{ port: 53, protocol: 'TCP' }] } },
    { spec: { ports: [{ port: 53, protocol: 'TCP' }] } },
    { 'f:spec': { 'f:ports': port(53, 'TCP', 'port') } },
  ],
  [
    'another protocol',
    false,
    { spec: { ports: [{ port: 53, protocol: 'UDP' }] } },
    { spec: { ports: [{ port: 53, protocol: 'TCP' }] } },
    { 'f:spec': { 'f:ports': port(53, 'TCP', 'port', 'protocol') } },
  ],
]

const atoms: Case[] = [
  [
    'an atomic list that is the same',
    true,
    { spec: { args: ['a', 'b'] } },
    { spec: { args: ['a', 'b'] } },
    { 'f:spec': { 'f:args': leaf } },
  ],
  [
    'an atomic list in another order',
    false,
    { spec: { args: ['b', 'a'] } },
    { spec: { args: ['a', 'b'] } },
    { 'f:spec': { 'f:args': leaf } },
  ],
  [
    'an atomic map with something more in it, which only the server could explain',
    false,
    { spec: { selector: { a: '1' } } },
    { spec: { selector: { a: '1', b: '2' } } },
    { 'f:spec': { 'f:selector': leaf } },
  ],
  [
    'an atomic map whose keys are in another order',
    true,
    { spec: { selector: { b: '2', a: '1' } } },
    { spec: { selector: { a: '1', b: '2' } } },
    { 'f:spec': { 'f:selector': leaf } },
  ],
  [
    'a set in another order',
    false,
    { spec: { tags: ['b', 'a'] } },
    { spec: { tags: ['a', 'b'] } },
    { 'f:spec': { 'f:tags': { 'v:"a"': leaf, 'v:"b"': leaf } } },
  ],
  [
    'a set of numbers',
    true,
    { spec: { tags: [1, 2] } },
    { spec: { tags: [1, 3, 2] } },
    { 'f:spec': { 'f:tags': { 'v:1': leaf, 'v:2': leaf } } },
  ],
  [
    'a list owned by place, of which only the server knows',
    false,
    { spec: { list: ['a'] } },
    { spec: { list: ['a'] } },
    { 'f:spec': { 'f:list': { 'i:0': leaf } } },
  ],
  [
    'an empty map, there and ours',
    true,
    { spec: { volume: { emptyDir: {} } } },
    { spec: { volume: { emptyDir: {} } } },
    { 'f:spec': { 'f:volume': { 'f:emptyDir': leaf } } },
  ],
  [
    'something where an empty map is wished',
    false,
    { spec: { volume: { emptyDir: {} } } },
    { spec: { volume: { emptyDir: { medium: 'Memory' } } } },
    { 'f:spec': { 'f:volume': { 'f:emptyDir': leaf } } },
  ],
  [
    'a map where a list is wished',
    false,
    { spec: { list: ['a'] } },
    { spec: { list: { a: 1 } } },
    { 'f:spec': { 'f:list': { 'v:"a"': leaf } } },
  ],
  [
    'a value where a map is wished',
    false,
    { spec: { map: { a: 1 } } },
    { spec: { map: 'text' } },
    { 'f:spec': { 'f:map': { 'f:a': leaf } } },
  ],
  ['what is ours and is not there', false, { spec: { a: 1 } }, {}, { 'f:spec': { 'f:a': leaf } }],
]

describe('whether applying would change something', () => {
  it.each([...cases, ...inLists, ...ports, ...atoms])(
    '%s: nothing would change is %s',
    (_, expected, wished, body, fields, wishedMeta, liveMeta) => {
      expect(isApplied(wish(wished, wishedMeta), live(body, fields, liveMeta), 'us')).toBe(expected)
    },
  )

  it('is not known of an object that we never applied', () => {
    const theirs = live({ spec: { a: 1 } }, { 'f:spec': { 'f:a': leaf } })
    expect(isApplied(wish({ spec: { a: 1 } }), theirs, 'nobody')).toBe(false)
    expect(isApplied(wish({}), { metadata: {} }, 'us')).toBe(false)
    expect(isApplied(wish({}), {}, 'us')).toBe(false)
  })

  it('is not known where we updated, or applied a subresource, or another version', () => {
    const fields = { 'f:spec': { 'f:a': leaf } }
    const wished = wish({ spec: { a: 1 } })
    for (const entry of [
      { operation: 'Update' },
      { subresource: 'status' },
      { apiVersion: 'v1beta1' },
      { fieldsV1: undefined },
    ]) {
      expect(isApplied(wished, live({ spec: { a: 1 } }, fields, {}, entry), 'us'), JSON.stringify(entry)).toBe(false)
    }
    expect(isApplied(wished, live({ spec: { a: 1 } }, fields), 'us')).toBe(true)
  })

  it('is not known of a wish for a certain version or uid', () => {
    const object = live({}, {})
    expect(isApplied(wish({}, { uid: 'u' }), object, 'us')).toBe(false)
    expect(isApplied(wish({}, { resourceVersion: '1' }), object, 'us')).toBe(false)
  })
})

const value = fc.jsonValue({ maxDepth: 3 })

/** RFC 7386, as it is written. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const isTargetMap = typeof target === 'object' && target !== null && !Array.isArray(target)
  const result = new Map<string, unknown>(isTargetMap ? Object.entries(target) : [])
  for (const [name, part] of Object.entries(patch)) {
    if (part === null) result.delete(name)
    else result.set(name, mergePatch(result.get(name), part))
  }
  return Object.fromEntries(result)
}

/** Without fields that are null, which a merge patch cannot say. Lists are as they are. */
function sayable(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, part]) => (part === null ? [] : [[name, sayable(part)]])),
  )
}

describe('a merge patch', () => {
  const map = fc.dictionary(fc.string({ maxLength: 3 }), value, { maxKeys: 4 })

  it('turns the one into the other, and is none where they are the same', () => {
    fc.assert(
      fc.property(map, map, (from, to) => {
        const start = sayable(from)
        const patch = mergePatchOf(start, to)
        const end = patch === undefined ? start : mergePatch(start, patch)
        expect(end).toEqual(sayable(to))
        expect(mergePatchOf(end, to), 'and then there is nothing left to do').toBeUndefined()
      }),
      { numRuns: 1000 },
    )
  })

  it('says nothing of what stays', () => {
    expect(mergePatchOf({ a: 1, b: { c: 2, d: [1] } }, { a: 1, b: { c: 3, d: [1] } })).toEqual({ b: { c: 3 } })
  })

  it('takes null and undefined for "not there"', () => {
    expect(mergePatchOf({ a: 1 }, { a: undefined })).toEqual({ a: null })
    expect(mergePatchOf({ a: 1 }, { a: null })).toEqual({ a: null })
    expect(mergePatchOf({}, { a: null, b: undefined })).toBeUndefined()
    expect(mergePatchOf({}, { a: { b: null, c: 1 } })).toEqual({ a: { c: 1 } })
    expect(mergePatchOf({ a: { c: 1 } }, { a: { b: null, c: 1 } })).toBeUndefined()
  })
})

describe('the same, as JSON', () => {
  it('is what JSON makes no difference between', () => {
    fc.assert(
      fc.property(value, value, (a, b) => {
        expect(same(a, structuredClone(a))).toBe(true)
        const sorted = (one: unknown) =>
          JSON.stringify(one, (_, part) =>
            typeof part === 'object' && part && !Array.isArray(part)
              ? Object.fromEntries(Object.entries(part).sort(([x], [y]) => (x < y ? -1 : 1)))
              : part,
          )
        if (sorted(a) !== sorted(b) && !Object.is(a, -0) && !Object.is(b, -0)) expect(same(a, b)).toBe(false)
      }),
    )
  })

  it('sees no difference between undefined and absent', () => {
    expect(same({ a: undefined }, {})).toBe(true)
    expect(same({ a: undefined, b: 1 }, { b: 1, c: undefined })).toBe(true)
    expect(same({ a: undefined }, { a: null })).toBe(false)
  })
})
