/**
 * Canonical JSON (RFC 8785) and hashes of it: two values that mean the same have the same text, whatever the order of their keys.
 *
 * Guarantee: what `jsonProblem` finds nothing wrong with has a canonical text; for anything else `canonicalJson` throws.
 */
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'

/** No value may be nested deeper: every walk through it stays within the stack. */
const deepest = 128

/** The canonical text of a JSON value; `undefined` members are left out. */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value)
  if (text === undefined) throw new TypeError('this is no JSON value')
  return text
}

/** The hex SHA-256 of a value's canonical JSON. */
export function hashOf(value: unknown): string {
  return sha256(canonicalJson(value))
}

export function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

export interface JsonProblem {
  readonly path: (string | number)[]
  readonly message: string
}

/**
 * The first reason why a value has no canonical JSON, or could harm who reads it: a number that is not finite, text that is not Unicode, what JSON
 * does not know, a value that holds itself or is nested deeper than 128, a member called `__proto__`.
 */
export function jsonProblem(value: unknown): JsonProblem | undefined {
  const path: (string | number)[] = []
  const within = new Set<object>()
  const look = (value: unknown): string | undefined => {
    if (value === null || typeof value === 'boolean') return undefined
    if (typeof value === 'string') return value.isWellFormed() ? undefined : 'the text has half of a surrogate pair'
    if (typeof value === 'number') return Number.isFinite(value) ? undefined : `${value} is no number that JSON has`
    if (typeof value !== 'object') return `${typeof value} is nothing that JSON has`
    if (path.length >= deepest) return `nested deeper than ${deepest}`
    if (within.has(value)) return 'the value holds itself'
    const isArray = Array.isArray(value)
    if (!isArray && !isPlain(value)) return 'an object of a class is nothing that JSON has'
    within.add(value)
    const members: Iterable<[string | number, unknown]> = isArray ? value.entries() : Object.entries(value)
    for (const [key, member] of members) {
      path.push(key)
      const problem = isName(key) ? look(member) : `${JSON.stringify(key)} cannot be a name`
      if (problem !== undefined) return problem
      path.pop()
    }
    within.delete(value)
    return undefined
  }
  const message = look(value)
  return message === undefined ? undefined : { path, message }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function isName(key: string | number): boolean {
  return typeof key === 'number' || (key !== '__proto__' && key.isWellFormed())
}
