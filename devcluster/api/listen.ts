/**
 * The API server on a port of this machine: HTTPS with certificates of its own, for kubectl and any client.
 *
 * Guarantees: nobody without a certificate or token of this cluster is more than anonymous. Closing ends every connection.
 */
import { randomBytes } from 'node:crypto'
import { chmod, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import type { Pair } from '../../shared/certificate.ts'
import { createAuthority } from './certificates.ts'
import { impersonated, type Subject, userOf } from './identity.ts'
import { kubeconfigText } from './kubeconfig.ts'
import { ApiError, internal, tooLarge } from './problems.ts'
import { statusAnswer } from './requests/answer.ts'
import { admin } from './send.ts'
import type { Api } from './server.ts'
import type { ApiRequest, ApiResponse, User } from './types.ts'

export interface ListenOptions {
  /** Default 0: any that is free. */
  readonly port?: number | undefined
  /** Default 127.0.0.1: this machine alone. */
  readonly host?: string | undefined
}

export interface Listening extends AsyncDisposable {
  readonly url: string
  /** The authority's certificate, PEM. */
  readonly ca: string
  /** A token that may everything. */
  readonly adminToken: string
  /** A certificate of this cluster for a person. */
  certificate(user: User): Pair
  /** For kubectl and others, as YAML. Default: for one who may everything. */
  kubeconfig(user?: User): string
  /** Writes it for its owner alone. */
  writeKubeconfig(path: string, user?: User): Promise<void>
  close(): Promise<void>
}

const bodyLimit = 3 << 20
/** Why a request's signal aborts, each of them: a reason of its own would be made anew, with a stack. */
const over = new Error('the connection is closed, or the answer sent')
/** Shorter answers are not worth the work. */
const worthZipping = 128 << 10

export async function listen(api: Api, { port = 0, host = '127.0.0.1' }: ListenOptions = {}): Promise<Listening> {
  const authority = createAuthority(api.clock.now())
  const own = authority.server(
    ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local'],
    [...new Set(['127.0.0.1', '::1', ...(/^[\d.]+$/.test(host) ? [host] : [])])],
  )
  const adminToken = randomBytes(24).toString('base64url')
  const tokens = new Map([[adminToken, admin]])
  const server = createServer({
    ...own,
    ca: authority.cert,
    requestCert: true,
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
    keepAliveTimeout: 90_000,
    requestTimeout: 0,
    noDelay: true,
  })
  const received = async (incoming: IncomingMessage, body: Uint8Array, signal: AbortSignal): Promise<ApiRequest> => {
    const user = userOf(api, incoming.headers, subjectOf(incoming.socket as TLSSocket), tokens)
    const target = incoming.url ?? '/'
    const at = target.indexOf('?')
    return {
      method: incoming.method ?? 'GET',
      path: at < 0 ? target : target.slice(0, at),
      query: new URLSearchParams(at < 0 ? '' : target.slice(at + 1)),
      headers: incoming.headers as ApiRequest['headers'],
      body,
      user: await impersonated(api, user, incoming.headers),
      signal,
    }
  }
  const refusal = (error: unknown) =>
    statusAnswer((error instanceof ApiError ? error : internal((error as Error).message)).status)

  server.on('request', async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const stop = new AbortController()
    outgoing.on('close', () => stop.abort(over))
    try {
      let response: ApiResponse
      try {
        response = await api.handle(await received(incoming, await bodyOf(incoming), stop.signal))
      } catch (error) {
        response = refusal(error)
      }
      await send(outgoing, response, incoming.headers['accept-encoding'])
    } catch {
      outgoing.destroy()
    }
  })
  server.on('upgrade', async (incoming, socket, head) => {
    const stop = new AbortController()
    socket.on('error', () => {}).on('close', () => stop.abort())
    try {
      await api.upgrade(await received(incoming, new Uint8Array(), stop.signal), incoming, socket, head)
    } catch (error) {
      const { status, body } = refusal(error)
      socket.end(
        `HTTP/1.1 ${status} Refused\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body as string)}\r\n\r\n${body}`,
      )
    }
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const { port: taken } = server.address() as AddressInfo
  const url = `https://${host.includes(':') ? `[${host}]` : host}:${taken}`
  const upgraded = new Set<import('node:stream').Duplex>()
  server.on('upgrade', (_incoming, socket) => {
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
  })

  const certificate = (user: User) =>
    authority.client(
      user.name,
      user.groups.filter(group => group !== 'system:authenticated'),
    )
  const kubeconfig = (user: User = admin) =>
    kubeconfigText({ url, ca: authority.cert, name: user.name, ...certificate(user) })
  async function close(): Promise<void> {
    const closed = new Promise<void>(resolve => server.close(() => resolve()))
    server.closeAllConnections()
    for (const socket of upgraded) socket.destroy()
    await closed
  }
  return {
    url,
    ca: authority.cert,
    adminToken,
    certificate,
    kubeconfig,
    async writeKubeconfig(path, user) {
      await writeFile(path, kubeconfig(user), { mode: 0o600 })
      await chmod(path, 0o600)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Of a connection, once: to read a certificate takes longer than many a request. */
const subjects = new WeakMap<TLSSocket, { subject: Subject | undefined }>()

function subjectOf(socket: TLSSocket): Subject | undefined {
  const known = subjects.get(socket)
  if (known) return known.subject
  const subject = socket.authorized ? (socket.getPeerCertificate().subject as Subject | undefined) : undefined
  subjects.set(socket, { subject })
  return subject
}

async function bodyOf(incoming: IncomingMessage): Promise<Uint8Array> {
  const { method } = incoming
  if (method === 'GET' || method === 'HEAD') return new Uint8Array()
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of incoming as AsyncIterable<Buffer>) {
    length += piece.length
    if (length > bodyLimit) throw tooLarge(bodyLimit)
    pieces.push(piece)
  }
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
}

async function send(
  outgoing: ServerResponse,
  response: ApiResponse,
  accepts: string | string[] | undefined,
): Promise<void> {
  const { status, headers, body } = response
  if (typeof body === 'string' || body instanceof Uint8Array) {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const isZipped = bytes.byteLength > worthZipping && String(accepts ?? '').includes('gzip')
    const sent = isZipped ? gzipSync(bytes, { level: 1 }) : bytes
    outgoing.writeHead(status, {
      ...headers,
      ...(isZipped ? { 'content-encoding': 'gzip', vary: 'Accept-Encoding' } : {}),
      'content-length': sent.byteLength,
    })
    outgoing.end(sent)
    return
  }
  outgoing.writeHead(status, headers)
  outgoing.flushHeaders()
  for await (const piece of body) {
    if (outgoing.destroyed) return
    const mayGoOn = outgoing.write(piece)
    // At once: the first of many watchers is not to wait until all are written to.
    outgoing.socket?.uncork()
    if (mayGoOn) continue
    await new Promise<void>(resolve => {
      const go = () => {
        outgoing.off('drain', go).off('close', go)
        resolve()
      }
      outgoing.on('drain', go).on('close', go)
    })
  }
  outgoing.end()
}
