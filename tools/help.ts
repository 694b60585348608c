/**
 * Prints what each npm script does: the table in CONTRIBUTING.md, which is the one place where this is written.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The commands of the table, each with its line of help. */
export function commands(): Map<string, string> {
  const text = readFileSync(join(import.meta.dirname, '../CONTRIBUTING.md'), 'utf8')
  const rows = text.matchAll(/^\| `(npm [^`]+)` \| (.+) \|$/gm)
  return new Map(Array.from(rows, ([, command = '', help = '']) => [command, help.replaceAll('`', '')]))
}

if (import.meta.main) {
  const table = commands()
  const width = Math.max(...Array.from(table.keys(), command => command.length))
  for (const [command, help] of table) console.log(`${command.padEnd(width)}  ${help}`)
}
