/**
 * What a container writes, line by line, with the time: kept on disk, at most about `limit` bytes of it, the newest.
 *
 * Guarantee: memory is bounded for writer and readers; a reader who is slower than the writer misses what has gone, never gets half a line.
 */
import { appendFileSync, closeSync, mkdirSync, openSync, readSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import type { LogOptions } from '../api/types.ts'

export interface Log {
  write(stream: 'stdout' | 'stderr', piece: Buffer): void
  /** Nothing more is written. */
  close(): void
  read(options: Omit<LogOptions, 'container' | 'previous'>, signal: AbortSignal): AsyncGenerator<Uint8Array>
  /** The last lines, of at most so many bytes. */
  tail(lines: number, bytes: number): Promise<string>
  remove(): void
}

const longestLine = 16 * 1024
const piece = 64 * 1024

export function createLog(path: string, limit = 10 * 1024 * 1024, now: () => number = Date.now): Log {
  mkdirSync(dirname(path), { recursive: true })
  const older = `${path}.1`
  for (const one of [path, older]) rmSync(one, { force: true })
  // Places in all that was ever written: the older file has [base, middle), the newer [middle, end).
  let base = 0
  let middle = 0
  let end = 0
  let isClosed = false
  let more = Promise.withResolvers<void>()
  const rests = { stdout: '', stderr: '' }
  const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }

  function append(records: readonly string[]): void {
    if (records.length === 0) return
    const bytes = Buffer.from(records.join(''))
    if (end > middle && end - middle + bytes.length > limit / 2) {
      renameSync(path, older)
      base = middle
      middle = end
    }
    appendFileSync(path, bytes)
    end += bytes.length
    wake()
  }
  function wake(): void {
    const before = more
    more = Promise.withResolvers()
    before.resolve()
  }
  /** `F` ends a line, `P` is a part of one. */
  const record = (stream: string, tag: 'F' | 'P', text: string) => `${stamp(now())} ${stream} ${tag} ${text}\n`

  function bytesAt(from: number, to: number): Buffer {
    const [file, start] = from < middle ? [older, base] : [path, middle]
    const buffer = Buffer.alloc(Math.min(to - from, piece))
    const handle = openSync(file, 'r')
    try {
      return buffer.subarray(0, readSync(handle, buffer, 0, buffer.length, from - start))
    } finally {
      closeSync(handle)
    }
  }

  /** Whole records from a place on, up to what there is now. */
  function* records(from: number): Generator<{ text: string; next: number }> {
    let at = Math.max(from, base)
    let rest = Buffer.alloc(0)
    while (at + rest.length < end) {
      if (at < base) {
        at = base
        rest = Buffer.alloc(0)
      }
      const place = at + rest.length
      const bytes = bytesAt(place, place < middle ? middle : end)
      if (bytes.length === 0) return
      rest = Buffer.concat([rest, bytes])
      for (let line = rest.indexOf(10); line >= 0; line = rest.indexOf(10)) {
        at += line + 1
        const text = rest.subarray(0, line).toString()
        rest = rest.subarray(line + 1)
        yield { text, next: at }
      }
    }
  }

  /** Where the last so many lines begin. */
  function placeOfTail(lines: number): number {
    const places: number[] = []
    let at = base
    let isNew = true
    for (const { text, next } of records(base)) {
      if (isNew) places.push(at)
      if (places.length > lines) places.shift()
      isNew = text.split(' ', 3)[2] === 'F'
      at = next
    }
    return lines === 0 ? end : (places[0] ?? end)
  }

  async function* read(
    options: Omit<LogOptions, 'container' | 'previous'>,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const { follow, timestamps, tailLines, limitBytes, sinceSeconds, sinceTime } = options
    const since = sinceTime
      ? Date.parse(sinceTime)
      : sinceSeconds === undefined
        ? undefined
        : now() - sinceSeconds * 1000
    let at = tailLines === undefined ? base : placeOfTail(tailLines)
    let left = limitBytes ?? Number.POSITIVE_INFINITY
    let isNew = true
    while (left > 0 && !signal.aborted) {
      const waiting = more.promise
      const isLast = isClosed || !follow
      for (const { text, next } of records(at)) {
        at = next
        const [time = '', , tag] = text.split(' ', 3)
        const line = text.slice(text.indexOf(` ${tag} `) + 3)
        if (since !== undefined && Date.parse(time) < since) continue
        const shown = `${timestamps && isNew ? `${time} ` : ''}${line}${tag === 'F' ? '\n' : ''}`
        isNew = tag === 'F'
        const bytes = Buffer.from(shown).subarray(0, left)
        left -= bytes.length
        if (bytes.length > 0) yield bytes
        if (left <= 0 || signal.aborted) return
      }
      if (isLast) return
      await Promise.race([waiting, aborted(signal)])
    }
  }

  return {
    write(stream, bytes) {
      const parts = (rests[stream] + decoders[stream].write(bytes)).split('\n')
      rests[stream] = parts.pop() ?? ''
      const written = parts.map(text => record(stream, 'F', text))
      while (rests[stream].length >= longestLine) {
        written.push(record(stream, 'P', rests[stream].slice(0, longestLine)))
        rests[stream] = rests[stream].slice(longestLine)
      }
      append(written)
    },
    close() {
      if (isClosed) return
      for (const stream of ['stdout', 'stderr'] as const)
        if (rests[stream] !== '') append([record(stream, 'P', rests[stream])])
      isClosed = true
      wake()
    },
    read,
    async tail(lines, bytes) {
      let text = ''
      const options = { follow: false, timestamps: false, tailLines: lines }
      for await (const one of read(options, AbortSignal.any([]))) text += Buffer.from(one).toString()
      return Buffer.from(text).subarray(-bytes).toString()
    },
    remove() {
      for (const one of [path, older]) rmSync(one, { force: true })
    },
  }
}

/** In nanoseconds, as container runtimes write it. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000000Z')
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
