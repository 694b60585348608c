import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { logSize, readLog, removeLog } from '../../sidecar/logs.ts'

let root: string
let dir: string
let folders = 0

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'shipmate-logs-'))
})
afterAll(() => rm(root, { recursive: true }))
beforeEach(async () => {
  dir = await newFolder()
})

async function newFolder(): Promise<string> {
  const folder = join(root, String(folders++))
  await mkdir(folder)
  return folder
}

const fileOf = (start: number) => String(start).padStart(20, '0')
/** The byte that stands at an offset: a log whose every byte tells where it belongs. */
const byteAt = (offset: number) => (offset * 31 + (offset >> 8) * 7) & 0xff
const bytesFrom = (start: number, length: number) => Buffer.from(Array.from({ length }, (_, i) => byteAt(start + i)))
const segment = (start: number, length: number, folder = dir) =>
  writeFile(join(folder, fileOf(start)), bytesFrom(start, length))
const all = { head: 1 << 20, tail: 4 << 20 }

/** The offsets that are served, and how they were cut into pieces. */
async function readAll(kept = all, limit = 1 << 20, folder = dir) {
  const offsets: number[] = []
  const pieces: [number, number][] = []
  for (let offset = 0; ; ) {
    const piece = await readLog(folder, { offset, limit, ...kept })
    expect(piece.offset).toBeGreaterThanOrEqual(offset)
    expect(piece.next).toBe(piece.offset + piece.bytes.length)
    expect(piece.bytes.length).toBeLessThanOrEqual(limit)
    expect(piece.bytes.equals(bytesFrom(piece.offset, piece.bytes.length))).toBe(true)
    if (piece.bytes.length === 0) return { offsets, pieces, end: piece.next }
    pieces.push([piece.offset, piece.next])
    for (let at = piece.offset; at < piece.next; at++) offsets.push(at)
    offset = piece.next
  }
}

describe('a log', () => {
  it('that is not there is empty', async () => {
    const missing = join(dir, 'none')
    expect(await readLog(missing, { offset: 7, limit: 10, ...all })).toMatchObject({ offset: 7, next: 7 })
    expect(await logSize(missing, all)).toEqual({ size: 0, keptHead: 0, tailFrom: 0 })
  })

  it('is one text, in however many segments', async () => {
    await segment(0, 10)
    await segment(10, 20)
    await segment(30, 5)
    expect(await readAll()).toMatchObject({ pieces: [[0, 35]], end: 35 })
    expect(await readAll(all, 8)).toMatchObject({
      pieces: [
        [0, 8],
        [8, 16],
        [16, 24],
        [24, 32],
        [32, 35],
      ],
    })
    expect(await logSize(dir, all)).toEqual({ size: 35, keptHead: 35, tailFrom: 35 })
  })

  it('has nothing at its end and beyond, until it grows', async () => {
    await segment(0, 10)
    expect(await readLog(dir, { offset: 10, limit: 5, ...all })).toMatchObject({ offset: 10, next: 10 })
    expect(await readLog(dir, { offset: 12, limit: 5, ...all })).toMatchObject({ offset: 12, next: 12 })
    await segment(0, 20)
    expect(await readLog(dir, { offset: 12, limit: 5, ...all })).toEqual({
      offset: 12,
      next: 17,
      bytes: bytesFrom(12, 5),
    })
  })

  it('of which the middle was removed goes on at the first byte that is there', async () => {
    await segment(0, 10)
    await segment(50, 10)
    await segment(60, 3)
    expect(await readAll()).toMatchObject({
      pieces: [
        [0, 10],
        [50, 63],
      ],
      end: 63,
    })
    expect(await readLog(dir, { offset: 20, limit: 5, ...all })).toMatchObject({ offset: 50, next: 55 })
    expect(await logSize(dir, { head: 10, tail: 20 })).toEqual({ size: 63, keptHead: 10, tailFrom: 50 })
  })

  it('is served as far as it is declared to be kept, even if the segments hold more', async () => {
    await segment(0, 40)
    await segment(40, 40)
    await segment(80, 20)
    const kept = { head: 15, tail: 30 }
    expect(await readAll(kept)).toMatchObject({
      pieces: [
        [0, 15],
        [70, 100],
      ],
    })
    expect(await logSize(dir, kept)).toEqual({ size: 100, keptHead: 15, tailFrom: 70 })
  })

  it('that is not longer than what is kept has no gap, and its tail begins where its head ends', async () => {
    await segment(0, 45)
    const kept = { head: 15, tail: 30 }
    expect(await readAll(kept)).toMatchObject({ pieces: [[0, 45]] })
    expect(await logSize(dir, kept)).toEqual({ size: 45, keptHead: 15, tailFrom: 15 })
    await segment(0, 46)
    expect(await logSize(dir, kept)).toEqual({ size: 46, keptHead: 15, tailFrom: 16 })
  })

  it('ignores what is no segment, and an empty one', async () => {
    await writeFile(join(dir, 'other'), 'x')
    await writeFile(join(dir, '7'), 'x')
    await segment(0, 4)
    await segment(4, 0)
    expect(await readAll()).toMatchObject({ pieces: [[0, 4]], end: 4 })
  })

  it('beyond 4 GiB has its true offsets', async () => {
    const start = 5 * 2 ** 32
    await segment(0, 4)
    await segment(start, 6)
    expect(await readLog(dir, { offset: 4, limit: 9, ...all })).toEqual({
      offset: start,
      next: start + 6,
      bytes: bytesFrom(start, 6),
    })
  })

  it('asked for more than there is costs no more memory than there is', async () => {
    await segment(0, 4)
    const { bytes } = await readLog(dir, { offset: 0, limit: Number.MAX_SAFE_INTEGER, ...all })
    expect(bytes).toEqual(bytesFrom(0, 4))
  })

  it('is gone when it was removed, once or twice', async () => {
    await segment(0, 4)
    await removeLog(dir)
    await removeLog(dir)
    expect(existsSync(dir)).toBe(false)
  })
})

it('serves exactly the kept bytes that are there, for any segments, gaps, bounds and limits', async () => {
  const layout = fc.array(fc.record({ gap: fc.nat({ max: 12 }), length: fc.nat({ max: 20 }) }), { maxLength: 6 })
  const size = fc.nat({ max: 60 })
  await fc.assert(
    fc.asyncProperty(layout, size, size, fc.integer({ min: 1, max: 30 }), async (segments, head, tail, limit) => {
      const folder = await newFolder()
      const there: number[] = []
      let end = 0
      for (const { gap, length } of segments) {
        const start = end + gap
        await segment(start, length, folder)
        for (let at = start; at < start + length; at++) there.push(at)
        end = start + length
      }
      const expected = there.filter(at => at < head || at >= end - tail)
      const { offsets } = await readAll({ head, tail }, limit, folder)
      expect(offsets).toEqual(expected)
      const sizes = await logSize(folder, { head, tail })
      expect(sizes.size).toBe(end)
      expect(sizes.keptHead).toBe(there.filter((at, index) => at === index && at < head).length)
      const later = expected.filter(at => at >= sizes.keptHead && at >= end - tail)
      expect(sizes.tailFrom).toBe(later[0] ?? end)
      await rm(folder, { recursive: true })
    }),
    { seed: Number(process.env['SHIPMATE_SEED']), numRuns: 150 },
  )
})

it('is read truly while segments are written and removed', async () => {
  const length = 512
  const last = 400
  let written = 0
  const write = async () => {
    for (let index = 0; index < last; index++) {
      await segment(index * length, length)
      written = (index + 1) * length
      // All but the first and the last two.
      if (index >= 3) await rm(join(dir, fileOf((index - 2) * length)), { force: true })
    }
  }
  const kept = { head: length, tail: 2 * length }
  const read = async () => {
    let offset = 0
    let jumps = 0
    while (offset < last * length) {
      const before = written
      const piece = await readLog(dir, { offset, limit: 700, ...kept })
      expect(piece.bytes.equals(bytesFrom(piece.offset, piece.bytes.length))).toBe(true)
      if (piece.bytes.length === 0) expect(offset).toBeGreaterThanOrEqual(before)
      if (piece.offset > offset) jumps++
      expect(piece.offset).toBeGreaterThanOrEqual(offset)
      offset = piece.next
    }
    return jumps
  }
  const [, ...jumps] = await Promise.all([write(), read(), read(), read()])
  expect(Math.max(...jumps)).toBeGreaterThan(0)
})
