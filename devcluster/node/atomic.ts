/**
 * A folder of files that changes in one move, as a kubelet keeps it: the files are behind the link `..data`, which is exchanged.
 *
 * Guarantees: a reader of `..data` never sees half of a change; what has not changed is not written again.
 */
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Files } from './payload.ts'

/** Answers whether anything changed. */
export function writeFiles(folder: string, files: Files): boolean {
  mkdirSync(folder, { recursive: true })
  const before = linkOf(join(folder, '..data'))
  if (before !== undefined && isSame(join(folder, before), files)) return false
  const now = freshName(folder)
  mkdirSync(join(folder, now))
  for (const [path, { content, mode }] of files) {
    const place = join(folder, now, path)
    mkdirSync(dirname(place), { recursive: true })
    writeFileSync(place, content)
    // The umask has no say in it.
    chmodSync(place, mode)
  }
  rmSync(join(folder, '..data_tmp'), { force: true })
  symlinkSync(now, join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  const tops = new Set([...files.keys()].map(path => path.split('/')[0] ?? ''))
  const there = readdirSync(folder).filter(name => !name.startsWith('..'))
  for (const name of tops) if (!there.includes(name)) symlinkSync(join('..data', name), join(folder, name))
  // What is no link of ours is a place where something else is mounted.
  for (const name of there)
    if (!tops.has(name) && linkOf(join(folder, name))?.startsWith('..data/')) rmSync(join(folder, name))
  if (before !== undefined) rmSync(join(folder, before), { recursive: true, force: true })
  return true
}

function freshName(folder: string): string {
  const time = new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '_').replace('T', '_')
  const taken = new Set(readdirSync(folder))
  for (let number = 1; ; number++) if (!taken.has(`..${time}.${number}`)) return `..${time}.${number}`
}

function isSame(folder: string, files: Files): boolean {
  const paths = filesIn(folder)
  if (paths.length !== files.size) return false
  return paths.every(path => {
    const file = files.get(path)
    if (!file || (lstatSync(join(folder, path)).mode & 0o777) !== file.mode) return false
    return file.content.equals(readFileSync(join(folder, path)))
  })
}

function filesIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
    return entries
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name).slice(folder.length + 1))
  } catch {
    return []
  }
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
