/**
 * DER, as far as a certificate needs it: a tag, a length, a value. It writes and never reads: what others wrote is read by OpenSSL.
 */
export function tlv(tag: number, value: Uint8Array): Buffer {
  const { length } = value
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), value])
  const bytes: number[] = []
  for (let left = length; left > 0; left = Math.floor(left / 256)) bytes.unshift(left % 256)
  return Buffer.concat([Buffer.from([tag, 0x80 | bytes.length, ...bytes]), value])
}

export const sequence = (...parts: Uint8Array[]) => tlv(0x30, Buffer.concat(parts))
export const set = (...parts: Uint8Array[]) => tlv(0x31, Buffer.concat(parts))
export const octets = (value: Uint8Array) => tlv(0x04, value)
export const utf8 = (text: string) => tlv(0x0c, Buffer.from(text, 'utf8'))
export const yes = tlv(0x01, Buffer.from([0xff]))

/** @param unused how many of the last bits do not count */
export const bits = (value: Uint8Array, unused = 0) => tlv(0x03, Buffer.concat([Buffer.from([unused]), value]))

/** A positive one, its bytes in the order of the network. */
export function integer(value: Uint8Array): Buffer {
  const first = value.findIndex(byte => byte !== 0)
  const digits = first < 0 ? Buffer.from([0]) : value.subarray(first)
  return tlv(0x02, (digits[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.from([0]), digits]) : digits)
}

/** In whole seconds. The two ways to write it are the standard's: one until 2049, the other from then on. */
export function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\.\d+/, '').replace(/\D/g, '')
  const isNear = digits < '2050'
  return tlv(isNear ? 0x17 : 0x18, Buffer.from(`${isNear ? digits.slice(2) : digits}Z`, 'latin1'))
}

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const bytes: number[] = []
  for (const part of [first * 40 + second, ...rest]) {
    const groups = [part & 0x7f]
    for (let left = part >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80)
    bytes.push(...groups)
  }
  return tlv(0x06, Buffer.from(bytes))
}
