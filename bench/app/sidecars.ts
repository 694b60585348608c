// The process of all simulated sidecars. It listens on one port of every loopback address; who is meant is told by the address, and
// proved by the certificate from the app's Secret, with mutual TLS 1.3 and without resumption, as the sidecar does it. Its parent
// tells it by messages what to do; times are those of the system's monotonic clock, which all processes share.

import { constants, X509Certificate } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import { type WebSocket, WebSocketServer } from 'ws'
import { connect } from '../api.ts'
import type { Order, Word } from './fleet.ts'
import { type Answer, refused, type Simulated, simulate } from './sidecar.ts'
import { monotonic } from './time.ts'

interface Secret {
  metadata: { name: string }
  data: Record<string, string>
}

const sidecars = new Map<string, Simulated>()
const byName = new Map<string, Simulated>()
const secrets = new Map<string, Record<string, string>>()
const sockets = new Set<WebSocket>()
const upgrades = new WebSocketServer({ noServer: true, perMessageDeflate: false })
const features = { protocol: 1, features: ['adopt', 'annul', 'fence', 'log', 'verify'] }
/** As the sidecar pings, ms. */
const usualPings = 15_000
let pingEvery = usualPings
let pings = 0
let wanted = Number.POSITIVE_INFINITY
let firstUp: number | undefined

const tell = (word: Word) => process.send?.(word)

const server = createServer(
  {
    SNICallback(name, done) {
      try {
        done(null, contextOf(name.slice(0, name.indexOf('.'))))
      } catch (error) {
        done(error as Error)
      }
    },
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
    ALPNProtocols: ['http/1.1'],
    keepAliveTimeout: 65_000,
  },
  (request, response) => void serve(request, response),
)

/** Not kept: ten thousand of them would be most of this process. */
function contextOf(app: string): SecureContext {
  const files = secrets.get(app)
  if (!files) throw new Error(`there is no Secret of ${app}`)
  const { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca } = files
  return createSecureContext({ ...{ cert, key, ca }, minVersion: 'TLSv1.3', secureOptions: constants.SSL_OP_NO_TICKET })
}

/** The sidecar that is meant, if its caller is the controller and means this pod. */
function meant({ socket, headers }: IncomingMessage): Simulated | Answer {
  const peer = (socket as TLSSocket).getPeerX509Certificate?.()
  if (!(peer instanceof X509Certificate) || peer.subjectAltName !== 'DNS:controller.shipmate.dev')
    return refused(403, 'Forbidden')
  const sidecar = sidecars.get(socket.localAddress ?? '')
  if (!sidecar || headers['shipmate-pod-uid'] !== sidecar.pod.uid) return refused(409, 'WrongPod')
  return sidecar
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  const sidecar = meant(request)
  const { status, body } = 'pod' in sidecar ? answer(sidecar, request, Buffer.concat(pieces).toString()) : sidecar
  const text = body === undefined ? undefined : JSON.stringify(body)
  response.writeHead(status, text === undefined ? {} : { 'content-type': 'application/json' }).end(text)
}

function answer(sidecar: Simulated, { method, url = '' }: IncomingMessage, text: string): Answer {
  const [path = ''] = url.split('?')
  const id = decodeURIComponent(/^\/v1\/runs\/([^/]+)$/.exec(path)?.[1] ?? '')
  if (path === '/v1/features') return { status: 200, body: features }
  if (path === '/v1/state') return { status: 200, body: sidecar.state() }
  if (id === '') return refused(404, 'NotFound')
  if (method === 'PUT') return sidecar.put(id, JSON.parse(text))
  return method === 'DELETE' ? sidecar.drop(id) : sidecar.run(id)
}

server.on('upgrade', (request: IncomingMessage, socket: TLSSocket, head: Buffer) => {
  const sidecar = meant(request)
  if (!('pod' in sidecar)) return void socket.destroy()
  upgrades.handleUpgrade(request, socket, head, websocket => follow(sidecar, websocket, request.url ?? ''))
})

function follow(sidecar: Simulated, websocket: WebSocket, url: string): void {
  const cursor = new URL(url, 'ws://sidecar').searchParams.get('since')
  for (const message of sidecar.since(cursor) ?? [sidecar.reset()]) websocket.send(JSON.stringify(message))
  const reader = (text: string) => websocket.send(text)
  sidecar.readers.add(reader)
  sockets.add(websocket)
  firstUp ??= monotonic()
  if (sockets.size >= wanted) {
    wanted = Number.POSITIVE_INFINITY
    tell({ is: 'up', first: firstUp, all: monotonic() })
  }
  websocket.on('error', () => {})
  websocket.on('close', () => {
    sidecar.readers.delete(reader)
    sockets.delete(websocket)
  })
}

// All are pinged in turn, evenly: as many in each slice of time as are due.
let due = 0
let turn = sockets.values()
const slice = 50
setInterval(() => {
  due += (sockets.size * slice) / pingEvery
  for (; due >= 1; due--) {
    let next = turn.next()
    if (next.done) {
      turn = sockets.values()
      next = turn.next()
    }
    next.value?.ping()
    pings++
  }
}, slice)

async function loadSecrets(kubeconfig: string, namespace: string): Promise<void> {
  const api = connect(kubeconfig, 1)
  const path = `/api/v1/namespaces/${namespace}/secrets?labelSelector=app.kubernetes.io/managed-by=shipmate`
  const { items } = await api.request<{ items: Secret[] }>('GET', path)
  for (const { metadata, data } of items) {
    const files = Object.entries(data).map(([file, text]) => [file, Buffer.from(text, 'base64').toString()])
    secrets.set(metadata.name.replace('shipmate-tls-', ''), Object.fromEntries(files))
  }
  await api.close()
}

const orders: { [Do in Order['do']]: (order: Extract<Order, { do: Do }>) => object | Promise<object> } = {
  async listen() {
    await new Promise<void>(resolve => server.listen({ host: '0.0.0.0', port: 0, backlog: 4096 }, resolve))
    return { port: (server.address() as AddressInfo).port }
  },
  async serve({ pods, hash, kubeconfig, namespace }) {
    await loadSecrets(kubeconfig, namespace)
    for (const pod of pods) {
      const sidecar = simulate(pod, hash, () => tell({ is: 'begun', app: pod.app, at: monotonic() }))
      sidecars.set(pod.ip, sidecar)
      byName.set(pod.app, sidecar)
    }
    return { secrets: secrets.size }
  },
  say({ app, state }) {
    const at = monotonic()
    byName.get(app)?.say(state)
    return { at }
  },
  ping({ times }) {
    pingEvery = usualPings / times
    return {}
  },
  count: () => ({
    pings,
    sockets: sockets.size,
    runs: [...sidecars.values()].reduce((sum, one) => sum + one.runs().length, 0),
  }),
  expect({ sockets: count }) {
    wanted = count
    firstUp = undefined
    return {}
  },
}

process.on('message', async (order: Order & { id: number }) => {
  const answer = await (orders[order.do] as (order: Order) => object | Promise<object>)(order)
  tell({ is: 'answer', id: order.id, answer })
})
process.on('disconnect', () => process.exit(0))
