/**
 * A Dockerfile, by its instructions.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Dockerfile {
  readonly text: string
  /** What follows the word in the last instruction that begins with it. */
  last(word: string): string
  /** What its last ENV sets. */
  readonly variables: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
}

export const read = (path: string): string => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')

export function dockerfile(path: string): Dockerfile {
  const text = read(path)
  const lines = text.replaceAll('\\\n', '').split('\n')
  const last = (word: string) =>
    lines
      .findLast(line => line.startsWith(`${word} `))
      ?.slice(word.length + 1)
      .trim() ?? ''
  const pairs = [...last('ENV').matchAll(/(\S+?)=(\S+)/g)].map(([, name = '', value = '']) => [name, value])
  const labels = [...last('LABEL').matchAll(/(\S+?)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value])
  return { text, last, variables: Object.fromEntries(pairs), labels: Object.fromEntries(labels) }
}
