/**
 * The part of JSON schema (2020-12) in which parameters are declared, and what is wrong with a schema that is not in it. Pure.
 *
 * Guarantee: a schema without findings is understood whole: no keyword is passed over, none makes a check throw or run for ever.
 */
import { messageOf } from '../errors.ts'
import { shown, suggestion } from '../nearest.ts'

export interface SchemaFinding {
  readonly path: (string | number)[]
  readonly message: string
}

type Path = (string | number)[]
type Look = (value: unknown, path: Path) => SchemaFinding[]

const types = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']
const formats = ['date', 'date-time', 'time', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uuid']
/** Schemas may not be nested deeper. */
const deepest = 32

const accept =
  (holds: (value: unknown) => boolean, what: string): Look =>
  (value, path) =>
    holds(value) ? [] : [{ path, message: `${shown(value)} is not ${what}` }]

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const size = accept(value => Number.isSafeInteger(value) && Number(value) >= 0, 'a whole number from 0 up')
const number = accept(value => typeof value === 'number' && Number.isFinite(value), 'a number')
const text = accept(value => typeof value === 'string', 'a text')
const flag = accept(value => typeof value === 'boolean', 'true or false')
const anything: Look = () => []

const type: Look = (value, path) => {
  const given = Array.isArray(value) && value.length > 0 ? value : [value]
  return given
    .filter(one => !types.includes(one))
    .map(one => ({ path, message: `${shown(one)} is no type${suggestion(String(one), types)}` }))
}

const pattern: Look = (value, path) => {
  if (typeof value !== 'string') return text(value, path)
  const reason = patternProblem(value)
  return reason === undefined ? [] : [{ path, message: reason }]
}

/** Why a text is no regular expression, if it is none; by default one as JSON schema has them. */
export function patternProblem(source: string, flags = 'u'): string | undefined {
  try {
    new RegExp(source, flags)
    return undefined
  } catch (thrown) {
    const reason = messageOf(thrown).split(': ').at(-1)
    return `${shown(source)} is no regular expression: ${reason}`
  }
}

const schema: Look = (value, path) => schemaFindings(value, path)
const schemas: Look = (value, path) => {
  if (!isObject(value)) return [{ path, message: `${shown(value)} is not an object of schemas` }]
  return Object.entries(value).flatMap(([name, one]) => schemaFindings(one, [...path, name]))
}
const schemaList: Look = (value, path) => {
  if (!Array.isArray(value) || value.length === 0) return [{ path, message: 'is not a list of at least one schema' }]
  return value.flatMap((one, index) => schemaFindings(one, [...path, index]))
}
const schemaOrFlag: Look = (value, path) => (typeof value === 'boolean' ? [] : schema(value, path))

/** Each keyword that a schema may have, and what it may hold. */
const keywords = new Map<string, Look>(
  Object.entries({
    type,
    enum: accept(value => Array.isArray(value) && value.length > 0, 'a list of at least one value'),
    const: anything,
    title: text,
    description: text,
    examples: accept(Array.isArray, 'a list'),
    deprecated: flag,
    $comment: text,
    pattern,
    minLength: size,
    maxLength: size,
    format: (value, path) =>
      formats.includes(String(value))
        ? []
        : [{ path, message: `${shown(value)} is no format${suggestion(String(value), formats)}` }],
    minimum: number,
    maximum: number,
    exclusiveMinimum: number,
    exclusiveMaximum: number,
    multipleOf: accept(value => typeof value === 'number' && value > 0 && Number.isFinite(value), 'a number above 0'),
    items: schema,
    minItems: size,
    maxItems: size,
    uniqueItems: flag,
    properties: schemas,
    required: accept(value => Array.isArray(value) && value.every(one => typeof one === 'string'), 'a list of names'),
    additionalProperties: schemaOrFlag,
    minProperties: size,
    maxProperties: size,
    propertyNames: schema,
    allOf: schemaList,
    anyOf: schemaList,
    oneOf: schemaList,
    not: schema,
  } satisfies Record<string, Look>),
)

/** What only a parameter's own schema may have, and none inside it. */
const outermost = new Map<string, Look>(
  Object.entries({ default: anything, writeOnly: flag } satisfies Record<string, Look>),
)

/** What is wrong with a schema; `path` is where it stands. With `isParam`, it may have `default` and `writeOnly`, and `required: false`. */
export function schemaFindings(value: unknown, path: Path, isParam = false): SchemaFinding[] {
  if (!isObject(value)) return [{ path, message: `${shown(value)} is not a JSON schema such as {type: string}` }]
  if (path.length > deepest) return [{ path, message: 'the schema is nested too deeply' }]
  const findings: SchemaFinding[] = []
  for (const [keyword, held] of Object.entries(value)) {
    const at = [...path, keyword]
    if (isParam && keyword === 'required' && typeof held === 'boolean') continue
    const look = keywords.get(keyword) ?? (isParam ? outermost.get(keyword) : undefined)
    if (look) findings.push(...look(held, at))
    else if (outermost.has(keyword)) {
      findings.push({ path: at, message: `${keyword} belongs to the parameter itself, not to a part of it` })
    } else {
      const known = [...keywords.keys(), ...(isParam ? outermost.keys() : [])]
      findings.push({
        path: at,
        message: `${shown(keyword)} is no keyword of a parameter's schema${suggestion(keyword, known)}`,
      })
    }
  }
  return findings
}

/** What a value is to be, said by the keyword that refused it. */
export function wanted(keyword: string, held: unknown): string {
  switch (keyword) {
    case 'type':
      return Array.isArray(held) ? `one of the types ${held.join(', ')}` : `of type ${held}`
    case 'enum':
      return `one of ${(held as unknown[]).map(shown).join(', ')}`
    case 'const':
      return shown(held)
    case 'pattern':
      return `a text that matches ${held}`
    case 'format':
      return `a text of format ${held}`
    case 'minLength':
      return `at least ${held} long`
    case 'maxLength':
      return `at most ${held} long`
    case 'minimum':
      return `${held} or more`
    case 'maximum':
      return `${held} or less`
    case 'exclusiveMinimum':
      return `more than ${held}`
    case 'exclusiveMaximum':
      return `less than ${held}`
    case 'multipleOf':
      return `a multiple of ${held}`
    case 'minItems':
      return `a list of at least ${held}`
    case 'maxItems':
      return `a list of at most ${held}`
    case 'uniqueItems':
      return 'a list in which nothing stands twice'
    case 'required':
      return `an object with ${(held as string[]).join(', ')}`
    case 'oneOf':
      return 'as one of its schemas says, and not as two'
    case 'minProperties':
      return `an object of at least ${held} members`
    case 'maxProperties':
      return `an object of at most ${held} members`
    case 'not':
      return `anything but ${shown(held)}`
    default:
      return `as ${keyword} ${shown(held)} says`
  }
}
