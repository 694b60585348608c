/**
 * The claim of a run: who has it executes, whoever finds one does nothing.
 *
 * Guarantee: of all who claim a folder, wrappers and agents alike, one gets it; a claim stands whole or not at all, and is on the disk before
 * this returns.
 */
import { closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../shared/clock.ts'
import { type Identity, ownIdentity } from './identity.ts'

export interface Claim extends Identity {
  readonly by: 'wrapper' | 'agent'
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** @returns false if the folder is claimed already; throws if it cannot be known, or not be written: there may or may not be a claim then */
export function claim(dir: string, by: Claim['by'], clock: Clock): boolean {
  const path = join(dir, 'claim')
  if (existsSync(path)) return false
  const own = `${path}.${process.pid}`
  const content: Claim = { by, ...ownIdentity(), at: clock.now() }
  try {
    rmSync(own, { force: true })
    writeSynced(own, 'wx', `${JSON.stringify(content)}\n`)
    linkSync(own, path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(own, { force: true })
  }
  syncFolder(dir)
  return true
}

/** Writes a file and has it on the disk. */
export function writeSynced(path: string, flags: 'w' | 'wx' | 'r+', text: string): void {
  const fd = openSync(path, flags, 0o600)
  try {
    let rest = Buffer.from(text)
    while (rest.length > 0) rest = rest.subarray(writeSync(fd, rest))
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Has the names in a folder on the disk. */
export function syncFolder(dir: string): void {
  const fd = openSync(dir, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
