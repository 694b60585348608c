/**
 * Text that arrives in pieces, of which the beginning is kept.
 *
 * Guarantee: never holds more than `limit` bytes, whatever is added; the text never ends within a character.
 */
export interface Bounded {
  add(piece: Buffer): void
  /** What was kept, as UTF-8; what is no UTF-8 is shown as U+FFFD. */
  text(): string
  /** How many bytes were added and not kept. */
  readonly dropped: number
}

export function bounded(limit: number): Bounded {
  const pieces: Buffer[] = []
  let kept = 0
  let dropped = 0
  return {
    add(piece) {
      const room = limit - kept
      if (piece.length <= room) {
        pieces.push(piece)
        kept += piece.length
        return
      }
      // A copy, as a slice would hold on to the whole piece.
      if (room > 0) pieces.push(Buffer.from(piece.subarray(0, room)))
      kept += room
      dropped += piece.length - room
    },
    text() {
      const first = pieces[0]
      if (!first) return ''
      const all = pieces.length === 1 ? first : Buffer.concat(pieces, kept)
      return (dropped > 0 ? withoutHalf(all) : all).toString('utf8')
    },
    get dropped() {
      return dropped
    },
  }
}

/** Bytes without the character at their end of which the rest is missing. */
function withoutHalf(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return bytes
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return length > back ? bytes.subarray(0, bytes.length - back) : bytes
    }
  }
  return bytes
}

/** `text` as at most `limit` bytes of UTF-8; ends with `… (cut)` if something is missing, be it `more` bytes that were dropped before. */
export function cutTo(text: string, limit: number, more = 0): string {
  // No character has more than three bytes for each of its UTF-16 units, so short texts need no count.
  if (more === 0 && (text.length * 3 <= limit || Buffer.byteLength(text) <= limit)) return text
  const mark = '… (cut)'
  const head = bounded(limit - Buffer.byteLength(mark))
  head.add(Buffer.from(text))
  return head.text() + mark
}
