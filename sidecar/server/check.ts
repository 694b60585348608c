/**
 * Checks query and body against the schemas of a route, and says what is wrong in words: the field, the value and what would be accepted. Pure.
 *
 * Guarantee: a body that is wrong and has unknown fields is `InvalidBody`; `UnknownField` means that it is right but for them.
 */
import * as z from 'zod/mini'
import { Problem } from '../../shared/protocol/problems.ts'
import type { Query, QueryParameter, Route } from '../../shared/protocol/routes.ts'
import { runId } from '../../shared/protocol/schemas.ts'

/** Fields that say which pod, configuration, journal and fence a PUT is meant for. */
export const aims = ['podUid', 'configHash', 'journalId', 'fence'] as const

export function checkId(id: string): string {
  if (z.safeParse(runId, id).success) return id
  throw new Problem('InvalidBody', `The run's id is ${show(id)}; ids match [A-Za-z0-9._-]{1,128}.`)
}

export function checkQuery(route: Route, search: string): Query {
  const declared = route.query ?? {}
  const query: Record<string, unknown> = {}
  for (const [name, text] of new URLSearchParams(search)) {
    const parameter = Object.hasOwn(declared, name) ? declared[name] : undefined
    if (!parameter) throw new Problem('InvalidBody', `The query has ${show(name)}; ${accepted(declared)}.`)
    if (Object.hasOwn(query, name)) throw new Problem('InvalidBody', `The query has "${name}" more than once.`)
    const value = parameter.read(text)
    const issue = z.safeParse(parameter.schema, value).error?.issues[0]
    if (issue)
      throw new Problem('InvalidBody', `"${name}" in the query is ${show(value)}; it must be ${wanted(issue)}.`)
    query[name] = value
  }
  return query
}

/** @param required fields of which the schema says that they may be absent, and which may not here */
export function checkBody<Schema extends z.core.$ZodType>(
  schema: Schema,
  body: unknown,
  required: readonly string[] = [],
): z.infer<Schema> {
  const issues = z.safeParse(schema, body).error?.issues ?? []
  const wrong = issues.find(({ code }) => code !== 'unrecognized_keys')
  if (wrong) throw new Problem('InvalidBody', sentence(wrong, body))
  for (const field of required) {
    if ((body as Record<string, unknown>)[field] === undefined) {
      throw new Problem('InvalidBody', `"${field}" is missing; ${required.join(', ')} are required.`)
    }
  }
  const unknown = issues.find(({ code }) => code === 'unrecognized_keys')
  if (unknown?.code === 'unrecognized_keys') {
    const known = Object.keys((schema as unknown as { shape?: object }).shape ?? {})
    throw new Problem(
      'UnknownField',
      `There is no field ${unknown.keys.map(show).join(', ')}; there are ${known.join(', ')}.`,
    )
  }
  return body as z.infer<Schema>
}

type Issue = z.core.$ZodIssue

function sentence(issue: Issue, body: unknown): string {
  if (issue.path.length === 0) return `The body is ${show(body)}; it must be ${wanted(issue)}.`
  const field = issue.path.map(String).join('.')
  let value: unknown = body
  for (const key of issue.path) value = (value as Record<PropertyKey, unknown> | undefined)?.[key]
  if (value === undefined) return `"${field}" is missing; it must be ${wanted(issue)}.`
  return `"${field}" is ${show(value)}; it must be ${wanted(issue)}.`
}

function wanted(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return kinds[issue.expected] ?? `a ${issue.expected}`
    case 'invalid_value':
      return `one of ${issue.values.map(value => JSON.stringify(value)).join(', ')}`
    case 'too_small':
      return issue.origin === 'string' ? 'some text' : `at least ${issue.minimum}`
    case 'too_big':
      return issue.origin === 'string' ? `at most ${issue.maximum} characters` : `at most ${issue.maximum}`
    case 'invalid_format':
      return issue.pattern?.includes('ms') ? 'a duration, as 200ms, 30s or 1h30m' : `what ${issue.pattern} matches`
    default:
      return 'what the protocol says'
  }
}

const kinds: Readonly<Record<string, string>> = {
  int: 'a whole number',
  // There is no other in requests.
  number: 'a whole number',
  record: 'an object',
  object: 'an object',
  string: 'a string',
}

/** A value as a person is shown it: not all of it, and of an object nothing, as there may be secrets in it. */
function show(value: unknown): string {
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

function accepted(declared: Readonly<Record<string, QueryParameter>>): string {
  const names = Object.keys(declared)
  return names.length === 0 ? 'this call takes none' : `this call takes ${names.join(', ')}`
}
