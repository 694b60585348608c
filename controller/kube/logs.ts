/**
 * What a container wrote, as bytes or as lines.
 *
 * Guarantees: it is read no faster than it is taken; leaving the loop, or the signal, ends it. Lines come in order and
 * whole, characters too, wherever the network cut them; a line that is too long comes in several, with nothing lost.
 */
import type { Client } from './client.ts'
import type { Ref } from './kind.ts'
import { Pod } from './kinds.ts'

export interface LogOptions {
  /** The container's name. Required unless the pod has one container. */
  readonly container?: string | undefined
  /** Go on with what is written from now on, until the container ends. Default false. */
  readonly follow?: boolean | undefined
  /** The container's last life instead of this one. Default false. */
  readonly previous?: boolean | undefined
  /** Only what is at most so old. */
  readonly sinceSeconds?: number | undefined
  /** Only what is not older: an RFC 3339 time, or a Date. */
  readonly sinceTime?: string | Date | undefined
  /** Only so many lines from the end. Default: all that the node has kept. */
  readonly tailLines?: number | undefined
  /** Each line begins with its RFC 3339 time and a space. Default false. */
  readonly timestamps?: boolean | undefined
  /** No more than so many bytes. */
  readonly limitBytes?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Milliseconds until the server begins to answer; then the log takes its time. Default 30,000. */
  readonly deadline?: number | undefined
}

export interface LogLinesOptions extends LogOptions {
  /** Bytes in one line; the rest of a longer one comes as the next. Default 1 MiB. */
  readonly longestLine?: number | undefined
}

/** The bytes of a container's log. */
export function logs(client: Client, ref: Ref, options: LogOptions = {}): AsyncIterable<Uint8Array> {
  const { container, follow, previous, sinceSeconds, sinceTime, tailLines, timestamps, limitBytes, ...call } = options
  const since = sinceTime instanceof Date ? sinceTime.toISOString() : sinceTime
  const query = { container, follow, previous, sinceSeconds, sinceTime: since, tailLines, timestamps, limitBytes }
  return client.text(Pod, ref, 'log', query, call)
}

/** The lines of a container's log, without their ends. */
export function logLines(client: Client, ref: Ref, options: LogLinesOptions = {}): AsyncIterable<string> {
  return linesOf(logs(client, ref, options), options.longestLine ?? 1 << 20)
}

const newline = 0x0a

/** The lines of a text in pieces. A last line without an end is one too, less a character that is cut at its end. */
export async function* linesOf(
  pieces: AsyncIterable<Uint8Array>,
  longest: number,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let line = ''
  /** Bytes of the line so far, those that wait in the decoder for the rest of a character among them. */
  let length = 0
  for await (const piece of pieces) {
    for (let from = 0; from < piece.length; ) {
      if (length >= longest && piece[from] !== newline) {
        // A character may be cut here: the decoder has kept its beginning for the next line.
        if (line !== '') yield line
        line = ''
        length = 0
      }
      const end = piece.indexOf(newline, from)
      const to = Math.min(end < 0 ? piece.length : end, from + longest - length)
      const isWhole = to === end
      line += decoder.decode(piece.subarray(from, to), { stream: !isWhole })
      length += to - from
      from = to
      if (!isWhole) continue
      yield line
      line = ''
      length = 0
      from++
    }
  }
  if (line !== '') yield line
}
