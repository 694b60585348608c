import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSegments } from '../../../sidecar/init/segments.ts'
import { seed } from './arbitraries.ts'
import { folder, segments } from './wrappers.ts'

const MiB = 1 << 20

/** Bytes of which each says where it stands. */
function text(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; at++) bytes[at] = (at * 31 + (at >> 8)) & 0xff
  return bytes
}

describe('the log in segments', () => {
  it('is one file while it is short, named by its offset', () => {
    const dir = join(folder(), 'log')
    const log = createSegments({ dir, offset: 4711 })
    expect(readdirSync(dir)).toEqual([])
    log.write(Buffer.from('one '))
    log.write(Buffer.from('two'))
    expect(log.size).toBe(4718)
    log.close()
    expect(segments(dir)).toEqual(new Map([[4711, Buffer.from('one two')]]))
  })

  it('keeps the head and the tail, whatever is written in whatever pieces', () => {
    const all = text(400_000)
    fc.assert(
      fc.property(
        fc.record({
          head: fc.constantFrom(0, 1000, 4096, 10_000),
          tail: fc.constantFrom(0, 5000, 40_000, 80_000),
          offset: fc.constantFrom(0, 500, 4096, 20_000),
          sizes: fc.array(fc.nat(30_000), { maxLength: 25 }),
        }),
        ({ head, tail, offset, sizes }) => {
          const dir = folder()
          const log = createSegments({ dir, head, tail, offset })
          for (const size of sizes) log.write(all.subarray(log.size - offset, log.size - offset + size))
          log.close()
          const kept = segments(dir)
          const at = (position: number) =>
            [...kept].find(([start, { length }]) => start <= position && position < start + length)
          for (const [start, bytes] of kept)
            expect(all.subarray(start - offset, start - offset + bytes.length).equals(bytes)).toBe(true)
          for (let i = offset; i < log.size; i += 97) {
            if (i < head || i >= log.size - tail) expect(at(i), `byte ${i} of ${log.size}`).toBeDefined()
          }
          const segment = Math.max(4096, tail / 8)
          const total = [...kept.values()].reduce((sum, { length }) => sum + length, 0)
          expect(total).toBeLessThanOrEqual(head + tail + 2 * segment)
        },
      ),
      { seed, numRuns: 60 },
    )
  })

  it('has the first mebibyte in one segment, and none that is larger', () => {
    const dir = folder()
    const log = createSegments({ dir })
    for (let i = 0; i < 10; i++) log.write(Buffer.alloc(MiB - 7, i))
    log.close()
    const kept = segments(dir)
    expect(kept.get(0)).toHaveLength(MiB)
    expect(Math.max(...[...kept.values()].map(({ length }) => length))).toBe(MiB)
  })

  it('loses what cannot be written, and goes on after a while', () => {
    const dir = join(folder(), 'log')
    writeFileSync(dir, 'a file where the folder should be')
    let now = 0
    const clock = { now: () => 0, monotonic: () => now, after: () => ({ cancel: () => undefined }) }
    const log = createSegments({ dir, clock })
    log.write(Buffer.from('lost'))
    rmSync(dir)
    mkdirSync(dir)
    log.write(Buffer.from('too soon'))
    now += 1000
    log.write(Buffer.from('kept'))
    expect(log.size).toBe(16)
    log.close()
    expect(segments(dir)).toEqual(new Map([[12, Buffer.from('kept')]]))
  })
})
