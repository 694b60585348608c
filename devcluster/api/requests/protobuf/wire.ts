/**
 * Protocol Buffers as bytes: the fields of a message, one after the other, and the numbers in them.
 */

/** What a field has: a number as it is written, or bytes. */
export type Wire = bigint | number | Uint8Array

export class Malformed extends Error {}

/** Calls back for every field, in the order of the bytes. */
export function eachField(bytes: Uint8Array, call: (number: number, value: Wire) => void): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  const varint = (): bigint | number => {
    // Most fit 28 bits; the others are put together without loss.
    let small = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = take()
      small |= (byte & 0x7f) << shift
      if (byte < 0x80) return small
    }
    let large = BigInt(small)
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = take()
      large |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return large
    }
    throw new Malformed('proto: integer overflow')
  }
  const take = () => {
    const byte = bytes[at++]
    if (byte === undefined) throw new Malformed('unexpected EOF')
    return byte
  }
  const skip = (length: number) => {
    const from = at
    at += length
    if (at > bytes.length) throw new Malformed('unexpected EOF')
    return from
  }
  while (at < bytes.length) {
    const key = Number(varint())
    const number = Math.floor(key / 8)
    if (number <= 0) throw new Malformed(`proto: illegal tag ${number} (wire type ${key % 8})`)
    switch (key % 8) {
      case 0:
        call(number, varint())
        break
      case 1:
        call(number, view.getFloat64(skip(8), true))
        break
      case 2: {
        const length = Number(varint())
        const from = skip(length)
        call(number, bytes.subarray(from, from + length))
        break
      }
      case 5:
        call(number, view.getFloat32(skip(4), true))
        break
      default:
        throw new Malformed(`proto: illegal wireType ${key % 8}`)
    }
  }
}

/** A number with its sign: negative ones are written as 64 bits. */
export function signed(value: Wire | undefined): number {
  if (typeof value === 'bigint') return Number(BigInt.asIntN(64, value))
  if (typeof value === 'number') return value
  if (value === undefined) return 0
  throw wrongType()
}

export function double(value: Wire): number {
  if (typeof value !== 'number') throw wrongType()
  return value
}

const utf8 = new TextDecoder()

export const text = (value: Wire | undefined) => (value === undefined ? '' : utf8.decode(bytesOf(value)))

export function bytesOf(value: Wire): Uint8Array {
  if (!(value instanceof Uint8Array)) throw wrongType()
  return value
}

const wrongType = () => new Malformed('proto: wrong wireType')
