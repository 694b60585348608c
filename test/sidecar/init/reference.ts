/** Redaction as one would define it, of a whole text: every byte of every occurrence is covered, and what overlaps is one. */
export function redacted(secrets: Buffer[], text: Buffer): Buffer {
  const ends = Array.from(text, (_, at) => {
    const found = secrets.filter(secret => secret.length > 0 && text.subarray(at, at + secret.length).equals(secret))
    return at + Math.max(0, ...found.map(secret => secret.length))
  })
  const out: number[] = []
  let covered = 0
  for (const [at, end] of ends.entries()) {
    if (end > at && at >= covered) out.push(0x2a, 0x2a, 0x2a)
    covered = Math.max(covered, end)
    if (at >= covered) out.push(text[at] ?? 0)
  }
  return Buffer.from(out)
}
