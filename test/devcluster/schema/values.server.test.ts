/**
 * The same schemas and values to the real server and to our functions: what is kept, what is refused and in which words.
 */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { findDuplicates } from '../../../devcluster/api/schema/duplicates.ts'
import type { Schema } from '../../../devcluster/api/schema/schema.ts'
import { findUnknown } from '../../../devcluster/api/schema/unknown.ts'
import { formats, metadata, schemas } from './cases.ts'
import { randomCases } from './random.ts'
import { ourVerdict, realServer } from './real.ts'

const file = inject('kubeconfig')

describe.skipIf(!file)('a schema, with a real server', () => {
  let real: ReturnType<typeof realServer>
  beforeAll(() => {
    real = realServer(file)
  })
  afterAll(() => real.close())

  /** Each case is a field of one kind, so that one definition serves them all. */
  async function compare(cases: readonly { name: string; schema: Schema; values: readonly unknown[] }[]) {
    const spec: Schema = { type: 'object', properties: Object.fromEntries(cases.map(one => [one.name, one.schema])) }
    const kind = await real.define(spec)
    const theirs: unknown[] = []
    const ours: unknown[] = []
    for (const { name, schema, values } of cases) {
      for (const value of values) {
        const given = { [name]: value }
        const about = { schema, given }
        theirs.push({ ...about, ...(await kind.create(given)) })
        ours.push({ ...about, ...ourVerdict(spec, given) })
      }
    }
    expect(ours).toEqual(theirs)
  }

  test('types, ranges, lists, maps, combinations, embedded objects', async () => {
    await compare(Object.entries(schemas).map(([name, [schema, values]]) => ({ name, schema, values })))
  })

  test('formats of strings', async () => {
    await compare(
      Object.entries(formats).map(([format, values]) => {
        return { name: format, schema: { type: 'string', format } satisfies Schema, values: [...values, 3, true, []] }
      }),
    )
  })

  test('random schemas and values', async () => {
    const seed = Number(process.env.SHIPMATE_SEED ?? 1)
    await compare(randomCases(seed, 60, 8))
  })

  test('metadata', async () => {
    const spec: Schema = { type: 'object', properties: {} }
    const kind = await real.define(spec)
    for (const given of metadata) {
      const theirs = await kind.create({}, given)
      expect({ given, ...ourVerdict(spec, {}, { metadata: given }) }).toEqual({ given, ...theirs })
    }
  })

  test('duplicate keys and unknown fields, told and refused', async () => {
    const spec: Schema = {
      type: 'object',
      properties: { l: { type: 'array', items: { type: 'object', properties: { p: { type: 'integer' } } } } },
    }
    const kind = await real.define(spec)
    const text = `{"apiVersion":"schema.test.example.com/v1","kind":"${kind.kind}","metadata":{"name":"x","zip":1,"labels":{"a":"1","a":"2"}},
      "foo":1,"foo":2,"spec":{"q":{"\\u0061":1,"a":2},"l":[{},{"u":1,"u":2,"p":1,"p":"{\\""},{"p":3}],"l":[{"p":1,"z":1}]}}`
    const fine = text.replace('"p":"{\\""', '"p":4')
    const schema: Schema = { type: 'object', properties: { spec } }
    const told = [
      ...findDuplicates(fine).map(path => `duplicate field "${path}"`),
      ...findUnknown(schema, JSON.parse(fine)).map(path => `unknown field "${path}"`),
    ]
    expect((await kind.raw(fine, 'Warn')).warnings).toEqual(told)
    const strict = await kind.raw(fine, 'Strict')
    expect(strict.status).toBe(400)
    expect(strict.message).toBe(
      `${kind.kind} in version "v1" cannot be handled as a ${kind.kind}: strict decoding error: ${told.join(', ')}`,
    )
  })

  test('an update is let pass where nothing has changed, and refused where something has', async () => {
    const loose: Schema = {
      type: 'object',
      properties: {
        s: { type: 'string' },
        t: { type: 'string' },
        l: { type: 'array', items: { type: 'string' } },
        ml: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['k'],
          items: { type: 'object', required: ['k'], properties: { k: { type: 'string' }, v: { type: 'integer' } } },
        },
        o: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } } },
        m: { type: 'object', additionalProperties: { type: 'string' } },
        c: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } } },
        dup: { type: 'array', items: { type: 'string' } },
      },
    }
    const tight = structuredClone(loose)
    const properties = tight.properties as Record<
      string,
      Schema & { items: Schema; properties: Record<string, Schema> }
    >
    Object.assign(properties.s ?? {}, { maxLength: 2 })
    Object.assign(properties.l?.items ?? {}, { pattern: '^ok$' })
    Object.assign(properties.ml?.items.properties?.v ?? {}, { maximum: 5 })
    Object.assign(properties.o ?? {}, { required: ['b'], 'x-kubernetes-validations': [{ rule: 'has(self.b)' }] })
    Object.assign(properties.m ?? {}, { additionalProperties: { type: 'string', enum: ['x'] } })
    Object.assign(properties.c ?? {}, { anyOf: [{ required: ['b'] }, { properties: { a: { enum: ['z'] } } }] })
    Object.assign(properties.dup ?? {}, { 'x-kubernetes-list-type': 'set' })
    const old = {
      s: 'long',
      l: ['bad', 'ok'],
      ml: [
        { k: 'a', v: 9 },
        { k: 'b', v: 9 },
      ],
      o: { a: 'x' },
      m: { a: '1', b: '2' },
      c: { a: 'q' },
      dup: ['a', 'a'],
    }
    const changes: object[] = [
      { t: '1' },
      { s: 'long2' },
      { s: 3 },
      { l: ['bad', 'ok', 'ok'] },
      { l: ['ok', 'bad'] },
      {
        ml: [
          { k: 'b', v: 9 },
          { k: 'a', v: 8 },
          { k: 'c', v: 9 },
        ],
      },
      { o: { a: 'y' } },
      { o: { a: 'y', b: 'z' } },
      { m: { a: '1', b: '3', c: '4' } },
      { c: { a: 'r' } },
      { dup: ['a', 'a', 'b', 'b'] },
    ]
    const kind = await real.define(loose)
    for (const index of changes.keys()) await kind.store(`x${index}`, old)
    await kind.change(tight, { s: 'long' })
    for (const [index, change] of changes.entries()) {
      const theirs = await kind.update(`x${index}`, { ...old, ...change })
      expect({ change, ...ourVerdict(tight, { ...old, ...change }, { old }) }).toEqual({ change, ...theirs })
    }
  })
})
