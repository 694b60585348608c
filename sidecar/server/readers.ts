/**
 * The readers of `/v1/events`: each gets every message from its cursor on, or a reset and what follows.
 *
 * Guarantees: between what is replayed and what follows nothing is lost and nothing twice; a message is written as JSON once, however many
 * read; a reader that does not keep up, or does not answer two pings, is cut off and the others notice nothing.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket, WebSocketServer } from 'ws'
import type { Clock, Timer } from '../../shared/clock.ts'
import type { Logger } from '../../shared/log.ts'
import { Problem } from '../../shared/protocol/problems.ts'
import type { Query } from '../../shared/protocol/routes.ts'
import type { Message } from '../../shared/protocol/schemas.ts'
import type { Agent } from '../api.ts'
import { refuseRaw } from './answer.ts'
import { followLog } from './follow.ts'

export interface ReadersOptions {
  readonly agent: Agent
  readonly clock: Clock
  readonly log: Logger
  /** How much may wait for one reader, in bytes, before it is cut off. Default 1 MiB. */
  readonly longestBacklog?: number | undefined
}

export interface Readers {
  /** Upgrades the connection and begins. */
  accept(request: IncomingMessage, connection: Duplex, head: Buffer, query: Query): Promise<void>
  readonly count: number
  /** Sends all away; resolves when they are gone. */
  close(): Promise<void>
}

interface Reader {
  readonly socket: WebSocket
  /** What a snapshot adds to the backlog until it is through. */
  allowance: number
  answered: boolean
  stop: () => void
}

const pingEvery = 15_000
/** How long one that is sent away has to say goodbye. */
const farewell = 2_000
/** Readers have nothing to say. */
const longestIncoming = 1024

export function createReaders({ agent, clock, log, longestBacklog = 1024 * 1024 }: ReadersOptions): Readers {
  const readers = new Set<Reader>()
  const leaving = new Set<WebSocket>()
  let server: WebSocketServer | undefined
  let unsubscribe = () => {}
  let timer: Timer | undefined
  let closing = false
  let emptied: (() => void) | undefined

  const send = (reader: Reader, bytes: Buffer, sent?: (error?: Error | null) => void) => {
    if (reader.socket.bufferedAmount > longestBacklog + reader.allowance) {
      log.warn({ backlog: reader.socket.bufferedAmount }, 'a reader of events was too slow and is cut off')
      return sendAway(reader, 1013, 'too slow')
    }
    reader.socket.send(bytes, { binary: false }, sent)
  }

  const broadcast = (message: Message) => {
    const bytes = Buffer.from(JSON.stringify(message))
    for (const reader of [...readers]) send(reader, bytes)
  }

  const beat = () => {
    for (const reader of [...readers]) {
      if (!reader.answered) {
        reader.socket.terminate()
        continue
      }
      reader.answered = false
      reader.socket.ping()
    }
    timer = clock.after(pingEvery, beat)
  }

  const forget = (reader: Reader) => {
    if (!readers.delete(reader)) return
    reader.stop()
    if (readers.size > 0) return
    unsubscribe()
    timer?.cancel()
  }

  const sendAway = (reader: Reader, code: number, reason: string) => {
    const { socket } = reader
    forget(reader)
    leaving.add(socket)
    const patience = clock.after(farewell, () => socket.terminate())
    socket.once('close', () => patience.cancel())
    socket.close(code, reason)
  }

  const begin = (socket: WebSocket, { since, log: id, offset = 0 }: Query) => {
    const reader: Reader = { socket, allowance: 0, answered: true, stop: () => {} }
    socket.on('pong', () => {
      reader.answered = true
    })
    socket.on('error', () => socket.terminate())
    socket.on('close', () => {
      forget(reader)
      leaving.delete(socket)
      if (closing && readers.size + leaving.size === 0) emptied?.()
    })
    if (readers.size === 0) {
      unsubscribe = agent.events.subscribe(broadcast)
      timer = clock.after(pingEvery, beat)
    }
    readers.add(reader)
    if (closing) return sendAway(reader, 1001, 'the sidecar is stopping')
    const missed = since === undefined ? undefined : agent.events.since(since)
    const first: Message[] = missed ?? [resetOf(agent, clock)]
    for (const message of first) {
      const bytes = Buffer.from(JSON.stringify(message))
      reader.allowance += bytes.length
      send(reader, bytes, () => {
        reader.allowance -= bytes.length
      })
    }
    if (id !== undefined) reader.stop = followLog({ agent, id, offset, send: text => sendLog(reader, text), failed })
  }

  const sendLog = (reader: Reader, text: object) =>
    new Promise<void>((resolve, reject) => {
      const { seq, cursor } = agent.events
      const message = { seq, cursor, at: timeOf(clock), type: 'log', ...text }
      const bytes = Buffer.from(JSON.stringify(message))
      reader.allowance += bytes.length
      send(reader, bytes, error => {
        reader.allowance -= bytes.length
        if (error) reject(error)
        else resolve()
      })
    })

  // The run was dropped, or the reader left: neither is worth more than a line for who looks closely.
  const failed = (error: unknown) => log.debug({ err: error }, 'a log is not followed any longer')

  return {
    async accept(request, connection, head, query) {
      // Loaded with the first reader: it brings TLS and zlib with it.
      const { WebSocketServer } = await import('ws')
      if (!server) {
        server = new WebSocketServer({
          noServer: true,
          clientTracking: false,
          perMessageDeflate: false,
          maxPayload: longestIncoming,
        })
        server.on('wsClientError', (error: Error, socket: Duplex) =>
          refuseRaw(socket, 400, 'Bad Request', new Problem('InvalidBody', `This is no WebSocket: ${error.message}.`)),
        )
      }
      server.handleUpgrade(request, connection, head, socket => begin(socket, query))
    },
    get count() {
      return readers.size
    },
    close() {
      closing = true
      for (const reader of [...readers]) sendAway(reader, 1001, 'the sidecar is stopping')
      if (leaving.size === 0) return Promise.resolve()
      return new Promise(resolve => {
        emptied = resolve
      })
    },
  }
}

const timeOf = (clock: Clock) => new Date(clock.now()).toISOString()

function resetOf(agent: Agent, clock: Clock): Message {
  const { seq, cursor } = agent.events
  return { seq, cursor, at: timeOf(clock), type: 'reset', state: agent.state(), runs: agent.runs() }
}
