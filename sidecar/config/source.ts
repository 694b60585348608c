/**
 * The files that a configuration is read from, read as they stand at one moment although they may be exchanged meanwhile.
 *
 * Guarantees: files of one mounted ConfigMap or Secret are never those of two moments; other files are read again if one changed meanwhile. Nothing is
 * waited for: a pipe or a folder in the place of a file is a reason, as a missing one is.
 */
import { readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { messageOf } from '../../shared/errors.ts'
import { longestConfig } from './parse.ts'

export interface Source {
  /** What would differ if any of the files had changed. */
  fingerprint(): string
  /** When the youngest of them was last changed, in milliseconds since the epoch. */
  changedAt(): number
  /** The text of each file, or why one cannot be read; undefined while they are being exchanged. */
  read(): { readonly texts: readonly string[] } | { readonly reason: string } | undefined
}

export function sourceOf(files: readonly string[]): Source {
  const fingerprint = () => files.map(printOf).join(' ')
  return {
    fingerprint,
    changedAt: () => Math.max(...files.map(changeOf)),
    read() {
      for (let attempt = 0; attempt < 3; attempt++) {
        const before = fingerprint()
        const result = readAll(files)
        if (fingerprint() === before) return result
      }
      return undefined
    },
  }
}

function changeOf(file: string): number {
  try {
    return statSync(file).mtimeMs
  } catch {
    return 0
  }
}

function printOf(file: string): string {
  try {
    const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
    return stat ? `${stat.dev}.${stat.ino}.${stat.size}.${stat.mtimeNs}.${stat.ctimeNs}` : '-'
  } catch (thrown) {
    return messageOf(thrown)
  }
}

function readAll(files: readonly string[]): { texts: string[] } | { reason: string } {
  const texts: string[] = []
  const folders = new Map<string, string>()
  for (const file of files) {
    try {
      const folder = dirname(file)
      const standing = folders.get(folder) ?? standingFolder(folder)
      folders.set(folder, standing)
      const path = join(standing, basename(file))
      const stat = statSync(path, { throwIfNoEntry: false })
      if (!stat) return { reason: `${file} is missing` }
      if (!stat.isFile()) return { reason: `${file} is not a file` }
      if (stat.size > longestConfig) return { reason: `${file} has ${stat.size} bytes, ${longestConfig} at most` }
      texts.push(new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)))
    } catch (thrown) {
      return { reason: `${file} cannot be read: ${messageOf(thrown)}` }
    }
  }
  return { texts }
}

/** Where a folder's files stand at this moment: a mounted volume has them behind its link `..data`, which is exchanged when they change. */
function standingFolder(folder: string): string {
  try {
    return resolve(folder, readlinkSync(join(folder, '..data')))
  } catch {
    return folder
  }
}
