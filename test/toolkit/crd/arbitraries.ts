/**
 * Random zod schemas of the kinds that a CRD can hold, each with values that fit it, nearly fit it, or do not fit at all.
 */
import fc from 'fast-check'
import { z } from 'zod'

export interface Field {
  readonly schema: z.ZodType
  readonly value: fc.Arbitrary<unknown>
}

const word = fc.constantFrom('a', 'b', 'ab', 'abc', 'x y', '', '5', 'ä', '10%')
const number = fc.oneof(fc.integer({ min: -3, max: 8 }), fc.constantFrom(1.5, -0.5, 2 ** 31, -(2 ** 40)))
const scalarValue = fc.oneof(word, number, fc.boolean(), fc.constant(null))
const wrong = fc.oneof(scalarValue, fc.constant([]), fc.constant({}), fc.constant(['a']), fc.constant({ a: 1 }))

const mostly = (value: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 4, arbitrary: value }, { weight: 1, arbitrary: wrong })
const given = (schema: z.ZodType, value: fc.Arbitrary<unknown>): Field => ({ schema, value: mostly(value) })
const range = fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 3 })).map(([from, size]) => [from, from + size] as const)

const texts = fc.oneof(
  fc.constant(z.string()),
  range.map(([from, to]) => z.string().min(from).max(to)),
  fc.constantFrom(/^a/, /b$/i, /^\d+%?$/, /^[^x]*$/).map(pattern => z.string().regex(pattern)),
  fc.constant(z.string().regex(/^a/).regex(/b$/)),
  fc.constant(z.string().startsWith('a')),
)
const integers = fc.oneof(
  fc.constantFrom(z.int(), z.int32(), z.uint32(), z.int().positive()),
  range.map(([from, to]) => z.int().min(from).max(to)),
  fc.integer({ min: 2, max: 3 }).map(divisor => z.int().multipleOf(divisor)),
)
const numbers = fc.oneof(
  fc.constantFrom(z.number(), z.float64()),
  range.map(([from, to]) =>
    z
      .number()
      .gt(from)
      .lt(to + 1),
  ),
)
const choices = fc.uniqueArray(fc.constantFrom('a', 'b', 'ab', 'abc'), { minLength: 1 })
const times = fc.constantFrom(
  '2026-01-31T10:00:00Z',
  '2026-02-30T10:00:00Z',
  '2026-01-31T10:00:00+01:00',
  '2026-01-31',
  'now',
)

const scalars: fc.Arbitrary<Field> = fc.oneof(
  texts.map(schema => given(schema, word)),
  integers.map(schema => given(schema, number)),
  numbers.map(schema => given(schema, number)),
  fc.constant(given(z.boolean(), fc.boolean())),
  choices.map(values => given(z.enum(values as [string]), word)),
  choices.map(values => given(z.union([z.int().min(2), z.enum(values as [string])]), scalarValue)),
  fc
    .tuple(texts, integers)
    .map(([text, integer]) => ({ text, integer }))
    .filter(({ text }) => text.def.checks?.length !== 2)
    .map(({ text, integer }) => given(z.union([text, integer]), scalarValue)),
  fc
    .tuple(choices, texts)
    .filter(([, text]) => text.def.checks?.length !== 2)
    .map(([values, text]) => given(z.union([z.enum(values as [string]), text]), word)),
  fc.constant(given(z.literal([1, 2, 'a']), scalarValue)),
  // No lists: the server lets them pass for any text with a format.
  fc
    .constantFrom(z.iso.datetime(), z.iso.datetime({ offset: true }), z.iso.date())
    .map(schema => ({ schema, value: fc.oneof(times, scalarValue) })),
  fc.constant({ schema: z.unknown(), value: wrong.filter(value => value !== null) }),
)

const { node } = fc.letrec<{ node: Field }>(tie => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalars,
    scalars.map(({ schema, value }) => ({ schema: schema.nullable(), value: fc.oneof(value, fc.constant(null)) })),
    fc
      .tuple(tie('node'), range)
      .map(([{ schema, value }, [from, to]]) =>
        given(z.array(schema).min(from).max(to), fc.array(value, { maxLength: 4 })),
      ),
    tie('node').map(({ schema, value }) =>
      given(z.record(z.string(), schema), fc.dictionary(fc.constantFrom('k', 'l'), value)),
    ),
    fc
      .tuple(fc.array(fc.tuple(tie('node'), fc.boolean()), { maxLength: 3 }), fc.boolean())
      .map(([members, isLoose]) => {
        const names = ['a', 'b', 'c']
        const shape = Object.fromEntries(
          members.map(([{ schema }, isOptional], index) => [names[index], isOptional ? schema.optional() : schema]),
        )
        const values: Record<string, fc.Arbitrary<unknown>> = Object.fromEntries(
          members.map(([{ value }], index) => [names[index], value]),
        )
        const fields = fc.record(values, { requiredKeys: Object.keys(values).slice(1) })
        const value = fc.tuple(fields, fc.boolean()).map(([object, isOdd]) => (isOdd ? { ...object, odd: 1 } : object))
        return given(isLoose ? z.looseObject(shape) : z.object(shape), value)
      }),
  ),
}))

/** A field's schema, sometimes with a description. */
export const field: fc.Arbitrary<Field> = fc
  .tuple(node, fc.boolean())
  .map(([{ schema, value }, isDescribed]) => ({ schema: isDescribed ? schema.describe('A field.') : schema, value }))
