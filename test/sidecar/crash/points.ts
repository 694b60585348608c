/**
 * Every point at which the agent, or a wrapper, can be told to die: read from the source, so that a new one cannot be forgotten.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const sidecar = join(import.meta.dirname, '../../../sidecar')

/** What can be appended to the journal; its first line is written before it is one. */
const records = matches('journal/records.ts', /readonly t: ('\w+'(?: \| '\w+')*)/g)
  .flatMap(kinds => kinds.split(' | ').map(kind => kind.slice(1, -1)))
  .filter(kind => kind !== 'journal')

export const agentPoints: readonly string[] = unique(
  globSync('**/*.ts', { cwd: sidecar }).flatMap(file =>
    matches(file, /\bfault\(([^)]*)\)/g).flatMap(written => spelt(file, written)),
  ),
)

export const wrapperPoints: readonly string[] = unique(
  globSync('**/*.c', { cwd: sidecar }).flatMap(file => matches(file, /\bfault\("([^"]+)"\)/g)),
)

function spelt(file: string, written: string): string[] {
  const [, text] = /^['`](.*)['`]$/.exec(written) ?? []
  const names = /\$\{kind\}/.test(text ?? '')
    ? records.map(kind => text?.replace(/\$\{kind\}/, kind) ?? '')
    : [text ?? '']
  if (names.some(name => !/^[\w.]+$/.test(name)))
    throw new Error(`${file}: fault(${written}) names no point that can be read from the source`)
  return names
}

function matches(file: string, pattern: RegExp): string[] {
  return [...readFileSync(join(sidecar, file), 'utf8').matchAll(pattern)].map(([, found = '']) => found)
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)].sort()
}
