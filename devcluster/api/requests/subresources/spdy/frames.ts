/**
 * SPDY/3.1 on the wire: bytes to frames and back. Pure but for what the reader keeps between two pieces.
 *
 * Guarantee: data is handed on as it comes; no more than one control frame, of at most 64 KiB, is ever held.
 */

export type Frame =
  | { readonly is: 'open'; readonly stream: number; readonly isLast: boolean; readonly headers: Buffer }
  /** More headers of a stream: nobody asks for them, but they are part of what is unpacked. */
  | { readonly is: 'headers'; readonly stream: number; readonly isLast: boolean; readonly headers: Buffer }
  /** A piece of a data frame. `isLast`: the other end writes nothing more to this stream. */
  | { readonly is: 'data'; readonly stream: number; readonly isLast: boolean; readonly bytes: Buffer }
  | { readonly is: 'reset'; readonly stream: number }
  | { readonly is: 'ping'; readonly id: number }
  | { readonly is: 'leaving' }

const types = { open: 1, reply: 2, reset: 3, settings: 4, ping: 6, leaving: 7, headers: 8, window: 9 } as const
const fin = 1
const headLength = 8
const longestControl = 64 * 1024
/** 24 bits. */
export const longestData = 0xff_ffff

export function createFrameReader(): (piece: Buffer) => Frame[] {
  let held: Buffer = Buffer.alloc(0)
  /** The data frame that has begun. */
  let open: { stream: number; isLast: boolean; left: number } | undefined
  return piece => {
    const frames: Frame[] = []
    held = held.length === 0 ? piece : Buffer.concat([held, piece])
    for (;;) {
      if (open) {
        if (open.left > 0 && held.length === 0) return frames
        const bytes = held.subarray(0, open.left)
        held = held.subarray(bytes.length)
        open.left -= bytes.length
        const { stream, isLast, left } = open
        if (left === 0) open = undefined
        frames.push({ is: 'data', stream, isLast: isLast && left === 0, bytes })
        continue
      }
      if (held.length < headLength) return frames
      const word = held.readUInt32BE(0)
      const isLast = (held.readUInt8(4) & fin) !== 0
      const length = held.readUIntBE(5, 3)
      if (word >>> 31 === 0) {
        held = held.subarray(headLength)
        open = { stream: word, isLast, left: length }
        continue
      }
      if (((word >>> 16) & 0x7fff) !== 3) throw new Error('not a frame of SPDY/3')
      if (length > longestControl) throw new Error(`a control frame of ${length} bytes is too long`)
      if (held.length < headLength + length) return frames
      const body = held.subarray(headLength, headLength + length)
      held = held.subarray(headLength + length)
      const frame = controlOf(word & 0xffff, isLast, body)
      if (frame) frames.push(frame)
    }
  }
}

function controlOf(type: number, isLast: boolean, body: Buffer): Frame | undefined {
  const word = () => body.readUInt32BE(0) & 0x7fff_ffff
  switch (type) {
    case types.open:
      return { is: 'open', stream: word(), isLast, headers: body.subarray(10) }
    case types.reply:
    case types.headers:
      return { is: 'headers', stream: word(), isLast, headers: body.subarray(4) }
    case types.reset:
      return { is: 'reset', stream: word() }
    case types.ping:
      return { is: 'ping', id: body.readUInt32BE(0) }
    case types.leaving:
      return { is: 'leaving' }
    default:
      return undefined
  }
}

function control(type: number, body: Buffer): Buffer {
  const head = Buffer.alloc(headLength)
  head.writeUInt16BE(0x8003, 0)
  head.writeUInt16BE(type, 2)
  head.writeUIntBE(body.length, 5, 3)
  return Buffer.concat([head, body])
}

function words(...numbers: number[]): Buffer {
  const bytes = Buffer.alloc(4 * numbers.length)
  for (const [i, number] of numbers.entries()) bytes.writeUInt32BE(number, 4 * i)
  return bytes
}

/** Says yes to a stream. */
export const replyFrame = (stream: number, headers: Buffer) =>
  control(types.reply, Buffer.concat([words(stream), headers]))

/** Ends a stream both ways: nobody wants it any more. */
export const resetFrame = (stream: number) => control(types.reset, words(stream, 5))

export const pingFrame = (id: number) => control(types.ping, words(id))

/** @param last the last stream that was taken */
export const leavingFrame = (last: number) => control(types.leaving, words(last, 0))

export function dataFrame(stream: number, bytes: Uint8Array, isLast: boolean): Buffer {
  const head = Buffer.alloc(headLength)
  head.writeUInt32BE(stream, 0)
  head.writeUInt8(isLast ? fin : 0, 4)
  head.writeUIntBE(bytes.length, 5, 3)
  return Buffer.concat([head, bytes])
}
