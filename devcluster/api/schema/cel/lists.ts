/** Functions of lists: order, sums, positions; and lists as sets. */
import type { Environment } from '@marcbachmann/cel-js'
import { Failure } from './library.ts'
import { same } from './values.ts'

type List = Iterable<unknown>

const durations = 'google.protobuf.Duration'
const timestamps = 'google.protobuf.Timestamp'

function compare(a: unknown, b: unknown): number {
  const [left, right] = [a, b].map(value => (typeof value === 'object' && value !== null ? Number(value) : value))
  return (left as number) < (right as number) ? -1 : (left as number) > (right as number) ? 1 : 0
}

function extreme(list: List, sign: number): unknown {
  const items = [...list]
  if (items.length === 0) throw new Failure(`${sign < 0 ? 'min' : 'max'} called on empty list`)
  return items.reduce((best, item) => (compare(item, best) * sign > 0 ? item : best))
}

export function registerLists(environment: Environment): void {
  const sync = { async: false }
  const add = (signature: string, handler: (...args: never[]) => unknown) =>
    environment.registerFunction(signature, handler, sync)
  for (const type of ['int', 'double', 'string', 'bool', durations, timestamps]) {
    add(`list<${type}>.isSorted(): bool`, (list: List) => {
      const items = [...list]
      return items.every((item, index) => index === 0 || compare(items[index - 1], item) <= 0)
    })
    add(`list<${type}>.min(): ${type}`, (list: List) => extreme(list, -1))
    add(`list<${type}>.max(): ${type}`, (list: List) => extreme(list, 1))
  }
  add('list<int>.sum(): int', (list: Iterable<bigint>) => [...list].reduce((sum, item) => sum + item, 0n))
  add('list<double>.sum(): double', (list: Iterable<number>) => [...list].reduce((sum, item) => sum + item, 0))
  add('list<T>.indexOf(T): int', (list: List, item: unknown) => BigInt([...list].findIndex(one => same(one, item))))
  add('list<T>.lastIndexOf(T): int', (list: List, item: unknown) =>
    BigInt([...list].findLastIndex(one => same(one, item))),
  )
  class SetsNamespace {}
  environment.registerType('SetsNamespace', SetsNamespace)
  environment.registerConstant('sets', 'SetsNamespace', new SetsNamespace())
  const contains = (list: List, other: List) => {
    const items = [...list]
    return [...other].every(item => items.some(one => same(one, item)))
  }
  add('SetsNamespace.contains(list<T>, list<T>): bool', (_: unknown, a: List, b: List) => contains(a, b))
  add(
    'SetsNamespace.equivalent(list<T>, list<T>): bool',
    (_: unknown, a: List, b: List) => contains(a, b) && contains(b, a),
  )
  add('SetsNamespace.intersects(list<T>, list<T>): bool', (_: unknown, a: List, b: List) => {
    const items = [...a]
    return [...b].some(item => items.some(one => same(one, item)))
  })
}
