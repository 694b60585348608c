/**
 * What is wrong with the shape of a value, in sentences: which field, what it holds, what it could hold. Pure.
 */
import type * as z from 'zod/mini'
import { shown, suggestion } from '../nearest.ts'

/** Something that was found; `path` is where. */
export interface Finding {
  readonly path: (string | number)[]
  readonly message: string
  readonly severity: 'error' | 'warning'
}

type Issue = z.core.$ZodIssue

/** What `schema` does not accept in `value`. */
export function shapeFindings(schema: z.core.$ZodType, value: unknown, issues: readonly Issue[]): Finding[] {
  return issues.flatMap((issue): Finding[] => {
    const path = issue.path.map(part => (typeof part === 'number' ? part : String(part)))
    if (issue.code === 'unrecognized_keys') {
      const known = keysOf(schemaAt(schema, path))
      return issue.keys.map(key => error([...path, key], `no such field${suggestion(key, known)}`))
    }
    return [error(path, sentence(issue, at(value, path)))]
  })
}

export function error(path: (string | number)[], message: string): Finding {
  return { path, message, severity: 'error' }
}

export function warning(path: (string | number)[], message: string): Finding {
  return { path, message, severity: 'warning' }
}

function sentence(issue: Issue, value: unknown): string {
  if (value === undefined && issue.code === 'invalid_type') return `missing; it has to be ${kindOf(issue.expected)}`
  switch (issue.code) {
    case 'invalid_type':
      return `${shown(value)} is not ${kindOf(issue.expected)}`
    case 'invalid_value':
      return `${shown(value)} is not accepted${suggestion(String(value), issue.values.map(String))}`
    case 'invalid_format':
      return `${shown(value)} is not accepted: ${issue.message}`
    case 'too_small':
      return `${shown(value)} is too ${issue.origin === 'number' ? 'small' : 'short'}: at least ${issue.minimum}${unitOf(issue.origin)}`
    case 'too_big':
      return `${shown(value)} is too ${issue.origin === 'number' ? 'large' : 'long'}: at most ${issue.maximum}${unitOf(issue.origin)}`
    case 'invalid_key':
      return issue.issues.map(inner => sentence(inner, issue.path.at(-1))).join('; ')
    default:
      return `${shown(value)} is not accepted: ${issue.message}`
  }
}

function kindOf(expected: string): string {
  const kinds: Record<string, string> = {
    array: 'a list',
    boolean: 'true or false',
    int: 'a whole number',
    number: 'a number',
    object: 'an object',
    record: 'an object',
    string: 'a text',
  }
  return kinds[expected] ?? expected
}

function unitOf(origin: string): string {
  return origin === 'string' ? ' characters' : origin === 'array' ? ' items' : ''
}

interface Definition {
  readonly shape?: Record<string, z.core.$ZodType>
  readonly element?: z.core.$ZodType
  readonly innerType?: z.core.$ZodType
  readonly valueType?: z.core.$ZodType
}

function definitionOf(schema: z.core.$ZodType | undefined): Definition {
  const definition = (schema?._zod.def ?? {}) as Definition
  return definition.innerType ? definitionOf(definition.innerType) : definition
}

function schemaAt(schema: z.core.$ZodType, path: (string | number)[]): Definition {
  let definition = definitionOf(schema)
  for (const part of path) {
    const { shape, element, valueType } = definition
    definition = definitionOf(shape && Object.hasOwn(shape, part) ? shape[part] : (element ?? valueType))
  }
  return definition
}

function keysOf({ shape }: Definition): string[] {
  return Object.keys(shape ?? {})
}

function at(value: unknown, path: (string | number)[]): unknown {
  let found = value
  for (const part of path) {
    found =
      typeof found === 'object' && found !== null && Object.hasOwn(found, part) ? Reflect.get(found, part) : undefined
  }
  return found
}
