import { isDeepStrictEqual } from 'node:util'

/** What an object has besides the fields of its schema: no rule can name it, but two objects are not the same without. */
export const preserved = Symbol('preserved')

interface Preserving {
  readonly [preserved]?: unknown
}

/** When two values are the same to a rule: numbers by their worth, objects by their fields. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    // biome-ignore lint/suspicious/noDoubleEquals: 1 and 1.0 are equal to a rule, as bigint and number.
    return typeof a !== typeof b && isNumber(a) && isNumber(b) && a == b
  }
  if (a instanceof Date) return b instanceof Date && a.getTime() === b.getTime()
  if (a instanceof Set || b instanceof Set) return sameSet([...(a as Iterable<unknown>)], [...(b as Iterable<unknown>)])
  if (Array.isArray(a) || a instanceof Uint8Array) {
    const list = b as ArrayLike<unknown>
    return (
      list.length === a.length && Array.from(a as ArrayLike<unknown>).every((item, index) => same(item, list[index]))
    )
  }
  if (a instanceof Map) {
    return b instanceof Map && a.size === b.size && [...a].every(([key, item]) => b.has(key) && same(item, b.get(key)))
  }
  if (a.constructor !== b.constructor) return false
  if (!isDeepStrictEqual((a as Preserving)[preserved], (b as Preserving)[preserved])) return false
  const keys = Object.keys(a)
  if (keys.length === 0 && Object.keys(b).length === 0) return String(a) === String(b)
  return keys.length === Object.keys(b).length && keys.every(key => same(a[key as never], b[key as never]))
}

const isNumber = (value: unknown) => typeof value === 'number' || typeof value === 'bigint'

const sameSet = (a: unknown[], b: unknown[]) =>
  a.length === b.length && a.every(item => b.some(other => same(item, other)))
