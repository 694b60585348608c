/**
 * The last bytes of a stream, as text, in bounded memory. A character that is cut at the beginning is left out.
 */
export function tail(most: number) {
  let kept = Buffer.alloc(0)
  let isCut = false
  return {
    add(piece: Uint8Array): void {
      isCut ||= kept.length + piece.length > most
      kept = Buffer.concat([kept, piece.subarray(-most)]).subarray(-most)
    },
    text(): string {
      let start = 0
      while (isCut && start < kept.length && ((kept[start] ?? 0) & 0xc0) === 0x80) start++
      return `${isCut ? '…' : ''}${new TextDecoder().decode(kept.subarray(start))}`
    },
  }
}
