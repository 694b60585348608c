/**
 * The last good configuration, kept in STATE-DIR over restarts.
 *
 * Guarantee: the file is whole, the old one or the new one, whenever the machine stops.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

export interface Kept {
  /** As written. */
  readonly spec: unknown
  /** Whether its signature was checked when it was taken. */
  readonly isSigned: boolean
}

const fileIn = (stateDir: string) => join(stateDir, 'config.json')

/** What was kept; undefined if nothing was, or it cannot be read. */
export function readKept(stateDir: string): Kept | undefined {
  try {
    const { v, signed, spec } = JSON.parse(readFileSync(fileIn(stateDir), 'utf8'))
    return v === 1 && typeof signed === 'boolean' ? { spec, isSigned: signed } : undefined
  } catch {
    return undefined
  }
}

/** @throws if it cannot be written; what was kept before is still there */
export function keep(stateDir: string, { spec, isSigned }: Kept): void {
  const file = fileIn(stateDir)
  const temporary = `${file}.new`
  rmSync(temporary, { force: true })
  const descriptor = openSync(temporary, 'wx', 0o600)
  try {
    let rest = Buffer.from(`${JSON.stringify({ v: 1, signed: isSigned, spec })}\n`)
    while (rest.length > 0) rest = rest.subarray(writeSync(descriptor, rest))
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  renameSync(temporary, file)
  const folder = openSync(stateDir, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
