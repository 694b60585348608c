/**
 * A line of the journal: `CRC32 JSON\n`. Pure.
 *
 * Guarantee: what `decode` answers was written by `encode` whole, or is damaged in a way that a 32-bit sum does not see.
 */
import { crc32 } from 'node:zlib'

export function encode(record: object): string {
  const json = JSON.stringify(record)
  return `${sum(json)} ${json}\n`
}

export interface Decoded {
  readonly records: unknown[]
  /** Bytes up to the end of the last good line. */
  readonly good: number
  /** The rest after the last good line is what a crash leaves: at most one line, never synced. */
  readonly torn: boolean
  /** How many lines before the last good one cannot be read. */
  readonly damaged: number
}

/** Reads all it can: a line that is no good is counted, and the next one is read. */
export function decode(content: Buffer): Decoded {
  const records: unknown[] = []
  let good = 0
  let bad = 0
  let damaged = 0
  for (let at = 0; at < content.length; ) {
    const newline = content.indexOf(10, at)
    const end = newline < 0 ? content.length : newline
    const record = newline < 0 ? undefined : decodeLine(content.toString('utf8', at, end))
    at = end + 1
    if (record === undefined) {
      bad++
      continue
    }
    records.push(record)
    damaged += bad
    bad = 0
    good = at
  }
  // One line can be torn. More than one at the end is damage: the first of them had been followed by another, so it had been whole.
  return { records, good, torn: bad > 0, damaged: damaged + Math.max(bad - 1, 0) }
}

function decodeLine(line: string): object | undefined {
  const json = line.slice(9)
  if (line[8] !== ' ' || line.slice(0, 8) !== sum(json)) return undefined
  try {
    const record: unknown = JSON.parse(json)
    return typeof record === 'object' && record !== null ? record : undefined
  } catch {
    return undefined
  }
}

const sum = (json: string) => crc32(json).toString(16).padStart(8, '0')
