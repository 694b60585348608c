/**
 * The log in segments, each a file named by the offset of its first byte (20 digits). What begins before `head` stays; of what follows, the
 * last `tail` bytes at least. The same rule as log.c.
 *
 * Guarantee: nothing is thrown. What cannot be written (a full disk) is lost, and leaves a gap between two segments.
 */
import { closeSync, mkdirSync, openSync, readdirSync, statSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type Clock, systemClock } from '../../shared/clock.ts'

export interface SegmentsOptions {
  /** The folder. It is made if it is not there. */
  readonly dir: string
  /** Where the log goes on. Default 0. */
  readonly offset?: number | undefined
  /** Bytes at the beginning of the log that stay. Default 1 MiB. */
  readonly head?: number | undefined
  /** Bytes at its end that stay. Default 4 MiB. */
  readonly tail?: number | undefined
  /** Default: the system's. */
  readonly clock?: Clock | undefined
}

export interface Segments {
  write(data: Buffer): void
  /** The size of the whole log so far: its offset, what was written, and what was lost. */
  readonly size: number
  close(): void
}

const most = 1 << 20
const least = 4096
/** How long a disk that was full is left alone. */
const retryAfter = 200

export function createSegments({ dir, head = most, tail = 4 << 20, ...options }: SegmentsOptions): Segments {
  const clock = options.clock ?? systemClock
  const segment = Math.max(least, Math.min(most, Math.floor(tail / 8)))
  let offset = options.offset ?? 0
  let open: { fd: number; start: number; end: number } | undefined
  let retryAt = Number.NEGATIVE_INFINITY
  attempt(() => mkdirSync(dir, { recursive: true, mode: 0o700 }))

  function close(): void {
    if (!open) return
    const { fd, start } = open
    open = undefined
    attempt(() => closeSync(fd))
    if (start === offset) attempt(() => unlinkSync(join(dir, nameOf(start))))
  }

  /** Writes what it can of one segment's share; answers how much, 0 if nothing. */
  function writeSome(data: Buffer): number {
    if (!open && clock.monotonic() < retryAt) return 0
    open ??= { fd: openSync(join(dir, nameOf(offset)), 'w', 0o600), start: offset, end: endOf(offset) }
    const written = writeSync(open.fd, data, 0, Math.min(data.length, open.end - offset))
    offset += written
    if (offset < open.end) return written
    close()
    attempt(() => prune(dir, head, tail))
    return written
  }

  function endOf(start: number): number {
    return start < head ? Math.min(head, start + most) : start + segment
  }

  return {
    write(data) {
      let rest = data
      while (rest.length > 0) {
        const written = attempt(() => writeSome(rest)) ?? 0
        if (written === 0) break
        rest = rest.subarray(written)
      }
      if (rest.length === 0) return
      if (clock.monotonic() >= retryAt) retryAt = clock.monotonic() + retryAfter
      close()
      offset += rest.length
    },
    get size() {
      return offset
    },
    close,
  }
}

function nameOf(offset: number): string {
  return String(offset).padStart(20, '0')
}

/** Removes the segments behind the head that are followed by `tail` bytes. */
function prune(dir: string, head: number, tail: number): void {
  const names = readdirSync(dir).filter(name => /^\d{20}$/.test(name) && Number(name) >= head)
  let following = 0
  for (const name of names.sort().reverse()) {
    const path = join(dir, name)
    if (following >= tail) unlinkSync(path)
    else following += statSync(path).size
  }
}

function attempt<T>(run: () => T): T | undefined {
  try {
    return run()
  } catch {
    return undefined
  }
}
