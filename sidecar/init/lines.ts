/**
 * What the lines of a command's output mean: the last that speaks of progress, the last that has a result, and the last of all. They are files
 * beside the claim, replaced at most five times a second while the command runs, and at its end. The same rule as lines.c.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Clock, systemClock, type Timer } from '../../shared/clock.ts'

export interface Lines {
  push(data: Buffer): void
  /** The rest is a line too. */
  end(): void
}

export interface Notes {
  /** The lines of standard output, or of standard error, which speaks of neither progress nor result. */
  lines(isOutput: boolean): Lines
  /** Writes what is not written yet. */
  end(): void
}

const newline = 0x0a
/** The longest line that is looked at. */
const longest = 64 * 1024
/** How much is kept of the last line of all. */
const longestLast = 4096
const every = 200

/** @param dir where the files are; a full disk is tried again with the next line */
export function createNotes(dir: string, clock: Clock = systemClock): Notes {
  const progress = createNote(join(dir, 'progress'), clock)
  const result = createNote(join(dir, 'result'), clock)
  let last: Buffer | undefined

  function done(line: Buffer, isWhole: boolean, isOutput: boolean): void {
    let end = line.length
    while (end > 0 && [0x20, 0x09, 0x0d].includes(line[end - 1] ?? 0)) end--
    if (end === 0) return
    const keys = isOutput && isWhole ? keysOf(line.subarray(0, end)) : undefined
    if (keys?.hasProgress) progress.take(line.subarray(0, end))
    if (keys?.hasResult) result.take(line.subarray(0, end))
    if (end > longestLast) {
      end = longestLast
      // Not within a character.
      while (end > longestLast - 4 && ((line[end] ?? 0) & 0xc0) === 0x80) end--
    }
    last = line.subarray(0, end)
  }

  return {
    lines(isOutput) {
      let pieces: Buffer[] = []
      let length = 0
      let isWhole = true
      const add = (piece: Buffer) => {
        const kept = piece.subarray(0, longest - length)
        if (kept.length < piece.length) isWhole = false
        // Copied: a line must not keep a whole chunk in memory.
        if (kept.length > 0) pieces.push(Buffer.from(kept))
        length += kept.length
      }
      const finish = () => {
        done(Buffer.concat(pieces), isWhole, isOutput)
        pieces = []
        length = 0
        isWhole = true
      }
      return {
        push(data) {
          let from = 0
          for (let end = data.indexOf(newline); end >= 0; end = data.indexOf(newline, from)) {
            add(data.subarray(from, end))
            finish()
            from = end + 1
          }
          if (from < data.length) add(data.subarray(from))
        },
        end: finish,
      }
    },
    end() {
      progress.end()
      result.end()
      if (last) put(join(dir, 'last'), last)
    },
  }
}

/** Which of the keys that matter a line has at its top, written without escapes; undefined if it is no JSON object. */
export function keysOf(line: Buffer): { hasProgress: boolean; hasResult: boolean } | undefined {
  const text = line.toString()
  // Most lines are no JSON, and need not be parsed to know it.
  if (!/^[ \t\r\n]*\{/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    const has = (key: string) => Object.hasOwn(value as object, key) && text.includes(`"${key}"`)
    return { hasProgress: has('progress'), hasResult: has('result') }
  } catch {
    return undefined
  }
}

/** A file that follows a value that may change often. */
function createNote(path: string, clock: Clock): { take(line: Buffer): void; end(): void } {
  let next: Buffer | undefined
  let timer: Timer | undefined
  const write = () => {
    if (next && put(path, next)) next = undefined
  }
  return {
    take(line) {
      next = line
      if (timer) return
      write()
      timer = clock.after(every, () => {
        timer = undefined
        write()
      })
    },
    end() {
      timer?.cancel()
      write()
    },
  }
}

/** Replaces a file; false if it could not. */
function put(path: string, content: Buffer): boolean {
  try {
    writeFileSync(`${path}.new`, content, { mode: 0o600 })
    renameSync(`${path}.new`, path)
    return true
  } catch {
    rmSync(`${path}.new`, { force: true })
    return false
  }
}
