/**
 * What is wrong with an object, in sentences; and its documentation.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineCustomResource } from '../../../controller/toolkit/definition.ts'
import { field } from './arbitraries.ts'

const Memcached = defineCustomResource({
  group: 'cache.example.com',
  version: 'v1',
  kind: 'Memcached',
  shortNames: ['mc'],
  description: 'Servers that remember.',
  spec: z.object({
    size: z.int().min(1).max(5).describe('How many | servers run.'),
    ratio: z.number().gt(0).lt(1).multipleOf(0.25).optional(),
    mode: z.enum(['Fast', 'Safe']).default('Safe'),
    port: z.union([z.int(), z.string().regex(/^[a-z]+$/)]).optional(),
    parts: z
      .array(z.object({ name: z.string().min(2), at: z.iso.datetime().optional() }))
      .max(2)
      .optional(),
    labels: z.record(z.string(), z.string()).optional(),
    free: z.looseObject({ a: z.string().optional() }).optional(),
    note: z.string().max(3).nullable().optional(),
    even: z
      .int()
      .meta({ rules: [{ rule: 'self % 2 == 0', message: 'an even number' }, { rule: 'self > 0' }] })
      .optional(),
  }),
  status: z.object({ nodes: z.array(z.string()) }),
  rules: [{ rule: 'self.spec.size > 0', message: 'at least one server' }],
})
const problems = (spec: object) => Memcached.validate({ metadata: { name: 'a' }, spec: { size: 1, ...spec } })

describe('an object', () => {
  test('that is right has no problems', () => {
    expect(
      problems({
        ratio: 0.5,
        port: 'http',
        parts: [{ name: 'ab', at: '2026-01-01T00:00:00Z' }],
        labels: { a: 'b' },
        free: { b: 1 },
      }),
    ).toEqual([])
    expect(
      Memcached.validate({ ...Memcached.draft({ metadata: { name: 'a' }, spec: { size: 1 } }), status: {} }),
    ).toEqual([])
  })

  test.each<[object, string]>([
    [{ size: 9 }, 'spec.size is 9, but has to be 5 or less'],
    [{ size: 1.5 }, 'spec.size is 1.5, but has to be of type integer: 1 or more, 5 or less'],
    [{ size: '1' }, 'spec.size is "1", but has to be of type integer: 1 or more, 5 or less'],
    [{ size: undefined }, 'spec.size is missing; it has to be of type integer: 1 or more, 5 or less'],
    [{ size: null }, 'spec.size is missing; it has to be of type integer: 1 or more, 5 or less'],
    [{ ratio: 0 }, 'spec.ratio is 0, but has to be more than 0'],
    [{ ratio: 0.3 }, 'spec.ratio is 0.3, but has to be a multiple of 0.25'],
    [{ mode: 'Slow' }, 'spec.mode is "Slow", but has to be one of "Fast", "Safe"'],
    [{ port: true }, 'spec.port is true, but has to be of type integer or string: a text that matches ^[a-z]+$'],
    [{ parts: [{ name: 'a' }] }, 'spec.parts[0].name is "a", but has to be at least 2 long'],
    [{ parts: [{ name: 'ab', at: 'soon' }] }, 'spec.parts[0].at is "soon", but has to be a text of format date-time'],
    [{ parts: [1] }, 'spec.parts[0] is 1, but has to be of type object'],
    [
      { parts: ['ab', 'ab', 'ab'].map(name => ({ name })) },
      `spec.parts is ${JSON.stringify(['ab', 'ab', 'ab'].map(name => ({ name })))}, but has to be a list of at most 2`,
    ],
    [{ labels: { a: 1 } }, 'spec.labels.a is 1, but has to be of type string'],
    [{ note: 'long' }, 'spec.note is "long", but has to be at most 3 long'],
    [{ note: 1 }, 'spec.note is 1, but has to be of type string or null: at most 3 long'],
    [{ sise: 2 }, 'spec has no field "sise"; did you mean "size"?'],
    [{ parts: [{ name: 'ab', nam: 1 }] }, 'spec.parts[0] has no field "nam"; did you mean "name"?'],
  ])('with %o is told what would be accepted', (spec, sentence) => expect(problems(spec)).toEqual([sentence]))

  test('is told of all that is wrong, and of what is around its spec', () => {
    expect(problems({ size: 9, mode: 'Slow' })).toHaveLength(2)
    expect(
      Memcached.validate({
        apiVersion: 'cache.example.com/v2',
        kind: 'Memcache',
        metadata: {},
        spec: { size: 1 },
        sttus: {},
      }),
    ).toEqual([
      'apiVersion is "cache.example.com/v2", but has to be "cache.example.com/v1"',
      'kind is "Memcache", but has to be "Memcached"',
      'metadata.name is missing; it has to be a name',
      'the object has no field "sttus"; did you mean "status"?',
    ])
    const status = {
      conditions: [
        { type: 'Ready', status: 'Yes', reason: 'A', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
    }
    expect(Memcached.validate({ metadata: { name: 'a' }, spec: { size: 1 }, status })).toEqual([
      'status.conditions[0].status is "Yes", but has to be one of "True", "False", "Unknown"',
    ])
    expect(Memcached.validate({ metadata: { name: 'a' } })).toEqual(['spec is missing; it has to be of type object'])
  })

  test.each([undefined, null, 1, 'a', []])('that is %o is no object', value => {
    expect(Memcached.validate(value)).toEqual([expect.stringContaining('is no object of kind Memcached')])
  })
})

test('whatever the definition and the value, what is wrong is told by the field, and all of it is documented', () => {
  const some = field.chain(({ schema, value }) => fc.tuple(fc.constant(schema), fc.oneof(value, fc.jsonValue())))
  const property = fc.property(some, ([schema, value]) => {
    const spec = z.object({ field: schema.optional() })
    const Random = defineCustomResource({ group: 'cache.example.com', version: 'v1', kind: 'Random', spec })
    const problems = Random.validate({ metadata: { name: 'a' }, spec: { field: value } })
    for (const problem of problems) expect(problem).toMatch(/^spec\.field.* (has to be|has no field) /)
    expect(Random.docs()).toContain('`spec.field`')
  })
  fc.assert(property, { numRuns: 500 })
})

test('the documentation has a row for each field', () => {
  const text = Memcached.docs()
  expect(text).toContain('`cache.example.com/v1`, in a namespace, short `mc`.')
  expect(text).toContain('Servers that remember.\n\n- at least one server')
  for (const row of [
    '| field | type | default | constraints | description |',
    '| `spec.size` | integer | required | 1 or more; 5 or less | How many \\| servers run. |',
    '| `spec.ratio` | number |  | more than 0; less than 1; a multiple of 0.25 |  |',
    '| `spec.mode` | string | `"Safe"` | one of "Fast", "Safe" |  |',
    '| `spec.port` | integer or string |  | a text that matches `^[a-z]+$` |  |',
    '| `spec.parts[].name` | string | required | at least 2 long |  |',
    '| `spec.labels` | map of string |  |  |  |',
    '| `spec.even` | integer |  | an even number; `self > 0` |  |',
    '| `status.nodes` | list of string |  |  |  |',
  ]) {
    expect(text).toContain(row)
  }
})
