import { type Duplex, duplexPair } from 'node:stream'
import { constants, createDeflate } from 'node:zlib'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { accept } from '../../../devcluster/api/requests/subresources/spdy/connection.ts'
import { dictionary } from '../../../devcluster/api/requests/subresources/spdy/dictionary.ts'
import {
  createFrameReader,
  dataFrame,
  type Frame,
  pingFrame,
  resetFrame,
} from '../../../devcluster/api/requests/subresources/spdy/frames.ts'

/** The other end's headers: one zlib stream for all, flushed after each. */
function packer(): (headers: Record<string, string>) => Promise<Buffer> {
  const deflate = createDeflate({ dictionary })
  let pieces: Buffer[] = []
  deflate.on('data', (piece: Buffer) => pieces.push(piece))
  const text = (value: string) => Buffer.concat([word(value.length), Buffer.from(value)])
  return async headers => {
    pieces = []
    const entries = Object.entries(headers)
    deflate.write(Buffer.concat([word(entries.length), ...entries.flat().map(text)]))
    await new Promise<void>(resolve => deflate.flush(constants.Z_SYNC_FLUSH, () => resolve()))
    return Buffer.concat(pieces)
  }
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function openFrame(stream: number, packed: Buffer): Buffer {
  const head = Buffer.from([0x80, 3, 0, 1, 0, 0, 0, 0])
  head.writeUIntBE(packed.length + 10, 5, 3)
  return Buffer.concat([head, word(stream), word(0), Buffer.from([0, 0]), packed])
}

it('gives the same frames, however the bytes are cut', () => {
  const bytes = Buffer.concat([
    openFrame(1, Buffer.from('packed')),
    dataFrame(1, Buffer.from('some data'), false),
    pingFrame(7),
    dataFrame(1, Buffer.alloc(0), true),
    resetFrame(3),
  ])
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }), sizes => {
      const read = createFrameReader()
      const frames: Frame[] = []
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const end = at + (sizes[i % sizes.length] ?? 1)
        frames.push(...read(bytes.subarray(at, end)))
        at = end
      }
      const told = frames.flatMap(frame => (frame.is === 'data' ? [frame.bytes.toString()] : []))
      expect(told.join('')).toBe('some data')
      expect(frames.filter(({ is }) => is !== 'data')).toEqual([
        { is: 'open', stream: 1, isLast: false, headers: Buffer.from('packed') },
        { is: 'ping', id: 7 },
        { is: 'reset', stream: 3 },
      ])
      expect(frames.filter(frame => frame.is === 'data' && frame.isLast)).toHaveLength(1)
    }),
  )
})

it('refuses what is no SPDY/3, or too long', () => {
  expect(() => createFrameReader()(Buffer.from([0x80, 2, 0, 6, 0, 0, 0, 4]))).toThrow('not a frame of SPDY/3')
  expect(() => createFrameReader()(Buffer.from([0x80, 3, 0, 1, 0, 0xff, 0, 0]))).toThrow('too long')
})

it('makes a stream of each that is opened, with its headers, and ends them with the connection', async () => {
  const [ours, theirs] = duplexPair()
  const streams: [Duplex, Map<string, string>][] = []
  const connection = accept(ours, (stream, headers) => void streams.push([stream, new Map(headers)]))
  const pack = packer()
  for (const [id, type] of [
    [1, 'error'],
    [3, 'data'],
  ] as const)
    theirs.write(openFrame(id, await pack({ streamtype: type, port: '8080', 'x-long': type.repeat(5000) })))
  theirs.write(dataFrame(3, Buffer.from('ahoy'), true))
  await expect.poll(() => streams.length).toBe(2)
  expect(streams.map(([, headers]) => [headers.get('streamtype'), headers.get('port')])).toEqual([
    ['error', '8080'],
    ['data', '8080'],
  ])
  const [, [data] = []] = streams
  const heard: Buffer[] = []
  for await (const piece of data as Duplex) heard.push(piece)
  expect(Buffer.concat(heard).toString()).toBe('ahoy')
  theirs.destroy()
  await connection.over
  expect(streams.every(([stream]) => stream.destroyed)).toBe(true)
})

it('ends a connection that sends headers without end', async () => {
  const [ours, theirs] = duplexPair()
  const connection = accept(ours, () => {})
  theirs.on('error', () => {})
  theirs.write(openFrame(1, await packer()({ long: 'x'.repeat(1 << 20) })))
  await connection.over
  expect(ours.destroyed).toBe(true)
})
