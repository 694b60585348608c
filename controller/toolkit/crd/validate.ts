/**
 * What is wrong with an object of a kind, as the server would find it, without a server; CEL rules are left to the server. Pure.
 *
 * Guarantee: each sentence names the field, its value, and what would be accepted.
 */
import { z } from 'zod'
import { shown, suggestion } from '../../../shared/nearest.ts'
import { wanted } from '../../../shared/params/keywords.ts'
import { accepted } from './describe.ts'
import { withoutNulls } from './nulls.ts'
import { textOfPath } from './refuse.ts'
import type { StructuralSchema } from './structural.ts'
import { unknownFields } from './unknown.ts'

export interface Validated {
  readonly apiVersion: string
  readonly kind: string
  readonly namespaced: boolean
  readonly schema: StructuralSchema
  readonly spec: z.core.$ZodObject
  readonly status: z.core.$ZodObject
}

type Path = readonly (string | number)[]

export function problemsOf(object: unknown, validated: Validated): string[] {
  if (!isObject(object)) return [`${shown(object)} is no object of kind ${validated.kind}`]
  const parts = validated.schema.properties ?? {}
  const { status, spec = parts['spec']?.default } = object
  return [
    ...identity(object, validated),
    ...Object.keys(object)
      .filter(name => !Object.hasOwn(parts, name))
      .map(name => `the object has no field ${shown(name)}${suggestion(name, Object.keys(parts))}`),
    ...partProblems('spec', spec, validated.spec, parts['spec']),
    ...(status === undefined ? [] : partProblems('status', status, validated.status, parts['status'])),
  ]
}

function identity(object: Record<string, unknown>, { apiVersion, kind, namespaced }: Validated): string[] {
  const problems = Object.entries({ apiVersion, kind })
    .filter(([name, value]) => object[name] !== undefined && object[name] !== value)
    .map(([name, value]) => `${name} is ${shown(object[name])}, but has to be ${shown(value)}`)
  const metadata = isObject(object.metadata) ? object.metadata : {}
  const { name, generateName, namespace } = metadata
  if (typeof name !== 'string' && typeof generateName !== 'string') {
    problems.push(`metadata.name is ${name === undefined ? 'missing' : shown(name)}; it has to be a name`)
  }
  if (!namespaced && namespace !== undefined) {
    problems.push(`metadata.namespace is ${shown(namespace)}, but a ${kind} is in no namespace`)
  }
  return problems
}

function partProblems(part: string, given: unknown, schema: z.core.$ZodObject, known: StructuralSchema = {}): string[] {
  const value = withoutNulls(given, known)
  const { error } = z.safeParse(schema, value, { reportInput: true })
  const sentences = (error?.issues ?? [])
    // Fields that are not known are found below, for every object alike.
    .filter(issue => issue.code !== 'unrecognized_keys')
    .map(issue => sentence(part, value, issue, known))
  return [...new Set([...sentences, ...unknownFields(value, known, [part])])]
}

function sentence(part: string, value: unknown, issue: z.core.$ZodIssue, known: StructuralSchema): string {
  const path = issue.path.map(step => (typeof step === 'symbol' ? String(step) : step))
  const field = textOfPath([part, ...path])
  const schema = walk(known, path)
  const held = path.reduce<unknown>((one, step) => (one as Record<string, unknown> | undefined)?.[step], value)
  if (held === undefined) return `${field} is missing; it has to be ${accepted(schema)}`
  return `${field} is ${shown(held)}, but has to be ${wish(issue, schema)}`
}

/** What an issue asks for. */
function wish(issue: z.core.$ZodIssue, schema: StructuralSchema): string {
  switch (issue.code) {
    case 'too_small':
      return wanted(limit('min', issue.origin, issue.inclusive), issue.minimum)
    case 'too_big':
      return wanted(limit('max', issue.origin, issue.inclusive), issue.maximum)
    case 'not_multiple_of':
      return wanted('multipleOf', issue.divisor)
    case 'invalid_value':
      return wanted('enum', issue.values)
    case 'invalid_format':
      return schema.format === undefined && schema.pattern !== undefined
        ? wanted('pattern', schema.pattern)
        : wanted('format', schema.format ?? issue.format)
    default:
      return accepted(schema)
  }
}

const units: Record<string, string> = { string: 'Length', array: 'Items', object: 'Properties' }

function limit(end: 'min' | 'max', origin: string, inclusive: boolean | undefined): string {
  const unit = units[origin]
  if (unit) return `${end}${unit}`
  return inclusive === false ? (end === 'min' ? 'exclusiveMinimum' : 'exclusiveMaximum') : `${end}imum`
}

function walk(schema: StructuralSchema, path: Path): StructuralSchema {
  return path.reduce<StructuralSchema>((at, step) => {
    return (typeof step === 'number' ? at.items : (at.properties?.[step] ?? at.additionalProperties)) ?? {}
  }, schema)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
