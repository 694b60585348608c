/**
 * A server under mTLS in the place of a sidecar, which says what a test tells it to.
 */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { onTestFinished } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import type { PodState, Run } from '../../../shared/protocol/schemas.ts'
import { type Authorities, addressOf, serverOf } from './rig.ts'

export const stateOf = (seq: number, more: Partial<PodState> = {}): PodState => ({
  ...{ state: 'Running', since: new Date(0).toISOString(), reason: 'GuardHolds', role: null, probes: {}, run: null },
  ...{ pod: { name: 'orders-0', namespace: 'shop', uid: 'pod-uid' }, configHash: 'h', journalId: 'j', fence: 0 },
  ...{ bootId: 'b', seq, cursor: `b.${seq}`, version: '0.1.0' },
  ...more,
})

export const numbered = (seq: number) => ({ seq, cursor: `b.${seq}`, at: new Date(0).toISOString() })
export const reset = (seq: number, runs: Run[] = []) => ({ ...numbered(seq), type: 'reset', state: stateOf(seq), runs })

export interface StandIn {
  readonly address: ReturnType<typeof addressOf>
  /** The cursor of each reader that came. */
  readonly cursors: (string | null)[]
}

export interface StandInOptions {
  /** A reader of events; the first has number 1. */
  readonly read?: (socket: WebSocket, number: number) => void
  /** Every other request but that for features. */
  readonly answer?: (request: IncomingMessage, response: ServerResponse) => void
  readonly features?: object
}

export async function standIn(trust: Authorities, options: StandInOptions): Promise<StandIn> {
  const { features = { protocol: 1, features: ['adopt'] } } = options
  const { cert, key } = serverOf(trust)
  const cursors: (string | null)[] = []
  const websockets = new WebSocketServer({ noServer: true })
  const server = createServer({ cert, key, ca: trust.authority.cert, requestCert: true }, (request, response) => {
    if (request.url === '/v1/features') return void response.end(JSON.stringify(features))
    options.answer?.(request, response)
  })
  server.on('upgrade', (request, socket, head) =>
    websockets.handleUpgrade(request, socket, head, reader => {
      cursors.push(new URL(request.url ?? '', 'http://x').searchParams.get('since'))
      reader.on('error', () => {})
      options.read?.(reader, cursors.length)
    }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const reader of websockets.clients) reader.terminate()
    server.closeAllConnections()
    server.close()
  })
  return { address: addressOf((server.address() as { port: number }).port), cursors }
}

export const say = (socket: WebSocket, ...messages: object[]) => {
  for (const message of messages) socket.send(JSON.stringify(message))
}
