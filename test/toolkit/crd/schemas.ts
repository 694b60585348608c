/**
 * Every sort of zod schema beside the structural schema that it becomes.
 */
import { expect } from 'vitest'
import { z } from 'zod'

const int64 = { type: 'integer', format: 'int64' }
const text = { type: 'string' }
const anything = { 'x-kubernetes-preserve-unknown-fields': true }
const either = { 'x-kubernetes-int-or-string': true }

/** By what it is about: a schema, and what becomes of it. */
export const table: Record<string, [z.ZodType, object][]> = {
  texts: [
    [z.string(), text],
    [z.string().min(1).max(5), { ...text, minLength: 1, maxLength: 5 }],
    [z.string().length(3), { ...text, minLength: 3, maxLength: 3 }],
    [z.string().regex(/^a\/b$/), { ...text, pattern: '^a\\/b$' }],
    [z.string().regex(/^ab$/i), { ...text, pattern: '(?i)^ab$' }],
    [z.string().regex(/^a/i).regex(/b$/), { ...text, allOf: [{ pattern: '(?i)^a' }, { pattern: 'b$' }] }],
    [z.string().regex(/(?<year>\d{4})\u00e4/), { ...text, pattern: '(?P<year>\\d{4})\\x{00e4}' }],
    [z.string().startsWith('a.'), { ...text, pattern: '^a\\..*' }],
    [z.templateLiteral(['v', z.int()]), { ...text, pattern: '^v-?\\d+$' }],
    [z.url(), { ...text, format: 'uri', pattern: '^[A-Za-z][A-Za-z0-9+.-]*:' }],
    [
      z.url().endsWith('/'),
      { ...text, format: 'uri', allOf: [{ pattern: '.*\\/$' }, { pattern: '^[A-Za-z][A-Za-z0-9+.-]*:' }] },
    ],
    [z.iso.date(), { ...text, format: 'date' }],
    [z.iso.datetime(), { ...text, format: 'date-time', pattern: 'Z$' }],
    [z.iso.datetime({ offset: true }), { ...text, format: 'date-time' }],
    [z.nanoid(), { ...text, pattern: '^[a-zA-Z0-9_-]{21}$' }],
    [z.string().meta({ format: 'k8s-short-name' }), { ...text, format: 'k8s-short-name' }],
  ],
  numbers: [
    [z.number(), { type: 'number' }],
    [z.number().gt(1).lte(4.5), { type: 'number', minimum: 1, exclusiveMinimum: true, maximum: 4.5 }],
    [z.number().multipleOf(0.5), { type: 'number', multipleOf: 0.5 }],
    [z.float32(), { type: 'number', format: 'float' }],
    [z.float64(), { type: 'number', format: 'double' }],
    [z.int(), int64],
    [z.number().int(), int64],
    [z.int().min(1).max(5), { ...int64, minimum: 1, maximum: 5 }],
    [z.int().positive(), { ...int64, minimum: 0, exclusiveMinimum: true }],
    [z.int32(), { type: 'integer', format: 'int32' }],
    [z.int32().min(0), { type: 'integer', format: 'int32', minimum: 0 }],
    [z.uint32(), { ...int64, minimum: 0, maximum: 4294967295 }],
  ],
  'flags and allowed values': [
    [z.boolean(), { type: 'boolean' }],
    [z.literal(true), { type: 'boolean', enum: [true] }],
    [z.enum(['a', 'b']), { ...text, enum: ['a', 'b'] }],
    [z.enum({ A: 1, B: 2 }), { type: 'integer', enum: [1, 2] }],
    [z.literal('a'), { ...text, enum: ['a'] }],
    [z.literal(1.5), { type: 'number', enum: [1.5] }],
    [z.literal([1, 'auto']), { ...either, enum: [1, 'auto'] }],
    [z.literal(['a', null]), { ...text, nullable: true, allOf: [{ enum: ['a'] }] }],
  ],
  lists: [
    [z.array(z.string()), { type: 'array', items: text }],
    [z.array(z.int()).min(1).max(3), { type: 'array', items: int64, minItems: 1, maxItems: 3 }],
    [
      z.array(z.string()).meta({ 'x-kubernetes-list-type': 'set' }),
      { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
    ],
    [
      z
        .array(z.object({ name: z.string() }))
        .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
      {
        type: 'array',
        items: { type: 'object', required: ['name'], properties: { name: text } },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      },
    ],
  ],
  objects: [
    [z.object({}), { type: 'object' }],
    [
      z.object({ a: z.string(), b: z.string().optional(), c: z.string().default('x') }),
      { type: 'object', required: ['a'], properties: { a: text, b: text, c: { ...text, default: 'x' } } },
    ],
    [z.strictObject({ a: z.string() }), { type: 'object', required: ['a'], properties: { a: text } }],
    [z.looseObject({ a: z.string() }), { type: 'object', required: ['a'], properties: { a: text }, ...anything }],
    [z.object({}).catchall(z.int()), { type: 'object', additionalProperties: int64 }],
    [z.record(z.string(), z.int()), { type: 'object', additionalProperties: int64 }],
    [z.record(z.string(), z.unknown()), { type: 'object', ...anything }],
    [
      z.record(z.string(), z.string()).meta({ maxProperties: 2 }),
      { type: 'object', maxProperties: 2, additionalProperties: text },
    ],
    [
      z.object({ a: z.string() }).and(z.object({ b: z.int() })),
      { type: 'object', required: ['a', 'b'], properties: { a: text, b: int64 } },
    ],
    [
      z.object({ a: z.int().default(1) }).prefault({}),
      { type: 'object', properties: { a: { ...int64, default: 1 } }, default: {} },
    ],
    [
      z.object({ a: z.string().meta({ id: 'shared-id' }), b: z.lazy(() => z.string()) }),
      { type: 'object', required: ['a', 'b'], properties: { a: text, b: text } },
    ],
  ],
  anything: [
    [z.unknown(), anything],
    [z.any(), anything],
    [z.json().meta(anything), anything],
    [z.custom<{ a: 1 }>().meta({ type: 'object', ...anything }), { type: 'object', ...anything }],
    [z.union([z.object({ a: z.string() }), z.string()]).meta(anything), anything],
    [
      z.looseObject({}).meta({ 'x-kubernetes-embedded-resource': true }),
      { type: 'object', 'x-kubernetes-embedded-resource': true, ...anything },
    ],
  ],
  null: [
    [z.string().nullable(), { ...text, nullable: true }],
    [z.enum(['a']).nullable(), { ...text, nullable: true, allOf: [{ enum: ['a'] }] }],
    [z.literal(true).nullable(), { type: 'boolean', nullable: true, allOf: [{ enum: [true] }] }],
    [z.union([z.string(), z.null()]), { ...text, nullable: true }],
    [
      z.object({ a: z.int() }).nullable(),
      { type: 'object', required: ['a'], properties: { a: int64 }, nullable: true },
    ],
    [z.int().nullable().default(1), { ...int64, nullable: true, default: 1 }],
  ],
  unions: [
    [z.union([z.string(), z.int()]), either],
    [z.xor([z.string(), z.int()]), either],
    [z.union([z.string(), z.int()]).nullable(), { ...either, nullable: true }],
    [z.union([z.int().min(1), z.string().regex(/^\d+%$/)]), { ...either, minimum: 1, pattern: '^\\d+%$' }],
    [z.union([z.int(), z.literal('a+b')].reverse()), { ...either, pattern: '^(a\\+b)$' }],
    [z.union([z.literal(1), z.literal('a')]), { ...either, enum: [1, 'a'] }],
    [z.union([z.literal('a'), z.literal('b'), z.enum(['b', 'c'])]), { ...text, enum: ['a', 'b', 'c'] }],
    [z.union([z.literal('a'), z.literal('b')]).nullable(), { ...text, nullable: true, allOf: [{ enum: ['a', 'b'] }] }],
    [z.union([z.literal('a'), z.string().regex(/^x/)]), { ...text, anyOf: [{ enum: ['a'] }, { pattern: '^x' }] }],
    [z.union([z.literal('a').nullable(), z.literal('b')]), { ...text, nullable: true, allOf: [{ enum: ['a', 'b'] }] }],
    [z.union([z.string(), z.literal('a')]), text],
    [z.union([z.int().max(1), z.int().min(5)]), { ...int64, anyOf: [{ maximum: 1 }, { minimum: 5 }] }],
    [
      z.union([z.ipv4(), z.string().max(0)]),
      { ...text, anyOf: [{ format: 'ipv4', pattern: expect.any(String) }, { maxLength: 0 }] },
    ],
    [z.union([z.union([z.literal('a'), z.literal('b')]), z.literal('c')]), { ...text, enum: ['a', 'b', 'c'] }],
    [
      z.union([z.literal('a').describe('the first'), z.literal('b')]).describe('A letter.'),
      { ...text, enum: ['a', 'b'], description: 'A letter. "a": the first' },
    ],
  ],
  words: [
    [z.string().describe('What it is.'), { ...text, description: 'What it is.' }],
    [z.string().optional().describe('What it is.'), { ...text, description: 'What it is.' }],
    [z.string().describe('What it is.').default('x'), { ...text, description: 'What it is.', default: 'x' }],
    [z.string().meta({ title: 'T', examples: ['a', 'b'] }), { ...text, title: 'T', example: 'a' }],
    [z.string().meta({ description: 'Old.', deprecated: true }), { ...text, description: 'Deprecated. Old.' }],
    [z.string().readonly(), text],
    [z.string().brand('b'), text],
  ],
  rules: [
    [
      z.int().meta({ rules: [{ rule: 'self >= oldSelf', message: 'never shrinks' }] }),
      { ...int64, 'x-kubernetes-validations': [{ rule: 'self >= oldSelf', message: 'never shrinks' }] },
    ],
    [
      z.int().meta({ rules: [{ rule: 'self > 1' }], 'x-kubernetes-validations': [{ rule: 'self > 0' }] }),
      { ...int64, 'x-kubernetes-validations': [{ rule: 'self > 1' }, { rule: 'self > 0' }] },
    ],
    [
      z
        .object({ a: z.string().optional() })
        .meta({ rules: [{ rule: "[?self.?a].size() == 1 || self.?a.orValue('') == ''" }] }),
      expect.objectContaining({ 'x-kubernetes-validations': [expect.anything()] }),
    ],
  ],
}
