/**
 * Reads the log of a run: segments in a folder, each named by the offset of its first byte, while somebody else writes and removes them.
 *
 * Guarantees: what is served is the first `head` and the last `tail` bytes, however much the segments hold. A piece is without gaps, and its offset is
 * true; what is missing is skipped. No more than `limit` bytes are read into memory.
 */
import { open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { LogPiece } from './api.ts'

export interface Kept {
  /** So many bytes are kept from the beginning. */
  readonly head: number
  /** So many bytes are kept from the end. */
  readonly tail: number
}

export interface LogSize {
  /** How many bytes were written in all, as far as the segments tell. */
  readonly size: number
  /** So many are kept from the beginning, without a gap. */
  readonly keptHead: number
  /** From here on the end is kept; where nothing is missing, this is `keptHead`. */
  readonly tailFrom: number
}

/** What is there of the log: bytes from `from` up to `to`, in the segment that begins at `start`. */
interface Span {
  readonly start: number
  readonly from: number
  readonly to: number
}

/** How often a look begins anew when what it found has just been removed: each time there is something newer, unless the log itself goes. */
const attempts = 100

/** The kept bytes from the first one at or after `offset`, as far as they go without a gap, at most `limit`. Empty at the end, and where there is no log. */
export async function readLog(
  dir: string,
  { offset, limit, head, tail }: Kept & { readonly offset: number; readonly limit: number },
): Promise<LogPiece> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const wanted = clamp(await listSegments(dir), { head, tail }).filter(({ to }) => to > offset)
    if (wanted.length === 0) break
    const piece = await readSpans(dir, wanted, offset, limit)
    if (piece) return piece
  }
  return { offset, next: offset, bytes: Buffer.alloc(0) }
}

export async function logSize(dir: string, kept: Kept): Promise<LogSize> {
  const segments = await listSegments(dir)
  const size = segments.at(-1)?.to ?? 0
  const spans = clamp(segments, kept)
  let keptHead = 0
  for (const { from, to } of spans) {
    if (from !== keptHead || keptHead >= kept.head) break
    keptHead = Math.min(to, kept.head)
  }
  const least = Math.max(size - kept.tail, keptHead)
  const first = spans.find(({ to }) => to > least)
  return { size, keptHead, tailFrom: first ? Math.max(first.from, least) : size }
}

/** Removes the log with its folder. One that is not there is removed already. */
export async function removeLog(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true })
}

/** The segments as they are now, in order; none overlaps the next. The newest is among them: it is removed only after a newer one is written. */
async function listSegments(dir: string): Promise<Span[]> {
  let spans: Span[] = []
  for (let attempt = 0; attempt < attempts; attempt++) {
    const names = (await unlessGone(readdir(dir))) ?? []
    const starts = names.filter(name => /^\d{20}$/.test(name)).sort()
    spans = await measure(dir, starts)
    if (starts.length === 0 || spans.at(-1)?.start === Number(starts.at(-1))) break
  }
  return spans
}

/** Those of the segments that are still there. */
async function measure(dir: string, starts: readonly string[]): Promise<Span[]> {
  const spans: Span[] = []
  for (const [index, name] of starts.entries()) {
    const stats = await unlessGone(stat(join(dir, name)))
    if (!stats) continue
    const start = Number(name)
    const next = starts[index + 1]
    const end = start + stats.size
    spans.push({ start, from: start, to: next === undefined ? end : Math.min(end, Number(next)) })
  }
  return spans
}

/** What is served of the segments. Pure. */
function clamp(segments: readonly Span[], { head, tail }: Kept): Span[] {
  const size = segments.at(-1)?.to ?? 0
  const tailFrom = Math.max(size - tail, head)
  const spans: Span[] = []
  for (const { start, from, to } of segments) {
    spans.push({ start, from, to: Math.min(to, head) }, { start, from: Math.max(from, tailFrom), to })
  }
  return spans.filter(({ from, to }) => to > from)
}

/** Undefined if every one of the segments has been removed. */
async function readSpans(
  dir: string,
  spans: readonly Span[],
  offset: number,
  limit: number,
): Promise<LogPiece | undefined> {
  for (const [index, first] of spans.entries()) {
    const begin = Math.max(first.from, offset)
    const run = spans.slice(index)
    const bytes = Buffer.allocUnsafe(Math.min(limit, lengthFrom(run, begin)))
    let filled = 0
    for (const span of run) {
      const left = bytes.subarray(filled)
      const here = begin + filled
      if (left.length === 0) break
      const want = Math.min(span.to - here, left.length)
      const got = await readSegment(join(dir, name(span.start)), left.subarray(0, want), here - span.start)
      filled += got
      if (got < want) break
    }
    if (filled > 0 || bytes.length === 0) {
      return { offset: begin, next: begin + filled, bytes: bytes.subarray(0, filled) }
    }
  }
  return undefined
}

/** Fills `bytes` as far as the file goes; answers how far. A file that has been removed has nothing. */
async function readSegment(path: string, bytes: Buffer, position: number): Promise<number> {
  const file = await unlessGone(open(path))
  if (!file) return 0
  try {
    let filled = 0
    while (filled < bytes.length) {
      const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, position + filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    return filled
  } finally {
    await file.close()
  }
}

/** How many bytes follow `from` without a gap; the first span is the one that holds it. */
function lengthFrom(spans: readonly Span[], from: number): number {
  let end = from
  for (const span of spans) {
    if (span.from > end) break
    end = span.to
  }
  return end - from
}

const name = (start: number) => String(start).padStart(20, '0')

async function unlessGone<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
