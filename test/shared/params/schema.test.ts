import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { schemaFindings } from '../../../shared/params/keywords.ts'
import { compileParams, defaultProblem } from '../../../shared/params/schema.ts'

const seed = Number(process.env.SHIPMATE_SEED ?? 1)

describe('parameters', () => {
  const params = compileParams({
    to: { type: 'string', pattern: '^/backup/' },
    level: { type: 'integer', minimum: 1, maximum: 9, default: 6 },
    label: { type: 'string', required: false },
    password: { type: 'string', writeOnly: true, minLength: 8 },
  })

  it('that fit are taken, with defaults filled in and what is optional left out', () => {
    expect(params.check({ to: '/backup/1', password: 'long enough' })).toEqual({
      params: { to: '/backup/1', level: 6, password: 'long enough' },
    })
  })

  it('say which are secret and which are required', () => {
    expect(params).toMatchObject({ secrets: ['password'], required: ['to', 'password'] })
    expect(params.names).toEqual(['to', 'level', 'label', 'password'])
  })

  it('are shown as one JSON schema', () => {
    expect(params.schema).toEqual({
      type: 'object',
      properties: {
        to: { type: 'string', pattern: '^/backup/' },
        level: { type: 'integer', minimum: 1, maximum: 9, default: 6 },
        label: { type: 'string' },
        password: { type: 'string', writeOnly: true, minLength: 8 },
      },
      required: ['to', 'password'],
      additionalProperties: false,
    })
  })

  it('that do not fit are each named, with their value and what would be accepted', () => {
    const { problems } = params.check({ to: '/etc', level: 11, lable: 'x', password: 'long enough' })
    expect(problems).toEqual([
      'params.lable is not declared; did you mean "label"?',
      'params.to is "/etc", but has to be a text that matches ^/backup/',
      'params.level is 11, but has to be 9 or less',
    ])
  })

  it('that are missing are told by what they have to be', () => {
    expect(params.check({}).problems).toEqual([
      'params.to is missing: it has to be of type string, a text that matches ^/backup/',
      'params.password is missing: it has to be of type string',
    ])
  })

  it('have patterns that match anywhere, unless they say otherwise', () => {
    const anywhere = compileParams({ x: { type: 'string', pattern: 'b' } })
    expect(anywhere.check({ x: 'abc' }).params).toEqual({ x: 'abc' })
  })

  it('may be null only where that is a type', () => {
    const either = compileParams({ x: { type: ['string', 'null'] }, y: { type: 'string' } })
    expect(either.check({ x: null, y: null }).problems).toEqual(['params.y is null, but has to be of type string'])
  })

  it('may be whole objects, of which each part is told', () => {
    const nested = compileParams({
      where: {
        type: 'object',
        properties: { host: { type: 'string' }, ports: { type: 'array', items: { type: 'integer' } } },
        required: ['host'],
        additionalProperties: false,
      },
    })
    expect(nested.check({ where: { ports: [1, 'x'], hots: 1 } }).problems).toEqual([
      'params.where is {"ports":[1,"x"],"hots":1}, but has to be an object with host',
      'params.where.ports.1 is "x", but has to be of type integer',
      'params.where.hots is not declared',
    ])
    expect(nested.check({ where: { host: 'h', ports: [1] } }).problems).toBeUndefined()
  })

  it('may be a choice of schemas', () => {
    const choice = compileParams({ x: { anyOf: [{ type: 'integer' }, { enum: ['auto'] }] } })
    expect(choice.check({ x: 'auto' }).problems).toBeUndefined()
    expect(choice.check({ x: 'ato' }).problems).toEqual([
      'params.x is "ato", but has to be of type integer',
      'params.x is "ato", but has to be one of "auto"',
    ])
    const either = compileParams({ x: { oneOf: [{ minimum: 1 }, { maximum: 5 }] } })
    expect(either.check({ x: 3 }).problems).toEqual([
      'params.x is 3, but has to be as one of its schemas says, and not as two',
    ])
  })

  it('can be called constructor, toString or hasOwnProperty', () => {
    const odd = compileParams({ constructor: { type: 'string' }, toString: { type: 'string', required: false } })
    expect(odd.check({}).problems).toEqual(['params.constructor is missing: it has to be of type string'])
    const { params } = odd.check({ constructor: 'x' })
    expect(params?.constructor).toBe('x')
    expect(params?.toString).toBeUndefined()
  })

  it('called __proto__ are not declared, and change nothing', () => {
    const { problems } = params.check(JSON.parse('{"__proto__": {"to": "/backup/1"}, "password": "long enough"}'))
    expect(problems).toHaveLength(2)
    expect(Object.hasOwn(Object.prototype, 'to')).toBe(false)
    const nested = compileParams({ x: { type: 'object' } })
    expect(nested.check({ x: JSON.parse('{"__proto__": 1}') }).problems).toEqual([
      'params.x: "__proto__" cannot be a name',
    ])
  })

  it('nested without end, or listed without end, are refused', () => {
    const any = compileParams({ x: {}, y: { type: 'array', uniqueItems: true, required: false } })
    const deep = JSON.parse(`${'['.repeat(5000)}${']'.repeat(5000)}`)
    expect(any.check({ x: deep }).problems).toEqual(['params.x: nested deeper than 128'])
    expect(any.check({ x: 1, y: Array.from({ length: 5000 }, (_, i) => i) }).problems).toEqual([
      'params.y: a list has 5000 items, 1024 at most',
    ])
  })

  it('get a default of their own each time', () => {
    const list = compileParams({ x: { type: 'array', default: [] } })
    const first = list.check({}).params?.['x']
    if (Array.isArray(first)) first.push(1)
    expect(list.check({}).params).toEqual({ x: [] })
  })

  it(`never tell a secret, whatever it is and whatever is wrong with it: seed ${seed}`, () => {
    const schemas = [
      { type: 'integer' },
      { type: 'string', pattern: '^$' },
      { enum: [1] },
      { const: 1 },
      { type: 'object', additionalProperties: false },
      { type: 'array', items: { type: 'integer', minimum: 1e9 } },
      { not: {} },
      { anyOf: [{ type: 'null' }, { maxLength: 0 }] },
    ]
    const secrets = fc.stringMatching(/^[a-z]{12,20}$/)
    const shapes = fc.constantFrom(
      (s: string): unknown => s,
      (s: string) => [s],
      (s: string) => ({ [s]: s }),
      (s: string) => ({ a: { b: [s] } }),
      (s: string) => `${s}\ud800`,
    )
    const property = fc.property(secrets, shapes, fc.constantFrom(...schemas), (secret, shape, schema) => {
      const { problems } = compileParams({ x: { ...schema, writeOnly: true } }).check({ x: shape(secret) })
      expect(problems?.join() ?? '').not.toContain(secret)
    })
    fc.assert(property, { seed })
  })

  it(`are checked without a throw, and without a change, whatever is given: seed ${seed}`, () => {
    const property = fc.property(fc.dictionary(fc.string(), fc.jsonValue()), given => {
      const before = structuredClone(given)
      const { params: taken, problems } = params.check(given)
      expect(taken === undefined).toBe((problems?.length ?? 0) > 0)
      expect(given).toEqual(before)
    })
    fc.assert(property, { seed })
  })
})

describe("a parameter's schema", () => {
  const found = (schema: unknown) =>
    schemaFindings(schema, ['x'], true).map(({ path, message }) => `${path.join('.')}: ${message}`)

  it('may use what is understood', () => {
    expect(
      found({
        type: ['object', 'null'],
        description: 'x',
        properties: { a: { type: 'array', items: { type: 'string', format: 'uri' }, uniqueItems: true } },
        required: ['a'],
        additionalProperties: { enum: [1, 'a', null] },
        default: null,
        writeOnly: false,
      }),
    ).toEqual([])
    expect(found({ required: false })).toEqual([])
  })

  it.each([
    ['text', 'x: "text" is not a JSON schema such as {type: string}'],
    [{ type: 'sting' }, 'x.type: "sting" is no type; did you mean "string"?'],
    [{ patern: 'a' }, 'x.patern: "patern" is no keyword of a parameter\'s schema; did you mean "pattern"?'],
    [{ pattern: '(' }, 'x.pattern: "(" is no regular expression: Unterminated group'],
    [{ pattern: 5 }, 'x.pattern: 5 is not a text'],
    [{ minLength: -1 }, 'x.minLength: -1 is not a whole number from 0 up'],
    [{ minimum: '1' }, 'x.minimum: "1" is not a number'],
    [{ multipleOf: 0 }, 'x.multipleOf: 0 is not a number above 0'],
    [{ enum: [] }, 'x.enum: [] is not a list of at least one value'],
    [{ format: 'emial' }, 'x.format: "emial" is no format; did you mean "email"?'],
    [{ items: [] }, 'x.items: [] is not a JSON schema such as {type: string}'],
    [{ anyOf: [] }, 'x.anyOf: is not a list of at least one schema'],
    [{ anyOf: [{ tpye: 1 }] }, 'x.anyOf.0.tpye: "tpye" is no keyword of a parameter\'s schema; did you mean "type"?'],
    [
      { properties: { a: { writeOnly: true } } },
      'x.properties.a.writeOnly: writeOnly belongs to the parameter itself, not to a part of it',
    ],
    [{ properties: { a: { required: true } } }, 'x.properties.a.required: true is not a list of names'],
    [{ required: 'yes' }, 'x.required: "yes" is not a list of names'],
  ])('is refused if it is %j', (schema, message) => {
    expect(found(schema)).toEqual([message])
  })

  it('with $ref is refused, as nothing is there to refer to', () => {
    expect(found({ $ref: '#' })).toHaveLength(1)
  })

  it('has to accept its own default', () => {
    expect(defaultProblem('x', { type: 'integer', default: 'a' })).toBe(
      'params.x is "a", but has to be of type integer',
    )
    expect(defaultProblem('x', { type: 'integer', default: 1 })).toBeUndefined()
  })
})
