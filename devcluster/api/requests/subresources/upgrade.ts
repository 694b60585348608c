/**
 * exec, attach and portforward: a connection that becomes something else. Which protocol is spoken, and who answers in it.
 *
 * By WebSocket, as clients do today; `kubectl port-forward` speaks SPDY inside of one; older clients speak SPDY alone.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { createWebSocketStream, type WebSocket, WebSocketServer } from 'ws'
import { badRequest, methodNotAllowed } from '../../problems.ts'
import type { ApiRequest, Asked } from '../../types.ts'
import { askedOf, attributesOf } from '../asked.ts'
import type { Context } from '../context.ts'
import { checkAllowed } from '../handle.ts'
import { commandOverChannels, forwardOverChannels } from './channels.ts'
import { begin } from './command.ts'
import { portsOf } from './ports.ts'
import { commandOverSpdy } from './spdy/command.ts'
import type { Connection } from './spdy/connection.ts'
import { forwardOverSpdy } from './spdy/forward.ts'

interface Spoken {
  readonly websocket: readonly string[]
  readonly spdy: readonly string[]
}

const forwarding = 'portforward.k8s.io'
const tunnelled = `SPDY/3.1+${forwarding}`
const command: Spoken = { websocket: ['v5.channel.k8s.io', 'v4.channel.k8s.io'], spdy: ['v4.channel.k8s.io'] }
const protocols: Readonly<Record<string, Spoken>> = {
  exec: command,
  attach: command,
  portforward: { websocket: [tunnelled, 'v4.channel.k8s.io'], spdy: [forwarding] },
}

interface Speaker {
  overWebSocket(websocket: WebSocket): void
  overSpdy(transport: Duplex): Connection
}

/** Throws an ApiError while nothing was answered. */
export async function upgrade(
  context: Context,
  request: ApiRequest,
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const attributes = attributesOf(request)
  await checkAllowed(context, request, attributes)
  await checkAllowed(context, request, { ...attributes, verb: 'create' })
  const asked = askedOf(attributes, request, context.resources)
  const spoken = protocols[asked.subresource ?? '']
  if (!spoken) throw methodNotAllowed()
  const isSpdy = (request.headers['upgrade'] ?? '').toLowerCase() === 'spdy/3.1'
  const protocol = isSpdy
    ? chosen(spoken.spdy, request.headers['x-stream-protocol-version'])
    : chosen(spoken.websocket, request.headers['sec-websocket-protocol'])
  const speaker = await speakerOf(context, asked, protocol)
  const endsWith = (stop: () => void) => {
    context.closing.addEventListener('abort', stop, { once: true })
    return () => context.closing.removeEventListener('abort', stop)
  }
  if (isSpdy) {
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: SPDY/3.1']
    socket.write(`${[...lines, `X-Stream-Protocol-Version: ${protocol}`].join('\r\n')}\r\n\r\n`)
    if (head.length > 0) socket.unshift(head)
    const release = endsWith(() => socket.destroy())
    void speaker.overSpdy(socket).over.then(release)
    return
  }
  const server = new WebSocketServer({ noServer: true, handleProtocols: () => protocol, perMessageDeflate: false })
  server.handleUpgrade(incoming, socket, head, websocket => {
    websocket.on('error', () => websocket.terminate())
    websocket.on(
      'close',
      endsWith(() => websocket.terminate()),
    )
    speaker.overWebSocket(websocket)
  })
}

/** The first of ours that the caller knows. */
function chosen(ours: readonly string[], header: string | undefined): string {
  const offered = (header ?? '').split(',').map(name => name.trim())
  const protocol = ours.find(one => offered.includes(one))
  if (protocol !== undefined) return protocol
  throw badRequest(
    `unable to upgrade: unable to negotiate protocol: client supports [${offered.join(' ')}], server accepts [${ours.join(' ')}]`,
  )
}

async function speakerOf(context: Context, asked: Asked, protocol: string): Promise<Speaker> {
  if (asked.subresource !== 'portforward') {
    const begun = await begin(context, asked)
    return {
      overWebSocket: websocket => void commandOverChannels(websocket, protocol, begun),
      overSpdy: transport => commandOverSpdy(transport, begun),
    }
  }
  const ports = portsOf(context, asked)
  // In SPDY each stream says which port it is for; here the request does.
  if (protocol.endsWith('.channel.k8s.io') && ports.named.length === 0)
    throw badRequest('query parameter "ports" is required')
  return {
    overWebSocket(websocket) {
      if (protocol === tunnelled) forwardOverSpdy(createWebSocketStream(websocket), ports)
      else forwardOverChannels(websocket, ports)
    },
    overSpdy: transport => forwardOverSpdy(transport, ports),
  }
}
