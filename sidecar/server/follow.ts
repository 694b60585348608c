/**
 * Follows the log of a run for one reader: pieces of text, from an offset to the end of the run.
 *
 * Guarantees: one piece is under way at a time, so a slow reader holds up nothing but itself; no character is cut in two; bytes that the log no
 * longer has are passed over, and the offsets say so.
 */
import type { Agent, LogPiece } from '../api.ts'
import { hasEnded } from './calls.ts'

export interface LogText {
  readonly id: string
  readonly offset: number
  readonly next: number
  readonly text: string
}

export interface FollowOptions {
  readonly agent: Agent
  readonly id: string
  /** Where to begin, in bytes. */
  readonly offset: number
  /** Resolves when the reader has taken it. */
  readonly send: (text: LogText) => Promise<void>
  /** Hears why it ended before the run did. */
  readonly failed: (error: unknown) => void
}

const longest = 64 * 1024

/** Answers how to stop. */
export function followLog({ agent, id, offset, send, failed }: FollowOptions): () => void {
  let next = offset
  let busy = false
  let grown = true
  let active = true

  const piece = async (ended: boolean): Promise<LogPiece> => {
    const first = await agent.log(id, next, longest)
    const whole = wholeCharacters(first.bytes)
    if (whole > 0 || first.bytes.length === 0) return part(first, whole)
    // Nothing but the beginning of a character: what follows decides.
    const second = await agent.log(id, first.next, longest)
    if (second.bytes.length > 0 && second.offset === first.next) {
      const bytes = Buffer.concat([first.bytes, second.bytes])
      return part({ ...first, bytes }, wholeCharacters(bytes))
    }
    const complete = ended || second.bytes.length > 0
    return part(first, complete ? first.bytes.length : 0)
  }

  const pump = async () => {
    while (active && grown) {
      grown = false
      const ended = hasEnded(agent.run(id))
      for (;;) {
        const { bytes, ...place } = await piece(ended)
        if (!active) return
        next = place.next
        if (bytes.length === 0) break
        await send({ id, ...place, text: bytes.toString('utf8') })
        if (!active) return
      }
      if (ended) stop()
    }
  }

  const go = () => {
    grown = true
    if (busy || !active) return
    busy = true
    pump()
      .catch(error => {
        if (active) failed(error)
        stop()
      })
      .finally(() => {
        busy = false
      })
  }

  const unfollow = agent.events.followLog(id, go)
  function stop() {
    active = false
    unfollow()
  }
  go()
  return stop
}

const part = ({ offset, bytes }: LogPiece, length: number): LogPiece => ({
  offset,
  next: offset + length,
  bytes: bytes.subarray(0, length),
})

/** How many of the bytes there are without a character at the end that has only begun. */
export function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if ((byte & 0xc0) === 0x80) continue
    const length =
      byte >= 0xf0 && byte < 0xf8 ? 4 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xc0 && byte < 0xe0 ? 2 : 1
    return length > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}
