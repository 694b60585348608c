/**
 * Values as a template may see them: a copy, JSON alone, in which nothing can be found that was not given.
 *
 * The engine has ways of its own with some names: an object's `size` would be the number of its keys, and any property of null would be null. Here a
 * property that was not given is undefined, and so an error where it is used.
 */
import { TerminalError } from '../../runtime/outcome.ts'
import { liquid } from '../libraries.ts'

/** No value may be nested deeper. */
const deepest = 128

/** Null, of which no property can be asked. One for all, made when the first is needed. */
let nothing: object | undefined

function createNothing(): object {
  class Null extends liquid().Drop {
    override valueOf(): null {
      return null
    }

    toJSON(): null {
      return null
    }
  }
  return new Null()
}

/** A value that is no JSON is refused by its path. */
export function scopeOf(file: string, values: Readonly<Record<string, unknown>>): object {
  return copyIn(values, [], problem => new TerminalError(`the values of ${file}: ${problem}`)) as object
}

function copyIn(value: unknown, path: readonly (string | number)[], refuse: (problem: string) => Error): unknown {
  if (value === undefined) return undefined
  if (value === null) {
    nothing ??= createNothing()
    return nothing
  }
  const problem = problemOf(value, path.length)
  if (problem !== undefined) throw refuse(`${path.join('.') || 'they'}: ${problem}`)
  if (typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map((item, index) => copyIn(item, [...path, index], refuse))
  const copy: Record<string, unknown> = {}
  for (const [key, member] of Object.entries(value)) {
    if (key === '__proto__') throw refuse(`${[...path, key].join('.')} cannot be a name`)
    copy[key] = copyIn(member, [...path, key], refuse)
  }
  if (!Object.hasOwn(copy, 'size')) Object.defineProperty(copy, 'size', { value: undefined })
  return copy
}

function problemOf(value: unknown, depth: number): string | undefined {
  if (depth > deepest) return `nested deeper than ${deepest}`
  switch (typeof value) {
    case 'boolean':
      return undefined
    case 'string':
      return value.isWellFormed() ? undefined : 'the text has half of a surrogate pair'
    case 'number':
      return Number.isFinite(value) ? undefined : `${value} is no number that JSON has`
    case 'object':
      return Array.isArray(value) || isPlain(value as object)
        ? undefined
        : 'an object of a class is nothing that JSON has'
    default:
      return `a ${typeof value} is nothing that JSON has`
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** A value that comes out of an expression, as a copy; members that are undefined are left out. Throws, in words, what is no JSON. */
export function copyOut(value: unknown, depth = 0): unknown {
  if (value === undefined) throw new TypeError('has no value')
  if (value === null || value === nothing) return null
  const problem = problemOf(value, depth)
  if (problem !== undefined) throw new TypeError(`is no value: ${problem}`)
  if (typeof value !== 'object') return value
  // A place in a list cannot be left out.
  if (Array.isArray(value)) return value.map(item => copyOut(item, depth + 1))
  const members = Object.entries(value as object).filter(([, member]) => member !== undefined)
  return Object.fromEntries(members.map(([key, member]) => [key, copyOut(member, depth + 1)]))
}
