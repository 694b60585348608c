/**
 * The bytes of a watch as events: JSON objects, one a line.
 *
 * Guarantees: characters split between pieces come out whole; a line may be megabytes long and is copied once; a line that is not an event,
 * or is longer than any object can be, is an error, never a guess.
 */
import { isUtf8 } from 'node:buffer'
import { errorOfStatus, type Status, Unavailable } from './errors.ts'
import type { Live } from './kind.ts'
import type { Target } from './transport.ts'

export type WatchEvent<T extends object = object> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Live<T> }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string; readonly initialEventsEnd: boolean }

/** No object is larger: etcd's own limit is far below. */
const longestLine = 64 << 20
const newline = 0x0a

/** Yields the events of each piece together. Rejects with the server's error when it reports one inside the stream. */
export async function* decodeWatch<T extends object>(
  target: Target,
  chunks: AsyncIterable<Uint8Array>,
  onActivity?: () => void,
): AsyncGenerator<WatchEvent<T>[], void, undefined> {
  let rest: Uint8Array[] = []
  let restLength = 0
  for await (const chunk of chunks) {
    onActivity?.()
    const events: WatchEvent<T>[] = []
    let from = 0
    try {
      for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
        const piece = chunk.subarray(from, at)
        from = at + 1
        const line = restLength === 0 ? piece : Buffer.concat([...rest, piece])
        rest = []
        restLength = 0
        if (line.length > 0) events.push(eventOf<T>(target, line))
      }
    } catch (error) {
      // What came before the bad line is good, and may be the last that is heard of it.
      if (events.length > 0) yield events
      throw error
    }
    if (from < chunk.length) {
      rest.push(chunk.subarray(from))
      restLength += chunk.length - from
    }
    if (events.length > 0) yield events
    if (restLength > longestLine) throw garbled(target, `a line of more than ${longestLine} bytes`)
  }
  // A line without its end is a cut connection's last breath: never complete, so never believed.
}

function eventOf<T extends object>(target: Target, line: Uint8Array): WatchEvent<T> {
  // A broken character would otherwise be replaced, silently, by another.
  if (!isUtf8(line)) throw garbled(target, 'a line that is not UTF-8')
  let event: { type?: string; object?: Live<T> & Status }
  try {
    event = JSON.parse(Buffer.from(line.buffer, line.byteOffset, line.length).toString())
  } catch (error) {
    throw garbled(target, 'a line that is not JSON', error)
  }
  const object = event?.object
  switch (event?.type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      if (!object?.metadata?.name || !object.metadata.resourceVersion)
        throw garbled(target, 'an event without an object')
      return { type: event.type, object }
    case 'BOOKMARK': {
      const resourceVersion = object?.metadata?.resourceVersion
      if (!resourceVersion) throw garbled(target, 'a bookmark without a resourceVersion')
      return {
        type: 'BOOKMARK',
        resourceVersion,
        initialEventsEnd: object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true',
      }
    }
    case 'ERROR':
      throw errorOfStatus(target, object?.code ?? 500, object ?? {})
    default:
      throw garbled(target, `an event of type ${JSON.stringify(event?.type)}`)
  }
}

function garbled(target: Target, what: string, cause?: unknown): Unavailable {
  return new Unavailable('Garbled', target, `${what} in the stream`, { mayHaveActed: false, cause })
}
