/**
 * Every sort of zod schema as the structural schema that it becomes, or the words with which it is refused.
 */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { jsonSchemaOf } from '../../../controller/toolkit/crd/jsonschema.ts'
import { structural } from '../../../controller/toolkit/crd/structural.ts'
import { table } from './schemas.ts'

const of = (schema: z.ZodType) => structural(jsonSchemaOf(schema), ['spec', 'field'])
describe('a schema of zod becomes one of a CRD:', () => {
  for (const [what, cases] of Object.entries(table)) {
    test.each(cases.map(([schema, expected], index) => [index + 1, schema, expected] as const))(
      `${what} %i`,
      (_, schema, expected) => expect(of(schema)).toEqual(expected),
    )
  }

  test('every format that has a pattern keeps it or what the server knows for it', () => {
    const formats = [
      ...[
        z.email(),
        z.uuid(),
        z.uuidv4(),
        z.guid(),
        z.ipv4(),
        z.ipv6(),
        z.cidrv4(),
        z.cidrv6(),
        z.base64(),
        z.base64url(),
      ],
      ...[z.hostname(), z.mac(), z.hex(), z.hash('sha256'), z.e164(), z.ulid(), z.cuid2(), z.ksuid(), z.iso.time()],
      ...[
        z.string().lowercase(),
        z.string().includes('b'),
        z.iso.datetime({ precision: 3 }),
        z.iso.datetime({ local: true }),
      ],
    ]
    for (const format of formats) expect(of(format)).toMatchObject({ type: 'string', pattern: expect.any(String) })
    expect(of(z.hostname())).toMatchObject({ format: 'hostname', maxLength: 253 })
  })
})

const tree: z.ZodType = z.object({ children: z.lazy(() => z.array(tree)) })
const refusals: [string, z.ZodType, RegExp][] = [
  [
    'an unknown keyword of anything',
    z.json().meta({ 'x-kubernetes-preserve-unknown-fields': true, foo: 1 }),
    /"foo" is no keyword/,
  ],
  ['refine', z.string().refine(value => value !== 'x'), /\.refine.* CEL rule/],
  [
    'refine after a default',
    z
      .string()
      .default('x')
      .refine(() => true),
    /CEL rule/,
  ],
  [
    'refine of an optional field',
    z
      .string()
      .optional()
      .refine(() => true),
    /CEL rule/,
  ],
  ['refine of a record', z.record(z.string(), z.string()).refine(() => true), /CEL rule/],
  ['superRefine', z.object({}).superRefine(() => undefined), /CEL rule/],
  ['custom', z.custom(() => true), /z\.custom.* CEL rule/],
  ['transform', z.string().transform(Number), /transform/],
  ['pipe', z.string().pipe(z.string()), /transform/],
  ['preprocess', z.preprocess(String, z.string()), /transform/],
  ['stringbool', z.stringbool(), /transform/],
  ['trim', z.string().trim(), /\.trim/],
  ['coerce', z.coerce.number(), /z\.coerce/],
  ['catch', z.string().catch('x'), /use \.default\(\)/],
  ['bigint', z.bigint(), /z\.int\(\)/],
  ['int64', z.int64(), /z\.int\(\)/],
  ['date', z.date(), /z\.iso\.datetime\(\)/],
  ['set', z.set(z.string()), /x-kubernetes-list-type/],
  ['map', z.map(z.string(), z.string()), /z\.record/],
  ['tuple', z.tuple([z.string()]), /z\.array/],
  ['undefined', z.undefined(), /\.optional\(\)/],
  ['or undefined', z.string().or(z.undefined()), /\.optional\(\)/],
  ['null alone', z.null(), /nullable/],
  ['never', z.never(), /leave the field out/],
  ['nan', z.nan(), /NaN/],
  ['jwt', z.jwt(), /"jwt" is checked by a function/],
  ['a format of one’s own', z.stringFormat('odd', () => true), /"odd" is checked by a function/],
  ['parts of a URL', z.httpUrl(), /getScheme/],
  ['ISO durations', z.iso.duration(), /1h30m/],
  ['look-ahead', z.string().regex(/^(?!x)/), /"\^\(\?!x\)" has a look-ahead/],
  ['look-behind', z.string().regex(/(?<=x)y/), /look-behind/],
  ['back-reference', z.string().regex(/(a)\1/), /reference back/],
  ['long repetition', z.string().regex(/a{1001}/), /1000/],
  ['emoji', z.emoji(), /look-ahead/],
  ['an unknown format', z.string().meta({ format: 'uuidd' }), /"uuidd" is no format/],
  ['constrained names of a record', z.record(z.enum(['a']), z.string()), /names of a record/],
  ['patterns of names', z.record(z.string().regex(/a/), z.string()), /names of a record/],
  ['fields and others', z.object({ a: z.string() }).catchall(z.string()), /either fields or values/],
  ['recursion', tree, /^spec\.field\.children\[\]: it holds itself/],
  ['JSON', z.json(), /holds itself|cannot be told/],
  [
    'a discriminated union',
    z.discriminatedUnion('t', [z.object({ t: z.literal('a') }), z.object({ t: z.literal('b') })]),
    /union of object.*one object with an optional field/,
  ],
  ['a union of several types', z.union([z.string(), z.boolean()]), /union of string, boolean/],
  ['text or number', z.union([z.string(), z.number()]), /union of string, number/],
  ['values of several types', z.literal([1, true]), /several types/],
  ['an intersection', z.intersection(z.string().min(1), z.string().max(2)), /\.extend\(\)/],
  ['a default that does not fit', z.int().max(1).default(2), /default 2 is not accepted/],
  ['a default of null', z.int().nullable().default(null), /\.nullish\(\)/],
  ['a default in a union', z.union([z.string().default('x'), z.int()]), /cannot have a default/],
  ['an unknown keyword', z.string().meta({ maxLengt: 3 }), /"maxLengt" is no keyword.*did you mean "maxLength"/],
  [
    'a keyword of another type',
    z.int().meta({ maxLength: 3 }),
    /"maxLength" is no keyword of a schema of type integer/,
  ],
  [
    'an unknown extension',
    z.array(z.string()).meta({ 'x-kubernetes-list-typ': 'set' }),
    /did you mean "x-kubernetes-list-type"/,
  ],
  ['an unknown list type', z.array(z.string()).meta({ 'x-kubernetes-list-type': 'sett' }), /did you mean "set"/],
  ['a map without keys', z.array(z.object({})).meta({ 'x-kubernetes-list-type': 'map' }), /list-map-keys/],
  [
    'keys without a map',
    z.array(z.object({})).meta({ 'x-kubernetes-list-map-keys': ['a'] }),
    /'x-kubernetes-list-type': 'map'/,
  ],
  [
    'an unknown key',
    z
      .array(z.object({ name: z.string() }))
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['nam'] }),
    /did you mean "name"/,
  ],
  [
    'an optional key',
    z
      .array(z.object({ a: z.string().optional() }))
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['a'] }),
    /make it required/,
  ],
  ['a rule that is no CEL', z.int().meta({ rules: [{ rule: 'self >' }] }), /"self >" is no CEL/],
  ['a rule without one', z.int().meta({ rules: [{ message: 'x' }] }), /is no rule/],
  ['a rule with more', z.int().meta({ rules: [{ rule: 'true', mesage: 'x' }] }), /did you mean "message"/],
]

describe('what a CRD cannot say is refused, by its path:', () => {
  test.each(refusals)('%s', (_, schema, message) => {
    const define = () => of(schema)
    expect(define).toThrow(message)
    expect(define).toThrow(expect.objectContaining({ code: 'Misuse', message: expect.stringMatching(/^spec\.field/) }))
  })

  test('wherever it stands', () => {
    const bad = z.date()
    expect(() => of(z.array(z.object({ a: bad })))).toThrow(/^spec\.field\[\]\.a: /)
    expect(() => of(z.record(z.string(), bad))).toThrow(/^spec\.field\.\*: /)
    expect(() => of(z.object({ a: bad.optional().describe('x') }))).toThrow(/^spec\.field\.a: /)
    expect(() => of(z.union([z.string(), z.int().refine(() => true)]))).toThrow(/CEL rule/)
    expect(() =>
      of(
        z.object({
          a: z
            .string()
            .refine(() => true)
            .describe('x')
            .optional()
            .default('y'),
        }),
      ),
    ).toThrow(/CEL rule/)
  })
})
