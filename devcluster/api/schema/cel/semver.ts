/** Semantic versions. */
import type { Environment } from '@marcbachmann/cel-js'
import { Failure } from './library.ts'

const pattern =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][\da-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][\da-zA-Z-]*))*))?(?:\+[\da-zA-Z.-]+)?$/

class Version {
  readonly numbers: readonly [bigint, bigint, bigint]
  readonly before: readonly string[]
  constructor(text: string, normalize = false) {
    const match = pattern.exec(normalize ? normalized(text) : text)
    if (!match) throw new Failure(`semver parse error during conversion from string "${text}"`)
    this.numbers = [BigInt(match[1] ?? 0), BigInt(match[2] ?? 0), BigInt(match[3] ?? 0)]
    this.before = match[4]?.split('.') ?? []
  }
}

/** A `v` in front, parts that are missing and zeros in front are let through. */
function normalized(text: string): string {
  const match = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(.*)$/.exec(text)
  return match ? `${[match[1], match[2], match[3]].map(part => Number(part ?? 0)).join('.')}${match[4]}` : text
}

function compare(a: Version, b: Version): number {
  for (const [index, number] of a.numbers.entries()) {
    const other = b.numbers[index] ?? 0n
    if (number !== other) return number < other ? -1 : 1
  }
  if (a.before.length === 0 || b.before.length === 0) return Math.sign(b.before.length - a.before.length)
  for (const [index, part] of a.before.entries()) {
    const other = b.before[index]
    if (other === undefined) return 1
    if (part === other) continue
    const [left, right] = [/^\d+$/.test(part), /^\d+$/.test(other)]
    if (left !== right) return left ? -1 : 1
    return (left ? Number(part) < Number(other) : part < other) ? -1 : 1
  }
  return a.before.length < b.before.length ? -1 : 0
}

export function registerSemver(environment: Environment): void {
  const sync = { async: false }
  const name = 'kubernetes.Semver'
  const add = (signature: string, handler: (...args: never[]) => unknown) =>
    environment.registerFunction(signature, handler, sync)
  const fits = (text: string, normalize: boolean) => {
    try {
      return new Version(text, normalize) !== undefined
    } catch {
      return false
    }
  }
  environment.registerType(name, Version)
  environment.registerOperator(`${name} == ${name}`, (a: Version, b: Version) => compare(a, b) === 0)
  add(`semver(string): ${name}`, (text: string) => new Version(text))
  add(`semver(string, bool): ${name}`, (text: string, normalize: boolean) => new Version(text, normalize))
  add('isSemver(string): bool', (text: string) => fits(text, false))
  add('isSemver(string, bool): bool', fits)
  add(`${name}.major(): int`, (one: Version) => one.numbers[0])
  add(`${name}.minor(): int`, (one: Version) => one.numbers[1])
  add(`${name}.patch(): int`, (one: Version) => one.numbers[2])
  add(`${name}.isLessThan(${name}): bool`, (a: Version, b: Version) => compare(a, b) < 0)
  add(`${name}.isGreaterThan(${name}): bool`, (a: Version, b: Version) => compare(a, b) > 0)
  add(`${name}.compareTo(${name}): int`, (a: Version, b: Version) => BigInt(compare(a, b)))
}
