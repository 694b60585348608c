/**
 * A rule's text made ready to run, or why it is none: in the words of the server's compiler, with the place.
 */
import type { Environment } from '@marcbachmann/cel-js'
import { compile as compilePattern } from '../pattern.ts'
import { Failure, options } from './library.ts'
import { ownMatches } from './strings.ts'

export interface Program {
  /** Throws what went wrong, in the server's words. */
  run(variables: Record<string, unknown>): unknown
}

/** What the library says of a mistake. */
interface Said {
  readonly name: string
  readonly code: string
  readonly summary: string
  readonly range?: { start: number; end: number }
  readonly node?: { op: string; args: unknown }
}

export class NoSuchOverload extends Error {}

/** @param result the type that it has to answer */
export function compile(given: Environment, text: string, result: 'bool' | 'string'): Program | string {
  // Lists of values to be formatted are the only ones that may be mixed.
  const isMixed = /\.\s*format\s*\(\s*\[/.test(withoutStrings(text))
  const environment = isMixed ? given.clone({ ...options, homogeneousAggregateLiterals: false }) : given
  const checked = environment.check(text)
  if (!checked.valid) return located(text, said(checked.error), environment)
  const missing = noBind(text) ?? missingField(environment, text) ?? badPattern(text)
  if (missing) return missing
  if (checked.type !== result && checked.type !== 'dyn') return `cel expression must evaluate to a ${result}`
  const program = environment.parse(withOwnMatches(text))
  program.check()
  return {
    run: variables => {
      try {
        return program(variables)
      } catch (thrown) {
        throw runtimeError(thrown)
      }
    },
  }
}

const said = (error: unknown) => error as Said

/** Strings of a rule are no part of its grammar: blank, in the same length. */
export const withoutStrings = (text: string): string =>
  text.replace(
    /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g,
    literal => `'${' '.repeat(Math.max(0, literal.length - 2))}'`,
  )

function withOwnMatches(text: string): string {
  const bare = withoutStrings(text)
  let made = ''
  let from = 0
  for (const { index } of bare.matchAll(/\bmatches(?=\s*\()/g)) {
    made += text.slice(from, index) + ownMatches
    from = index + 'matches'.length
  }
  return made + text.slice(from)
}

/** The library has `cel.bind`, the server does not. */
function noBind(text: string): string | undefined {
  const at = /\bcel\s*\./.exec(withoutStrings(text))?.index
  return at === undefined ? undefined : failed(text, at, "undeclared reference to 'cel' (in container '')")
}

/** `has()` of a field that the type does not have: the library lets it pass. */
function missingField(environment: Environment, text: string): string | undefined {
  for (const { 0: whole, 1: path = '', index } of withoutStrings(text).matchAll(
    /\bhas\(\s*((?:self|oldSelf)(?:\.\w+)+)\s*\)/g,
  )) {
    const checked = environment.check(path)
    if (checked.valid) continue
    const error = said(checked.error)
    if (error.code !== 'no_such_key') continue
    const field = error.summary.replace('No such key: ', '')
    // The place is the macro's, unless the field stands before the last.
    const isLast = path.endsWith(`.${field}`)
    const at = isLast ? index + 'has'.length : index + whole.indexOf(path) + (error.range?.start ?? 1) - 1
    return failed(text, at, `undefined field '${field}'`)
  }
  return undefined
}

/** A pattern that stands in the rule is compiled with it. */
function badPattern(text: string): string | undefined {
  for (const { 0: whole, 1: pattern = '', index } of text.matchAll(/\.matches\(\s*(r?(?:'[^'\\]*'|"[^"\\]*"))\s*\)/g)) {
    if (compilePattern(pattern.replace(/^r?['"]|['"]$/g, '')) instanceof Error) {
      return failed(text, index + whole.indexOf(pattern), 'invalid matches argument')
    }
  }
  return undefined
}

const names: Record<string, string> = { in: '@in', '[]': '_[_]', '?:': '_?_:_' }
const operator = (op: string) => names[op] ?? `_${op}_`

/** `map<string, list<int>>` is `map(string, list(int))`. */
const typeText = (type: string): string =>
  type
    .replace(/google\.protobuf\.(Timestamp|Duration)/g, (_, name: string) => name.toLowerCase())
    .replaceAll('<', '(')
    .replaceAll('>', ')')

function located(text: string, error: Said, environment: Environment): string {
  const { code, summary, node } = error
  const start = error.range?.start ?? 0
  const end = error.range?.end ?? start
  if (error.name === 'ParseError') return failed(text, start, syntaxText(text, start, summary))
  switch (code) {
    case 'no_such_key':
      return failed(text, text.lastIndexOf('.', start), `undefined field '${summary.replace('No such key: ', '')}'`)
    case 'cannot_index_type':
      return failed(
        text,
        text.lastIndexOf('.', start),
        `type '${typeText(/'(.*)'/.exec(summary)?.[1] ?? '')}' does not support field selection`,
      )
    case 'unknown_variable':
      return failed(
        text,
        start,
        `undeclared reference to '${summary.replace('Unknown variable: ', '')}' (in container '')`,
      )
    case 'no_such_overload':
      return overloadText(text, summary, start, node)
    case 'no_matching_overload':
      return callText(text, summary, start, end, environment)
    case 'incompatible_ternary_branches': {
      const [, left = '', right = ''] = /got '(.*)' and '(.*)'/.exec(summary) ?? []
      const at = text.indexOf('?', start)
      return failed(
        text,
        at,
        `found no matching overload for '_?_:_' applied to '(bool, ${typeText(left)}, ${typeText(right)})'`,
      )
    }
    case 'invalid_logical_operand': {
      const type = /got '(.*)'/.exec(summary)?.[1] ?? ''
      return failed(text, operandAt(node, type) ?? start, `expected type 'bool' but found '${typeText(type)}'`)
    }
    default: {
      const expected = /expected type '(.*)' but found '(.*)'/.exec(summary)
      return failed(
        text,
        start,
        expected
          ? `expected type '${typeText(expected[1] ?? '')}' but found '${typeText(expected[2] ?? '')}'`
          : summary,
      )
    }
  }
}

/** Where the operand of that type stands: at the dot, for a field. */
function operandAt(node: Said['node'], type: string): number | undefined {
  const operands = Array.isArray(node?.args) ? (node.args as { op: string; pos?: number; checkedType?: object }[]) : []
  const wrong = operands.find(({ checkedType }) => String(checkedType) === type)
  return wrong?.pos === undefined ? undefined : wrong.pos - (wrong.op === '.' ? 1 : 0)
}

function overloadText(text: string, summary: string, start: number, node: Said['node']): string {
  const unary = /^no such overload: ([!-])(\S+)$/.exec(summary)
  if (unary)
    return failed(
      text,
      start,
      `found no matching overload for '${unary[1]}_' applied to '(${typeText(unary[2] ?? '')})'`,
    )
  const op = node?.op ?? ''
  const [left = '', right = ''] = summary.replace('no such overload: ', '').split(` ${op} `)
  const operands = Array.isArray(node?.args) ? (node.args as { end?: number }[]) : []
  const at = text.indexOf(op, operands[0]?.end ?? start)
  return failed(
    text,
    at,
    `found no matching overload for '${operator(op)}' applied to '(${typeText(left)}, ${typeText(right)})'`,
  )
}

function callText(text: string, summary: string, start: number, end: number, environment: Environment): string {
  const [, receiver = '', name = '', args = ''] = /'(?:(.*)\.)?(\w+)\((.*)\)'$/.exec(summary) ?? []
  const bare = withoutStrings(text).slice(0, end)
  const at = bare.indexOf('(', bare.indexOf(receiver ? `.${name}` : name, start))
  const known = environment.getDefinitions().functions.some(one => one.name === name)
  if (!known) return failed(text, at, `undeclared reference to '${name}' (in container '')`)
  const applied = receiver ? `${typeText(receiver)}.(${typeText(args)})` : `(${typeText(args)})`
  return failed(text, at, `found no matching overload for '${name}' applied to '${applied}'`)
}

const expected =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"

function syntaxText(text: string, at: number, summary: string): string {
  if (at >= text.trimEnd().length) return `Syntax error: mismatched input '<EOF>' expecting ${expected}`
  if (summary.startsWith('Unexpected character'))
    return `Syntax error: token recognition error at: '${text.slice(at, at + 2)}'`
  return `Syntax error: ${summary[0]?.toLowerCase()}${summary.slice(1)}`
}

function failed(text: string, offset: number, message: string): string {
  const at = Math.max(0, Math.min(offset, text.length))
  const before = text.slice(0, at).split('\n')
  const column = before.at(-1)?.length ?? 0
  const line = text.split('\n')[before.length - 1] ?? ''
  return `compilation failed: ERROR: <input>:${before.length}:${column + 1}: ${message}\n | ${line}\n | ${'.'.repeat(column)}^`
}

const conversions: Record<string, string> = {
  int_conversion_error: "type conversion error from 'string' to 'int'",
  uint_conversion_error: "type conversion error from 'string' to 'uint'",
  double_conversion_error: "type conversion error from 'string' to 'double'",
  bool_conversion_error: "type conversion error from 'string' to 'bool'",
  invalid_timestamp: "type conversion error from 'string' to 'google.protobuf.Timestamp'",
  invalid_duration: "type conversion error from 'string' to 'google.protobuf.Duration'",
  division_by_zero: 'division by zero',
  modulo_by_zero: 'modulus by zero',
  numeric_overflow: 'integer overflow',
  optional_value_missing: 'optional.none() dereference',
}

function runtimeError(thrown: unknown): Error {
  if (thrown instanceof Failure) return thrown
  const { code, summary } = said(thrown)
  const known = conversions[code]
  if (known) return new Error(known)
  switch (code) {
    case 'no_such_key':
      return new Error(summary.replace('No such key', 'no such key'))
    case 'index_out_of_bounds':
      return new Error(`index out of bounds: ${/index (-?\d+)/.exec(summary)?.[1]}`)
    case 'no_such_overload':
    case 'no_matching_overload':
    case 'invalid_logical_operand':
      return new NoSuchOverload('no such overload')
    default:
      return thrown instanceof Error ? new Error(summary ?? thrown.message) : new Error(String(thrown))
  }
}
