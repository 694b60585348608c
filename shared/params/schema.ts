/**
 * The parameters of an action: what was given is checked against what was declared, and defaults are filled in. Pure; no code is generated.
 *
 * Guarantees: what passes has no parameter that was not declared; what is refused is told by name, value and what would be accepted, and never by the
 * value of a secret.
 */
import { type OutputUnit, type Schema, Validator } from '@cfworker/json-schema'
import { jsonProblem } from '../canonical.ts'
import type { ParamSchema } from '../lifecycle/model.ts'
import { shown, suggestion } from '../nearest.ts'
import { wanted } from './keywords.ts'

/** Longer lists are refused: to compare each item with each takes too long. */
const longestList = 1024

export type Checked =
  | { readonly params: Record<string, unknown>; readonly problems?: undefined }
  | { readonly params?: undefined; readonly problems: string[] }

export interface CompiledParams {
  /** What was given with defaults filled in, as an object without a prototype; or what is wrong with it, a sentence each. */
  check(given: Readonly<Record<string, unknown>>): Checked
  /** Every declared parameter. */
  readonly names: readonly string[]
  /** Those that are secret: `writeOnly: true`. */
  readonly secrets: readonly string[]
  /** Those that must be given. */
  readonly required: readonly string[]
  /** All of them as one JSON schema of an object, as `GET /v1/actions` shows it. */
  readonly schema: Readonly<Record<string, unknown>>
}

/** Whether a parameter must be given: it has no default and does not say `required: false`. */
export function isRequired(schema: ParamSchema): boolean {
  return !Object.hasOwn(schema, 'default') && schema['required'] !== false
}

export function isSecret(schema: ParamSchema): boolean {
  return schema['writeOnly'] === true
}

/** @param params as declared, and found right by `schemaFindings` */
export function compileParams(params: Readonly<Record<string, ParamSchema>> | undefined): CompiledParams {
  const declared = new Map(Object.entries(params ?? {}).map(([name, schema]) => [name, compileParam(name, schema)]))
  const names = [...declared.keys()]
  const all = [...declared.values()]
  const required = all.filter(param => param.isRequired).map(param => param.name)
  return {
    names,
    secrets: all.filter(param => param.isSecret).map(param => param.name),
    required,
    schema: {
      type: 'object',
      properties: Object.fromEntries(all.map(param => [param.name, param.schema])),
      ...(required.length > 0 ? { required } : {}),
      additionalProperties: false,
    },
    check(given) {
      const problems: string[] = []
      const result: Record<string, unknown> = Object.create(null)
      for (const name of Object.keys(given)) {
        if (!declared.has(name)) problems.push(`params.${name} is not declared${suggestion(name, names)}`)
      }
      for (const { name, schema, isRequired, problemsOf } of all) {
        const value = Object.hasOwn(given, name) ? given[name] : undefined
        if (value !== undefined) {
          problems.push(...problemsOf(value))
          result[name] = value
        } else if (isRequired) {
          problems.push(`params.${name} is missing${describe(schema)}`)
        } else if (Object.hasOwn(schema, 'default')) {
          result[name] = structuredClone(schema['default'])
        }
      }
      return problems.length > 0 ? { problems } : { params: result }
    },
  }
}

/** What is wrong with a parameter's default, or undefined. */
export function defaultProblem(name: string, schema: ParamSchema): string | undefined {
  if (!Object.hasOwn(schema, 'default')) return undefined
  return compileParam(name, schema).problemsOf(schema['default'])[0]
}

interface Param {
  readonly name: string
  readonly schema: Readonly<Record<string, unknown>>
  readonly isSecret: boolean
  readonly isRequired: boolean
  problemsOf(value: unknown): string[]
}

function compileParam(name: string, declared: ParamSchema): Param {
  const { required, ...others } = declared
  const schema = typeof required === 'boolean' ? others : declared
  const secret = isSecret(declared)
  // The library marks the schema that it is given.
  let validator: Validator | undefined
  return {
    name,
    schema,
    isSecret: secret,
    isRequired: isRequired(declared),
    problemsOf(value) {
      const unfit = jsonProblem(value)?.message ?? longListProblem(value)
      if (unfit !== undefined) return [`params.${name}: ${unfit}`]
      validator ??= new Validator(structuredClone(schema) as Schema, '2020-12', false)
      const { errors } = validator.validate(value)
      const found = errors.filter(error => !isOnlyAround(error, errors))
      const sentences = found.map(error => sentence(name, schema, value, error, secret))
      return [...new Set(sentences)].slice(0, 10)
    },
  }
}

/** Keywords that only say that something inside did not fit, which is told as well. */
const around = new Set(['properties', 'additionalProperties', 'items', 'propertyNames', 'allOf', 'anyOf'])

function isOnlyAround({ keyword, keywordLocation }: OutputUnit, errors: readonly OutputUnit[]): boolean {
  if (keyword !== 'oneOf') return around.has(keyword)
  return errors.some(other => other.keywordLocation.startsWith(`${keywordLocation}/`))
}

function sentence(name: string, schema: unknown, value: unknown, error: OutputUnit, secret: boolean): string {
  // The name of a member, too, was given by somebody, so it is not told of a secret.
  if (secret) return `params.${name} is not accepted (it is secret, so its value is not shown)${describe(schema)}`
  const inside = parts(error.instanceLocation)
  const where = `params.${[name, ...inside].join('.')}`
  if (error.keyword === 'false') return `${where} is not declared`
  const held = at(schema, parts(error.keywordLocation))
  return `${where} is ${shown(at(value, inside))}, but has to be ${wanted(error.keyword, held)}`
}

/** What would be accepted, in brackets or by its own description. */
function describe(schema: unknown): string {
  const { description, type, pattern, enum: choices, format } = schema as Record<string, unknown>
  if (typeof description === 'string') return `: ${description}`
  const said = Object.entries({ type, enum: choices, pattern, format })
    .filter(([, held]) => held !== undefined)
    .map(([keyword, held]) => wanted(keyword, held))
  return said.length > 0 ? `: it has to be ${said.join(', ')}` : ''
}

function parts(location: string): string[] {
  const encoded = location.split('/').slice(1)
  return encoded.map(part => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'))
}

function at(value: unknown, path: string[]): unknown {
  let found = value
  for (const part of path) {
    found =
      typeof found === 'object' && found !== null && Object.hasOwn(found, part) ? Reflect.get(found, part) : undefined
  }
  return found
}

function longListProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value) && value.length > longestList)
    return `a list has ${value.length} items, ${longestList} at most`
  for (const member of Object.values(value)) {
    const problem = longListProblem(member)
    if (problem !== undefined) return problem
  }
  return undefined
}
