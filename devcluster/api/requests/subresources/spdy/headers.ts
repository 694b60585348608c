/**
 * Headers of SPDY streams. All of one direction are one zlib stream, so each must be unpacked, in order.
 *
 * What is sent is stored, not compressed: a reader cannot tell, and the answers have no headers worth the work.
 */
import { constants, createInflate } from 'node:zlib'
import { dictionary } from './dictionary.ts'

const longest = 64 * 1024

export interface HeaderReader {
  /** One at a time. Names are in lower case. */
  read(packed: Buffer): Promise<Map<string, string>>
  close(): void
}

export function createHeaderReader(): HeaderReader {
  const inflate = createInflate({ dictionary, finishFlush: constants.Z_SYNC_FLUSH })
  let pieces: Buffer[] = []
  let length = 0
  inflate.on('data', (piece: Buffer) => {
    pieces.push(piece)
    length += piece.length
    if (length > longest) inflate.destroy(new Error('the headers of a stream are too long'))
  })
  // Who writes is told.
  inflate.on('error', () => {})
  return {
    async read(packed) {
      pieces = []
      length = 0
      await new Promise<void>((resolve, reject) => {
        inflate.write(packed, error => (error ? reject(error) : resolve()))
      })
      return headersOf(Buffer.concat(pieces))
    },
    close: () => void inflate.destroy(),
  }
}

function headersOf(bytes: Buffer): Map<string, string> {
  let at = 0
  const number = () => {
    const value = bytes.readUInt32BE(at)
    at += 4
    return value
  }
  const text = () => {
    const end = number() + at
    if (end > bytes.length) throw new Error('the headers of a stream are cut')
    const value = bytes.toString('utf8', at, end)
    at = end
    return value
  }
  const headers = new Map<string, string>()
  for (let left = number(); left > 0; left--) headers.set(text().toLowerCase(), text())
  return headers
}

/** No headers, for each stream that is taken: once with the beginning of a zlib stream. */
export function createEmptyHeaders(): () => Buffer {
  const none = Buffer.from([0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0])
  // Ends on an empty block, which is where readers look up from the stream.
  const flush = Buffer.from([0, 0, 0, 0xff, 0xff])
  let begin = Buffer.from([0x78, 0x01])
  return () => {
    const block = Buffer.concat([begin, none, flush])
    begin = Buffer.alloc(0)
    return block
  }
}
