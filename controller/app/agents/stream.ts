/**
 * One WebSocket to a sidecar's events. Its features are asked on the same connection, before it becomes a WebSocket: one handshake, not two.
 *
 * Guarantees: `up` comes once, after everything that was missed, or never; `lost` comes once, last, unless we ended it; all of it within the
 * deadline. What is not the protocol ends it. Nothing is buffered here: a message is handled when it comes, or not read from the network yet.
 */
import { type IncomingMessage, request } from 'node:http'
import type { connect, Socket } from 'node:net'
import { WebSocket } from 'ws'
import type { Clock } from '../../../shared/clock.ts'
import { messageOf } from '../../../shared/errors.ts'
import { features } from '../../../shared/protocol/schemas.ts'
import { type PodAddress, serverNameOf } from './address.ts'
import { type Heard, heard, parsed } from './answers.ts'
import type { AgentCredentials } from './credentials.ts'
import { dial } from './dial.ts'

export interface StreamOptions {
  readonly address: PodAddress
  readonly credentials: AgentCredentials
  readonly cursor: string | undefined
  readonly clock: Clock
  /** Milliseconds until it must be up. */
  readonly deadline: number
  up(features: readonly string[]): void
  heard(message: Heard): void
  lost(error: string): void
}

export interface Stream {
  /** When anything came last, on the monotonic clock. */
  readonly lastHeard: number
  /** As if the connection had broken, for this reason. */
  cut(why: string): void
  /** Ends it without a word. */
  end(): void
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>
}

/** What a sidecar may say in one message: a snapshot of all its runs is the longest. */
const longestMessage = 16 << 20
/** What it may say about its features, or about a refusal. */
const longestAnswer = 64 << 10

export function openStream(options: StreamOptions): Stream {
  const { address, clock, deadline } = options
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  const stop = new AbortController()
  let lastHeard = clock.monotonic()
  let isOver = false
  let socket: Socket | undefined
  let websocket: WebSocket | undefined

  const finish = (error?: string) => {
    if (isOver) return
    isOver = true
    timer.cancel()
    stop.abort(new Error('the connection is no longer wanted'))
    websocket?.terminate()
    if (socket && !socket.destroyed) socket.destroy()
    if (!socket || socket.closed) close()
    if (error !== undefined) options.lost(error)
  }
  const timer = clock.after(deadline, () => finish(`not up within ${deadline} ms`))

  const open = async () => {
    const connection = await dial(address, options.credentials, stop.signal)
    socket = connection
    connection.once('close', () => close())
    // Whoever reads it says why it ended; in between nobody does.
    connection.on('error', error => finish(messageOf(error)))
    connection.on('close', () => finish('the connection was closed'))
    if (isOver) return void connection.destroy()
    const offered = await askFeatures(connection, address)
    if (isOver) return
    websocket = upgrade(connection, options)
    const hear = () => {
      lastHeard = clock.monotonic()
    }
    websocket.on('error', error => finish(messageOf(error)))
    websocket.on('close', (code, reason) =>
      finish(`it closed the connection (${code}${reason.length ? ` ${reason}` : ''})`),
    )
    websocket.on('unexpected-response', async (_request, answer) => finish(await refusal(answer)))
    websocket.on('ping', hear)
    websocket.on('message', data => {
      hear()
      if (isOver) return
      try {
        options.heard(heard(String(data)))
      } catch (error) {
        finish(`Garbled: a message is not understood: ${messageOf(error)}`)
      }
    })
    // What was missed is sent at once, so an answer to this comes after it.
    websocket.once('open', () => websocket?.ping())
    websocket.once('pong', () => {
      hear()
      if (isOver) return
      timer.cancel()
      options.up(offered)
    })
  }
  open().catch(error => finish(messageOf(error)))

  return {
    get lastHeard() {
      return lastHeard
    },
    cut: finish,
    end: () => finish(),
    closed,
  }
}

export const podHeader = 'shipmate-pod-uid'

function upgrade(socket: Socket, { address, cursor }: StreamOptions): WebSocket {
  const query = cursor === undefined ? '' : `?${new URLSearchParams({ since: cursor })}`
  // The connection is encrypted already, so this is `ws` to who speaks on it.
  return new WebSocket(`ws://${serverNameOf(address.app)}/v1/events${query}`, {
    createConnection: (() => socket) as typeof connect,
    headers: { [podHeader]: address.pod.uid },
    perMessageDeflate: false,
    maxPayload: longestMessage,
  })
}

/** A sidecar that has no such route has no features. Resolves when the connection is free for something else. */
async function askFeatures(socket: Socket, { app, pod }: PodAddress): Promise<readonly string[]> {
  const asked = request({
    createConnection: () => socket,
    path: '/v1/features',
    headers: { host: serverNameOf(app), connection: 'keep-alive', [podHeader]: pod.uid },
  })
  const free = Promise.withResolvers<void>()
  const came = Promise.withResolvers<IncomingMessage>()
  asked.once('response', came.resolve)
  asked.once('error', came.reject)
  asked.once('close', () => {
    free.resolve()
    came.reject(new Error('the connection was closed'))
  })
  asked.end()
  const answer = await came.promise
  if (answer.statusCode !== 200 && answer.statusCode !== 404) throw new Error(await refusal(answer))
  const text = await textOf(answer)
  await free.promise
  return answer.statusCode === 404 ? [] : parsed(features, text).features
}

/** In words: the sidecar's code and detail, where it has them. */
async function refusal(answer: IncomingMessage): Promise<string> {
  const text = await textOf(answer).catch(messageOf)
  try {
    const { code, detail } = JSON.parse(text)
    if (typeof code === 'string') return `${code}: ${detail}`
  } catch {
    // Not a sidecar's words.
  }
  return `Garbled: HTTP status ${answer.statusCode}`
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of answer as AsyncIterable<Buffer>) {
    length += piece.length
    if (length > longestAnswer) throw new Error('Garbled: the answer is too long')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}
