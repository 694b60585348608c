/** Functions of strings: regular expressions of the server's kind, formatting, parts. Positions count characters, not their halves. */
import type { Environment } from '@marcbachmann/cel-js'
import { compile } from '../pattern.ts'
import { Failure } from './library.ts'

/** The name under which `matches` is called, as the library has one of its own with JavaScript's expressions. */
export const ownMatches = 'matchesPattern'

function expression(pattern: string, flags = ''): RegExp {
  const compiled = compile(pattern)
  if (compiled instanceof Error) throw new Failure(compiled.message)
  return flags ? new RegExp(compiled.source, compiled.flags + flags) : compiled
}

function findAll(text: string, pattern: string, limit: bigint): string[] {
  const found = [...text.matchAll(expression(pattern, 'g'))].map(([match]) => match)
  return limit < 0n ? found : found.slice(0, Number(limit))
}

function replace(text: string, old: string, by: string, limit: bigint): string {
  if (limit < 0n) return text.replaceAll(old, () => by)
  const parts = text.split(old)
  const count = Math.min(Number(limit), parts.length - 1)
  return (
    parts.slice(0, count + 1).join(by) +
    parts
      .slice(count + 1)
      .map(part => old + part)
      .join('')
  )
}

export function registerStrings(environment: Environment): void {
  const sync = { async: false }
  const add = (signature: string, handler: (...args: never[]) => unknown) =>
    environment.registerFunction(signature, handler, sync)
  add(`string.${ownMatches}(string): bool`, (text: string, pattern: string) => expression(pattern).test(text))
  add(`${ownMatches}(string, string): bool`, (text: string, pattern: string) => expression(pattern).test(text))
  add('matches(string, string): bool', (text: string, pattern: string) => expression(pattern).test(text))
  add('string.find(string): string', (text: string, pattern: string) => expression(pattern).exec(text)?.[0] ?? '')
  add('string.findAll(string): list<string>', (text: string, pattern: string) => findAll(text, pattern, -1n))
  add('string.findAll(string, int): list<string>', findAll)
  add('string.charAt(int): string', (text: string, index: bigint) => {
    const characters = [...text]
    if (index < 0n || index > BigInt(characters.length)) throw new Failure(`index out of range: ${index}`)
    return characters[Number(index)] ?? ''
  })
  add('string.replace(string, string): string', (text: string, old: string, by: string) => replace(text, old, by, -1n))
  add('string.replace(string, string, int): string', replace)
  add('string.reverse(): string', (text: string) => [...text].reverse().join(''))
  add('string.format(list<dyn>): string', (text: string, args: Iterable<unknown>) => format(text, [...args]))
  class StringsNamespace {}
  environment.registerType('StringsNamespace', StringsNamespace)
  environment.registerConstant('strings', 'StringsNamespace', new StringsNamespace())
  add('StringsNamespace.quote(string): string', (_: unknown, text: string) => JSON.stringify(text))
}

function format(text: string, args: unknown[]): string {
  let next = 0
  return text.replace(
    /%(%|(?:\.(\d+))?([a-zA-Z]))/g,
    (_, whole: string, precision: string | undefined, verb: string) => {
      if (whole === '%') return '%'
      if (next >= args.length) throw new Failure(`index ${next} out of range`)
      return formatOne(verb, precision === undefined ? 6 : Number(precision), args[next++])
    },
  )
}

function formatOne(verb: string, precision: number, value: unknown): string {
  switch (verb) {
    case 's':
      return plain(value)
    case 'd':
      return String(value)
    case 'f':
      return Number(value).toFixed(precision)
    case 'e':
      return Number(value)
        .toExponential(precision)
        .replace(/e([+-])(\d)$/, 'e$10$2')
    case 'b':
      return typeof value === 'boolean' ? (value ? '1' : '0') : BigInt(value as bigint).toString(2)
    case 'o':
      return BigInt(value as bigint).toString(8)
    case 'x':
    case 'X': {
      const hex = typeof value === 'bigint' ? value.toString(16) : Buffer.from(value as string).toString('hex')
      return verb === 'X' ? hex.toUpperCase() : hex
    }
    default:
      throw new Failure(`could not parse formatting clause: unrecognized formatting clause "${verb}"`)
  }
}

/** As `%s` shows a value. */
function plain(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return value
  if (value instanceof Date) return timestamp(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  if (Array.isArray(value) || value instanceof Set) return `[${[...value].map(plain).join(', ')}]`
  if (value instanceof Map) {
    const entries = [...value].map(([key, item]) => `${plain(key)}: ${plain(item)}`).sort()
    return `{${entries.join(', ')}}`
  }
  return String(value)
}

export const timestamp = (date: Date): string => date.toISOString().replace(/\.?0*Z$/, 'Z')
