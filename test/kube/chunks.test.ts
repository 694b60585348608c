import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Chunks } from '../../controller/kube/chunks.ts'

/** What the connection was told. */
function source() {
  const told: string[] = []
  return {
    told,
    pause: () => told.push('pause'),
    resume: () => told.push('resume'),
    cancel: () => told.push('cancel'),
  }
}

const bytes = (text: string) => new TextEncoder().encode(text)
const text = (chunks: Uint8Array[]) => Buffer.concat(chunks).toString()
const MB = 1 << 20

async function all(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const got: Uint8Array[] = []
  for await (const chunk of chunks) got.push(chunk)
  return got
}

describe('the chunks of a stream', () => {
  it('arrive in order, whether they came before the reader or while it waited', async () => {
    const chunks = new Chunks(source())
    chunks.push(bytes('a'))
    chunks.push(bytes('b'))
    const read = all(chunks)
    await Promise.resolve()
    chunks.push(bytes('c'))
    await Promise.resolve()
    chunks.push(bytes('d'))
    chunks.end()
    expect(text(await read)).toBe('abcd')
  })

  it('are all handed over before the failure that came after them', async () => {
    const chunks = new Chunks(source())
    chunks.push(bytes('a'))
    chunks.push(bytes('b'))
    chunks.fail(new Error('cut'))
    const got: Uint8Array[] = []
    const read = (async () => {
      for await (const chunk of chunks) got.push(chunk)
    })()
    await expect(read).rejects.toThrow('cut')
    expect(text(got)).toBe('ab')
  })

  it('end once: what comes after the end or the failure changes nothing', async () => {
    const chunks = new Chunks(source())
    chunks.end()
    chunks.fail(new Error('late'))
    expect(await all(chunks)).toEqual([])
    const others = new Chunks(source())
    others.fail(new Error('first'))
    others.fail(new Error('second'))
    others.end()
    await expect(all(others)).rejects.toThrow('first')
  })

  it('pause the connection when the reader is behind, and let it go on when it has caught up', async () => {
    const connection = source()
    const chunks = new Chunks(connection)
    chunks.push(new Uint8Array(MB))
    expect(connection.told).toEqual([])
    chunks.push(new Uint8Array(1))
    chunks.push(new Uint8Array(1))
    expect(connection.told).toEqual(['pause'])
    const reader = chunks[Symbol.asyncIterator]()
    await reader.next()
    expect(connection.told).toEqual(['pause', 'resume'])
    await reader.return()
  })

  it('never hold more than a mebibyte and one piece, whatever the reader does', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat({ max: 700_000 }), { maxLength: 30 }),
        fc.infiniteStream(fc.boolean()),
        async (sizes, reads) => {
          let isPaused = false
          let held = 0
          let most = 0
          const chunks = new Chunks({
            pause: () => {
              isPaused = true
            },
            resume: () => {
              isPaused = false
            },
            cancel: () => undefined,
          })
          const reader = chunks[Symbol.asyncIterator]()
          let total = 0
          let read = 0
          const take = async () => {
            const { value } = await reader.next()
            read += value?.length ?? 0
            held -= value?.length ?? 0
          }
          for (const size of sizes) {
            // A connection that was paused sends nothing more.
            while (isPaused) await take()
            chunks.push(new Uint8Array(size))
            total += size
            held += size
            most = Math.max(most, held)
            if (held > 0 && reads.next().value) await take()
          }
          chunks.end()
          for (let result = await reader.next(); !result.done; result = await reader.next()) read += result.value.length
          expect(read).toBe(total)
          expect(most).toBeLessThanOrEqual(MB + 700_000)
        },
      ),
      { numRuns: 50 },
    )
  })

  it('close the connection, once, when the reader leaves early', async () => {
    const connection = source()
    const chunks = new Chunks(connection)
    chunks.push(bytes('a'))
    for await (const _ of chunks) break
    expect(connection.told).toEqual(['cancel'])
  })

  it('close the connection when the reader fails', async () => {
    const connection = source()
    const chunks = new Chunks(connection)
    chunks.push(bytes('a'))
    const read = async () => {
      for await (const _ of chunks) throw new Error('the reader is broken')
    }
    await expect(read()).rejects.toThrow('the reader is broken')
    expect(connection.told).toEqual(['cancel'])
  })

  it('need not be closed when they are over', async () => {
    const connection = source()
    const chunks = new Chunks(connection)
    chunks.push(bytes('a'))
    chunks.end()
    for await (const _ of chunks) break
    await all(chunks)
    expect(connection.told).toEqual([])
  })

  it('take up nothing after the reader has left', async () => {
    const connection = source()
    const chunks = new Chunks(connection)
    chunks.push(bytes('a'))
    for await (const _ of chunks) break
    for (let i = 0; i < 10; i++) chunks.push(new Uint8Array(MB))
    expect(connection.told).toEqual(['cancel'])
    expect(await all(chunks)).toEqual([])
  })
})
