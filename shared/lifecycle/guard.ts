/**
 * CEL: a state's `when`, over what probes said, and the conditions by which an http call is polled. Pure.
 *
 * Guarantees: an expression that names something that is not there, or can only give something other than true or false, does not compile; one that fails
 * when it is evaluated does not hold, and says why.
 */
import { type ASTNode, Environment, type ParseResult } from '@marcbachmann/cel-js'
import { messageOf } from '../errors.ts'
import { shown, suggestion } from '../nearest.ts'

/** What a probe said last: yes, no, or nothing; and the text that it gave. */
export interface ProbeAnswer {
  readonly ok: boolean | null
  readonly value: string | null
}

/** What a guard is about. */
export interface GuardContext {
  readonly probes: Readonly<Record<string, ProbeAnswer>>
  /** The run in progress. */
  readonly run: { readonly action: string } | null
}

export interface Guard {
  /** The probes that it needs: those that it names, `role` for the variable `role`, all if it reads a name at run time. */
  readonly probes: readonly string[]
  /** Whether it holds. One that cannot be evaluated does not; `failed` is then called, once until it can be evaluated again. */
  holds(context: GuardContext, failed?: (reason: string) => void): boolean
}

/** An http answer, as a poll sees it. */
export interface Answer {
  readonly status: number
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Parsed, if it is JSON; else its text. */
  readonly body: unknown
}

export interface Condition {
  /** Whether it holds of an answer. One that cannot be evaluated does not; `failed` is then called. */
  holds(answer: Answer, failed?: (reason: string) => void): boolean
}

/** An expression cannot be used; the message says why. */
export class ExpressionError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ExpressionError'
  }
}

/** The pod's role: what the probe of that name gave, as long as it is ok. */
export function roleOf(probes: GuardContext['probes']): string | null {
  const probe = Object.hasOwn(probes, 'role') ? probes['role'] : undefined
  return probe?.ok ? probe.value : null
}

class Probe {
  readonly ok: boolean | null
  readonly value: string | null

  constructor({ ok, value }: ProbeAnswer) {
    this.ok = ok
    this.value = value
  }
}

const limits = { maxAstNodes: 2000, maxDepth: 64 }
const guards = new Environment({ limits })
  .registerType('Probe', { ctor: Probe, fields: { ok: 'bool', value: 'dyn' } })
  .registerVariable('probes', 'map<string, Probe>')
  .registerVariable('role', 'dyn')
  .registerVariable('run', 'dyn')
const conditions = new Environment({ limits })
  .registerVariable('status', 'int')
  .registerVariable('headers', 'map<string, string>')
  .registerVariable('body', 'dyn')

/**
 * @param declared the names of all probes
 * @throws ExpressionError
 */
export function compileGuard(when: string, declared: readonly string[]): Guard {
  const expression = compile(guards, when)
  const probes = probesNamed(expression.ast, declared)
  let reported = false
  return {
    probes,
    holds({ probes, run }, failed) {
      const known = new Map(Object.entries(probes).map(([name, answer]) => [name, new Probe(answer)]))
      const { holds, error } = evaluate(expression, { probes: known, role: roleOf(probes), run })
      if (error !== undefined && !reported) failed?.(error)
      reported = error !== undefined && (reported || failed !== undefined)
      return holds
    },
  }
}

/** @throws ExpressionError */
export function compileCondition(text: string): Condition {
  const expression = compile(conditions, text)
  return {
    holds({ status, headers, body }, failed) {
      const known = { status: BigInt(status), headers: new Map(Object.entries(headers)), body }
      const { holds, error } = evaluate(expression, known)
      if (error !== undefined) failed?.(error)
      return holds
    },
  }
}

function compile(environment: Environment, text: string): ParseResult {
  let expression: ParseResult
  try {
    expression = environment.parse(text)
  } catch (thrown) {
    throw new ExpressionError(`${shown(text)} is no CEL expression: ${reasonOf(thrown)}`)
  }
  const { valid, type, error } = expression.check()
  if (!valid) throw new ExpressionError(`${shown(text)} does not fit together: ${reasonOf(error)}`)
  if (type !== 'bool' && type !== 'dyn') {
    throw new ExpressionError(`${shown(text)} gives ${type === 'Probe' ? 'a probe' : type}, not true or false`)
  }
  return expression
}

function evaluate(expression: ParseResult, context: object): { holds: boolean; error?: string } {
  try {
    const result: unknown = expression(context)
    if (typeof result === 'boolean') return { holds: result }
    return { holds: false, error: `gives ${result === null ? 'null' : typeof result}, not true or false` }
  } catch (thrown) {
    return { holds: false, error: reasonOf(thrown) }
  }
}

/** What the library says, without its drawing of where that is. */
function reasonOf(thrown: unknown): string {
  const { summary, range } = thrown as { summary?: string; range?: { start: number } }
  if (summary === undefined) return messageOf(thrown)
  return range ? `${summary}, at character ${range.start + 1}` : summary
}

function probesNamed(ast: ASTNode, declared: readonly string[]): readonly string[] {
  const named = new Set<string>()
  let isDynamic = false
  const visit = (node: ASTNode): void => {
    const access = accessOf(node)
    if (access?.of === 'probes' && access.member !== undefined) {
      if (!declared.includes(access.member)) {
        throw new ExpressionError(`${shown(access.member)} is no probe${suggestion(access.member, declared)}`)
      }
      named.add(access.member)
    } else if (access?.of === 'run' && access.member !== undefined && access.member !== 'action') {
      throw new ExpressionError(`a run has no ${shown(access.member)}${suggestion(access.member, ['action'])}`)
    } else if (node.op === 'id' && node.args === 'probes') {
      isDynamic = true
    } else if (node.op === 'id' && node.args === 'role') {
      if (!declared.includes('role'))
        throw new ExpressionError('role is what a probe named "role" says, and there is none')
      named.add('role')
    } else {
      for (const child of childrenOf(node)) visit(child)
    }
  }
  visit(ast)
  return isDynamic ? [...declared] : [...named]
}

/** `probes.x`, `probes["x"]` and the like: of what, and which member if that stands there. */
function accessOf(node: ASTNode): { of: string; member: string | undefined } | undefined {
  if (node.op === '.' || node.op === '.?') {
    const [of, member] = node.args
    return of.op === 'id' ? { of: of.args, member } : undefined
  }
  if (node.op === '[]' || node.op === '[?]') {
    const [of, index] = node.args
    if (of.op !== 'id') return undefined
    return { of: of.args, member: index.op === 'value' && typeof index.args === 'string' ? index.args : undefined }
  }
  return undefined
}

function childrenOf(node: ASTNode): ASTNode[] {
  const found: ASTNode[] = []
  const gather = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) gather(item)
    else if (typeof value === 'object' && value !== null && 'op' in value && 'args' in value)
      found.push(value as ASTNode)
  }
  gather(node.args)
  return found
}
