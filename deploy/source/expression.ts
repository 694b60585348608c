/**
 * Objects that depend on values, written once and read in two ways: worked out with values at hand, as plain objects; or printed as a template of Helm's, which works
 * them out by itself. An expression says both, in TypeScript and in the words of Go's templates; a test holds the two together for many values.
 */
import type { Values } from './values.ts'

/** What an expression is worked out from. */
export interface Scope {
  readonly values: Values
  /** The controller's own. */
  readonly namespace: string
  /** Inside `repeat`: the one that is at hand. */
  readonly item?: unknown
}

export class Expression<T = unknown> {
  readonly of: (scope: Scope) => T
  /** A pipeline of Go's templates that gives the same. */
  readonly go: string

  constructor(of: (scope: Scope) => T, go: string) {
    this.of = of
    this.go = go
  }
}

/** There only if the condition holds: an item of a list, the value of a field (which is left out with it), or a whole object. */
export class When {
  readonly condition: Expression
  readonly content: unknown

  constructor(condition: Expression, content: unknown) {
    this.condition = condition
    this.content = content
  }
}

/** An item of a list, or a whole object, once for each of a list's; `item` is the one at hand. */
export class Repeat {
  readonly list: Expression<readonly unknown[]>
  readonly each: unknown

  constructor(list: Expression<readonly unknown[]>, each: unknown) {
    this.list = list
    this.each = each
  }
}

export const item: Expression<never> = new Expression(({ item }) => item as never, '$item')
export const namespace: Expression<string> = new Expression(({ namespace }) => namespace, '$.Release.Namespace')

/** A value by its path. */
export function value<T = unknown>(path: string): Expression<T> {
  const of = ({ values }: Scope) =>
    path.split('.').reduce((at, key) => (at as Record<string, unknown>)[key], values as unknown) as T
  return new Expression(of, `$.Values.${path}`)
}

/** A text with expressions in it. */
export function text(pieces: TemplateStringsArray, ...parts: (Expression | string)[]): Expression<string> {
  const of = (scope: Scope) =>
    String.raw({ raw: pieces }, ...parts.map(part => (typeof part === 'string' ? part : part.of(scope))))
  const format = pieces.map(piece => piece.replaceAll('%', '%%')).join('%v')
  const args = parts.map(part => (typeof part === 'string' ? JSON.stringify(part) : `(${part.go})`))
  return new Expression(of, ['printf', JSON.stringify(format), ...args].join(' '))
}

export const when = (condition: Expression, content: unknown): When => new When(condition, content)
/** A value for a field that is left out where it is empty. */
export const given = (path: string): When => when(value(path), value(path))
export const repeat = (list: Expression<readonly unknown[]>, each: unknown): Repeat => new Repeat(list, each)
export const either = (a: Expression, b: Expression): Expression<boolean> =>
  new Expression(scope => holds(a.of(scope)) || holds(b.of(scope)), `or ${a.go} ${b.go}`)
export const both = (a: Expression, b: Expression): Expression<boolean> =>
  new Expression(scope => holds(a.of(scope)) && holds(b.of(scope)), `and ${a.go} ${b.go}`)
export const not = (a: Expression): Expression<boolean> => new Expression(scope => !holds(a.of(scope)), `not ${a.go}`)

/** As in Go's templates: what is empty does not. */
function holds(found: unknown): boolean {
  if (typeof found !== 'object' || found === null) return Boolean(found)
  return Object.keys(found).length > 0
}

/** The plain objects. */
export function workedOut(sources: readonly unknown[], scope: Scope): object[] {
  return plain(sources, scope) as object[]
}

function plain(source: unknown, scope: Scope): unknown {
  if (source instanceof Expression) return source.of(scope)
  if (Array.isArray(source)) return source.flatMap(one => items(one, scope))
  if (source instanceof When || source instanceof Repeat)
    throw new TypeError('a condition or a repetition stands in a list, or is the value of a field')
  if (typeof source !== 'object' || source === null) return source
  const fields = Object.entries(source).flatMap(([key, field]) => {
    if (!(field instanceof When)) return [[key, plain(field, scope)]]
    return holds(field.condition.of(scope)) ? [[key, plain(field.content, scope)]] : []
  })
  return Object.fromEntries(fields)
}

function items(source: unknown, scope: Scope): unknown[] {
  if (source instanceof When) return holds(source.condition.of(scope)) ? items(source.content, scope) : []
  if (source instanceof Repeat) return source.list.of(scope).flatMap(item => items(source.each, { ...scope, item }))
  return [plain(source, scope)]
}
