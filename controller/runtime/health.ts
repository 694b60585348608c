/**
 * /healthz, /readyz, /metrics and /log-level over HTTP, or HTTPS.
 *
 * Guarantees: an answer never waits for anything but the checks themselves, and metrics for who may read them; a check that throws is a check that failed;
 * the log level can be changed from the same machine (or pod) only. Nothing else is served.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { messageOf } from '../../shared/errors.ts'
import { type Level, type Log, levels } from '../../shared/log.ts'
import type { Callers } from './callers.ts'

/** Undefined where all is well, else what is wrong, for a person. */
export type Check = () => string | undefined

export interface Checks {
  readonly [name: string]: Check
}

export interface Served {
  /** Whether the process should go on: liveness. */
  readonly health?: (() => Checks) | undefined
  /** Whether it is of use: readiness. */
  readonly ready?: (() => Checks) | undefined
  readonly metrics?: { metrics(): Promise<string>; contentType: string } | undefined
  /** Who may read metrics. Default: anybody. */
  readonly callers?: Callers | undefined
  readonly log?: Log | undefined
}

export interface Address {
  /** Default: every address of the machine, IPv6 and IPv4. */
  readonly host?: string | undefined
  /** 0: the system chooses. */
  readonly port: number
  /** The certificate and key, PEM, by which it is served over HTTPS. Default: over HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
}

export interface Serving {
  readonly host: string
  readonly port: number
  close(): Promise<void>
}

export async function serve(served: Served, address: Address): Promise<Serving> {
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    answer(served, request, response).catch(error => reply(response, 500, messageOf(error)))
  }
  const { tls } = address
  const server = tls ? createSecureServer({ ...tls, minVersion: 'TLSv1.2' }, listener) : createServer(listener)
  server.requestTimeout = 10_000
  server.headersTimeout = 10_000
  server.maxConnections = 256
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port: address.port, host: address.host }, resolve)
  })
  // A connection that cannot be accepted (no more file descriptors) is the caller's loss, not ours.
  server.on('error', () => undefined)
  const { address: host, port } = server.address() as AddressInfo
  return { host, port, close: () => close(server) }
}

async function answer(served: Served, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = URL.parse(request.url ?? '/', 'http://localhost')
  if (!url) return reply(response, 400, 'not a URL')
  const [, first, second] = url.pathname.split('/')
  if (url.pathname === '/log-level' && served.log) return logLevel(served.log, request, response)
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    return reply(response, 405, 'only GET')
  }
  if (first === 'healthz' && served.health)
    return checks('healthz', served.health(), second, url.searchParams.has('verbose'), response)
  if (first === 'readyz' && served.ready)
    return checks('readyz', served.ready(), second, url.searchParams.has('verbose'), response)
  if (url.pathname === '/metrics' && served.metrics) {
    const refusal = await served.callers?.(request.headers.authorization, url.pathname)
    if (refusal) {
      if (refusal.status === 401) response.setHeader('www-authenticate', 'Bearer')
      return reply(response, refusal.status, refusal.why)
    }
    const text = await served.metrics.metrics()
    response.setHeader('content-type', served.metrics.contentType)
    response.end(text)
    return
  }
  reply(response, 404, 'not here')
}

/** As Kubernetes' own components answer: `ok`, or a line a check. `/readyz/NAME` asks for one. */
function checks(name: string, all: Checks, only: string | undefined, verbose: boolean, response: ServerResponse): void {
  const chosen = only ? Object.entries(all).filter(([check]) => check === only) : Object.entries(all)
  if (only && chosen.length === 0) return reply(response, 404, `no check "${only}"`)
  const results = chosen.map(([check, run]) => [check, attempt(run)] as const)
  const failed = results.some(([, wrong]) => wrong !== undefined)
  if (!failed && !verbose) return reply(response, 200, 'ok')
  const lines = results.map(([check, wrong]) =>
    wrong === undefined ? `[+]${check} ok` : `[-]${check} failed: ${wrong}`,
  )
  reply(response, failed ? 500 : 200, [...lines, `${name} check ${failed ? 'failed' : 'passed'}`].join('\n'))
}

function attempt(check: Check): string | undefined {
  try {
    return check()
  } catch (error) {
    return messageOf(error)
  }
}

async function logLevel(log: Log, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const from = request.socket.remoteAddress ?? ''
  if (!/^(127\.|::1$|::ffff:127\.)/.test(from)) return reply(response, 403, 'only from the same machine')
  if (request.method === 'GET') return reply(response, 200, log.level)
  if (request.method !== 'PUT') {
    response.setHeader('allow', 'GET, PUT')
    return reply(response, 405, 'only GET and PUT')
  }
  let text = ''
  // Too much is read to its end all the same: leaving would cut the connection before the answer.
  for await (const chunk of request) if (text.length <= 64) text += chunk
  const level = text.trim().slice(0, 64)
  if (!levels.includes(level as Level))
    return reply(response, 400, `"${level}" is no log level; there are ${levels.join(', ')}`)
  log.level = level as Level
  reply(response, 200, level)
}

function reply(response: ServerResponse, status: number, text: string): void {
  if (!response.headersSent)
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' })
  response.end(`${text}\n`)
}

function close(server: Server): Promise<void> {
  return new Promise(resolve => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
