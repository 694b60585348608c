/**
 * A SPDY/3.1 connection from the side that is called: each stream that the other end opens is a Duplex.
 *
 * Guarantees: a stream that nobody reads holds the connection up, so memory is bounded; when the connection is over, so is every stream.
 * There are no windows: Kubernetes' own end neither grants nor heeds any, and one that waited for them would wait forever.
 *
 * Written here: the one library for it, `spdy-transport`, has had no release since 2018, and windows are what it is built on.
 */
import { Duplex } from 'node:stream'
import {
  createFrameReader,
  dataFrame,
  type Frame,
  leavingFrame,
  longestData,
  pingFrame,
  replyFrame,
  resetFrame,
} from './frames.ts'
import { createEmptyHeaders, createHeaderReader } from './headers.ts'

export interface Connection {
  /** Resolves when it is over, whoever ended it. */
  readonly over: Promise<void>
  /** All is said: the other end closes it when it has read that, or it is closed after a while. Closed at once, the last would be lost there. */
  finish(): void
}

/** Milliseconds that the other end has for reading the last. */
const lingering = 10_000

type OnStream = (stream: Duplex, headers: ReadonlyMap<string, string>) => void

export function accept(transport: Duplex, onStream: OnStream): Connection {
  const readFrames = createFrameReader()
  const headers = createHeaderReader()
  const noHeaders = createEmptyHeaders()
  const streams = new Map<number, { readonly stream: Duplex; wake: () => void }>()
  const state = { last: 0, isOver: false }
  const send = (bytes: Buffer, done?: (error?: Error | null) => void) => {
    if (transport.writable) transport.write(bytes, done)
    else done?.(new Error('the connection is closed'))
  }

  function open(id: number): Duplex {
    const entry = { stream: undefined as unknown as Duplex, wake: () => {} }
    entry.stream = new Duplex({
      read: () => entry.wake(),
      write(bytes: Buffer, _encoding, done) {
        for (let at = 0; at + longestData < bytes.length; at += longestData)
          send(dataFrame(id, bytes.subarray(at, at + longestData), false))
        const rest = bytes.length === 0 ? 0 : Math.floor((bytes.length - 1) / longestData) * longestData
        send(dataFrame(id, bytes.subarray(rest), false), done)
      },
      final: done => send(dataFrame(id, Buffer.alloc(0), true), done),
      destroy(error, done) {
        const { readableEnded, writableFinished } = entry.stream
        if (!(readableEnded && writableFinished) && streams.has(id)) send(resetFrame(id))
        streams.delete(id)
        entry.wake()
        done(error)
      },
    })
    // Who uses it may have gone before it fails.
    entry.stream.on('error', () => {})
    streams.set(id, entry)
    return entry.stream
  }

  async function take(frame: Frame): Promise<void> {
    switch (frame.is) {
      case 'open': {
        const given = await headers.read(frame.headers)
        state.last = frame.stream
        const stream = open(frame.stream)
        send(replyFrame(frame.stream, noHeaders()))
        onStream(stream, given)
        if (frame.isLast) stream.push(null)
        return
      }
      case 'headers':
        await headers.read(frame.headers)
        return
      case 'data': {
        const entry = streams.get(frame.stream)
        if (!entry || entry.stream.destroyed) return
        const { stream } = entry
        const hasRoom = frame.bytes.length === 0 || stream.push(frame.bytes)
        if (frame.isLast) stream.push(null)
        else if (!hasRoom && !state.isOver)
          await new Promise<void>(resolve => {
            entry.wake = resolve
          })
        entry.wake = () => {}
        return
      }
      case 'reset': {
        const entry = streams.get(frame.stream)
        streams.delete(frame.stream)
        entry?.stream.destroy()
        return
      }
      case 'ping':
        // Odd ones are the other end's; an even one is an answer.
        if (frame.id % 2 === 1) send(pingFrame(frame.id))
    }
  }

  const end = () => {
    state.isOver = true
    for (const { stream, wake } of streams.values()) {
      wake()
      stream.destroy()
    }
    headers.close()
    transport.destroy()
  }
  transport.on('error', () => {}).once('close', end)
  const over = (async () => {
    try {
      for await (const piece of transport as AsyncIterable<Buffer>)
        for (const frame of readFrames(piece)) await take(frame)
    } catch {
      // It is broken, or what came is no SPDY.
    } finally {
      end()
    }
  })()
  return {
    over,
    finish() {
      const timer = setTimeout(() => transport.end(leavingFrame(state.last)), lingering).unref()
      void over.then(() => clearTimeout(timer))
    },
  }
}
