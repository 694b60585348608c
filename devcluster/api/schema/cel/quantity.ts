/** Quantities of resources, exact: a number is an integer times a power of ten. */
import type { Environment } from '@marcbachmann/cel-js'
import { Failure } from './library.ts'

const binary = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const decimal: Record<string, number> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }

class Quantity {
  readonly units: bigint
  readonly exponent: number
  constructor(units: bigint, exponent: number) {
    this.units = units
    this.exponent = exponent
  }
}

function parse(text: string): Quantity {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d+))?$/.exec(text)
  if (text === '' || !match || (!match[2] && !match[3])) {
    throw new Failure("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
  }
  const [, sign, whole = '', fraction = '', two, ten, power] = match
  const units =
    BigInt(`${whole}${fraction}` || '0') * (sign === '-' ? -1n : 1n) * 1024n ** BigInt(binary.indexOf(two ?? ''))
  return new Quantity(units, -fraction.length + (decimal[ten ?? ''] ?? 0) + Number(power ?? 0))
}

function aligned(a: Quantity, b: Quantity): [bigint, bigint, number] {
  const exponent = Math.min(a.exponent, b.exponent)
  const scaled = (one: Quantity) => one.units * 10n ** BigInt(one.exponent - exponent)
  return [scaled(a), scaled(b), exponent]
}

function compare(a: Quantity, b: Quantity): number {
  const [left, right] = aligned(a, b)
  return left < right ? -1 : left > right ? 1 : 0
}

/** As it is written: 1000m is no integer to the server, although it is one. */
function integer({ units, exponent }: Quantity): bigint | undefined {
  if (exponent < 0) return undefined
  const value = units * 10n ** BigInt(exponent)
  return BigInt.asIntN(64, value) === value ? value : undefined
}

export function registerQuantity(environment: Environment): void {
  const sync = { async: false }
  const name = 'kubernetes.Quantity'
  const add = (signature: string, handler: (...args: never[]) => unknown) =>
    environment.registerFunction(signature, handler, sync)
  environment.registerType(name, Quantity)
  environment.registerOperator(`${name} == ${name}`, (a: Quantity, b: Quantity) => compare(a, b) === 0)
  add(`quantity(string): ${name}`, parse)
  add('isQuantity(string): bool', (text: string) => {
    try {
      parse(text)
      return true
    } catch {
      return false
    }
  })
  add(`${name}.isInteger(): bool`, (one: Quantity) => integer(one) !== undefined)
  add(`${name}.asInteger(): int`, (one: Quantity) => {
    const value = integer(one)
    if (value === undefined) throw new Failure('cannot convert value to integer')
    return value
  })
  add(`${name}.asApproximateFloat(): double`, (one: Quantity) => Number(`${one.units}e${one.exponent}`))
  add(`${name}.sign(): int`, (one: Quantity) => (one.units > 0n ? 1n : one.units < 0n ? -1n : 0n))
  for (const [method, sign] of [
    ['add', 1n],
    ['sub', -1n],
  ] as const) {
    const sum = (a: Quantity, b: Quantity) => {
      const [left, right, exponent] = aligned(a, b)
      return new Quantity(left + sign * right, exponent)
    }
    add(`${name}.${method}(${name}): ${name}`, sum)
    add(`${name}.${method}(int): ${name}`, (a: Quantity, b: bigint) => sum(a, new Quantity(b, 0)))
  }
  add(`${name}.isLessThan(${name}): bool`, (a: Quantity, b: Quantity) => compare(a, b) < 0)
  add(`${name}.isGreaterThan(${name}): bool`, (a: Quantity, b: Quantity) => compare(a, b) > 0)
  add(`${name}.compareTo(${name}): int`, (a: Quantity, b: Quantity) => BigInt(compare(a, b)))
}
