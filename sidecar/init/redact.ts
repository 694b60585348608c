/**
 * Redaction of a stream: each occurrence of a secret becomes `***`; occurrences that overlap become one. The same rule as redact.c.
 *
 * Guarantee: no byte of an occurrence is ever shown, wherever the chunks were cut. What may be the beginning of a secret is held back until
 * it is decided.
 */
export interface Redactor {
  /** What of the stream is decided by this chunk. It may share memory with the chunk. */
  push(chunk: Buffer): Buffer
  /** What was held back. The redactor then begins anew. */
  end(): Buffer
}

const mask = Buffer.from('***')
const nothing = Buffer.alloc(0)

/** @param secrets empty ones are ignored */
export function createRedactor(secrets: readonly Buffer[]): Redactor {
  const sought = secrets.filter(secret => secret.length > 0)
  const isFirst = new Uint8Array(256)
  for (const secret of sought) isFirst[secret[0] ?? 0] = 1
  let held: Buffer = nothing
  /** Bytes at the front of `held` that belong to an occurrence whose mask is out. */
  let covered = 0

  /** The longest secret that begins at `at`, or 0; -1 if what follows may make it a longer one. */
  function match(text: Buffer, at: number, isEnd: boolean): number {
    let longest = 0
    for (const secret of sought) {
      if (secret.length <= longest) continue
      const end = Math.min(at + secret.length, text.length)
      if (text.compare(secret, 0, end - at, at, end) !== 0) continue
      if (end - at === secret.length) longest = secret.length
      else if (!isEnd) return -1
    }
    return longest
  }

  function redact(chunk: Buffer, isEnd: boolean): Buffer {
    if (sought.length === 0) return chunk
    const text = held.length > 0 ? Buffer.concat([held, chunk]) : chunk
    const pieces: Buffer[] = []
    let shown = covered
    let at = 0
    for (; at < text.length; at++) {
      if (isFirst[text[at] ?? 0] === 0) continue
      const found = match(text, at, isEnd)
      if (found < 0) break
      if (found === 0) continue
      if (at >= shown) pieces.push(text.subarray(shown, at), mask)
      shown = Math.max(shown, at + found)
    }
    if (at > shown) pieces.push(text.subarray(shown, at))
    covered = Math.max(shown - at, 0)
    // Copied: a few bytes must not keep a whole chunk in memory.
    held = at < text.length ? Buffer.from(text.subarray(at)) : nothing
    return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces)
  }

  return { push: chunk => redact(chunk, false), end: () => redact(nothing, true) }
}
