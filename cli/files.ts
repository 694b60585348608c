/**
 * Files that are generated into a folder of the user's.
 *
 * Guarantee: nothing is written where something of the user's would be lost: if one file is there already and has another text, none is written.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { Failure } from './ending.ts'

/** The text of each file, by its path from the folder. */
export type Files = Readonly<Record<string, string>>

export interface Written {
  /** From the working directory. */
  readonly file: string
  readonly is: 'created' | 'updated' | 'unchanged'
}

/** Writes what is not there yet. */
export function writeNew(folder: string, files: Files): Written[] {
  const all = compare(folder, files)
  const others = all.filter(({ is }) => is === 'updated').map(({ file }) => file)
  if (others.length > 0) {
    const them = others.length === 1 ? 'that one' : 'these'
    throw new Failure(
      `${others.join(', ')} ${others.length === 1 ? 'is' : 'are'} there already, with another text: move or delete ${them}, or choose another place; nothing was written`,
    )
  }
  return write(folder, files, all)
}

/** Writes what differs: for files that are generated anew whenever their source changes. */
export function writeGenerated(folder: string, files: Files): Written[] {
  return write(folder, files, compare(folder, files))
}

/** What writing them would do. */
export function compare(folder: string, files: Files): Written[] {
  return Object.entries(files).map(([name, text]) => {
    const path = join(folder, name)
    const file = relative('', path)
    if (!existsSync(path)) return { file, is: 'created' }
    return { file, is: readFileSync(path, 'utf8') === text ? 'unchanged' : 'updated' }
  })
}

function write(folder: string, files: Files, all: Written[]): Written[] {
  for (const [index, [name, text]] of Object.entries(files).entries()) {
    if (all[index]?.is === 'unchanged') continue
    const path = join(folder, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  return all
}

export function tell(written: readonly Written[]): void {
  for (const { file, is } of written) process.stdout.write(`${is} ${file}\n`)
}
