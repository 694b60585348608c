/**
 * Webhooks over HTTPS.
 *
 * Guarantees: a review is answered with its own uid, or refused with a status of HTTP, from which the API server goes by the failure policy; what is too large, too
 * slow or no review reaches no function, and harms no other call. A new certificate counts from the next connection on, and cuts none. On its way down the server goes
 * on for a while, as the API server learns of that late; what is under way is answered.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Pair } from '../../../shared/certificate.ts'
import { type Clock, sleep } from '../../../shared/clock.ts'
import { ShipmateError } from '../../../shared/errors.ts'
import type { Logger } from '../../../shared/log.ts'
import type { Address, Serving } from '../health.ts'
import { admissionAnswer, admissionRequest } from './admission.ts'
import { type Budget, readJson, Unreadable } from './body.ts'
import { conversionAnswer, conversionRequest } from './conversion.ts'
import { type Hook, nameOf } from './hooks.ts'
import type { HookMetrics, Outcome } from './metrics.ts'

export interface ServerOptions extends Address {
  readonly hooks: readonly Hook[]
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: HookMetrics
  /** The most bytes of an AdmissionReview. Default 7 MiB: two objects as large as etcd takes them, with room. */
  readonly maxBody?: number | undefined
  /** The most bytes of a ConversionReview, which has all objects of a list. Default 64 MiB. */
  readonly maxConversion?: number | undefined
  /** Milliseconds for which it goes on once it is to stop. Default 5000. */
  readonly linger?: number | undefined
  /** Aborted when it is to stop. */
  readonly stopping: AbortSignal
}

export interface WebhookServer extends Serving {
  /** For connections from now on. */
  use(pair: Pair): void
}

/** Of a call that does not say how long the API server waits. */
const usualTimeout = 10_000
/** The API server waits no longer for any webhook. */
const longestTimeout = 30_000

const mebibyte = 1024 * 1024

export async function serveWebhooks(options: ServerOptions): Promise<WebhookServer> {
  const { hooks, clock, log, metrics, maxBody = 7 * mebibyte, maxConversion = 64 * mebibyte } = options
  const { linger = 5000, stopping } = options
  const budget: Budget = { held: 0, most: maxConversion * 2 + maxBody * 16 }
  const byPath = new Map(hooks.map(hook => [hook.path, hook]))

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = URL.parse(request.url ?? '/', 'https://localhost')
    const hook = byPath.get(url?.pathname ?? '')
    if (!url || !hook) return reply(response, 404, 'there is no webhook here')
    if (request.method !== 'POST') {
      response.setHeader('allow', 'POST')
      return reply(response, 405, 'only POST')
    }
    const done = metrics.begin(nameOf(hook))
    const call = new AbortController()
    const timer = clock.after(timeoutOf(url), () =>
      call.abort(new ShipmateError('Aborted', 'the webhook was too late', 'later')),
    )
    response.once('close', () =>
      call.abort(new ShipmateError('Aborted', 'nobody waits for the answer any more', 'never')),
    )
    let [outcome, status]: [Outcome, number] = ['failed', 500]
    try {
      const reading = readJson(request, hook.is === 'converting' ? maxConversion : maxBody, budget)
      const said = await inTime(
        reading.then(body => ask(hook, body, call.signal)),
        call.signal,
      )
      ;[outcome, status] = [said.outcome, 200]
      if (said.error !== undefined) log.error({ err: said.error, webhook: nameOf(hook) }, 'a conversion failed')
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said.body))
    } catch (error) {
      ;[outcome, status] = refusalOf(error)
      const level = outcome === 'failed' ? 'error' : 'debug'
      log[level]({ err: error, webhook: nameOf(hook), status }, 'a call of a webhook was not answered')
      reply(response, status, wordsOf(error))
    } finally {
      timer.cancel()
      done(outcome, status)
    }
  }

  const server = createServer({ minVersion: 'TLSv1.2' }, (request, response) => {
    response.on('error', () => undefined)
    connections.begin(request, response)
    answer(request, response).catch(error => log.error({ err: error }, 'a webhook could not be answered'))
  })
  const connections = trackConnections(server)
  server.requestTimeout = longestTimeout
  server.headersTimeout = 10_000
  // The API server keeps its connections for 90 s: it is the one that closes them, so that no call meets a closing one.
  server.keepAliveTimeout = 120_000
  server.maxConnections = 1024
  server.on('tlsClientError', error => log.debug({ err: error }, 'a connection to the webhooks came to nothing'))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port: options.port, host: options.host }, resolve)
  })
  // A connection that cannot be accepted (no more file descriptors) is the caller's loss, not ours.
  server.on('error', () => undefined)
  const { address: host, port } = server.address() as AddressInfo
  let until = Promise.resolve()
  stopping.addEventListener('abort', () => (until = sleep(clock, linger)), { once: true })
  return {
    host,
    port,
    use: ({ cert, key }) => server.setSecureContext({ cert, key, minVersion: 'TLSv1.2' }),
    async close() {
      await until
      await connections.close(clock)
    },
  }
}

interface Said {
  readonly outcome: Outcome
  readonly body: object
  readonly error?: unknown
}

async function ask(hook: Hook, body: unknown, signal: AbortSignal): Promise<Said> {
  if (hook.is === 'converting') return conversionAnswer(conversionRequest(body), hook.convert, signal)
  const request = admissionRequest(body, signal)
  const isMutating = hook.is === 'mutating'
  // The function may change its object in place.
  const before = isMutating ? structuredClone(request.object) : undefined
  return admissionAnswer(request, before, await hook.handle(request), isMutating)
}

/** As the API server says it, for each call: `?timeout=10s`. */
function timeoutOf({ searchParams }: URL): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s)$/.exec(searchParams.get('timeout') ?? '') ?? []
  const asked = number === undefined ? usualTimeout : Number(number) * (unit === 'ms' ? 1 : 1000)
  return Math.min(asked, longestTimeout)
}

/** Not every function heeds its signal: what comes too late is no answer. */
function inTime<R>(work: Promise<R>, signal: AbortSignal): Promise<R> {
  const { promise, reject } = Promise.withResolvers<never>()
  const late = () => reject(signal.reason)
  if (signal.aborted) late()
  signal.addEventListener('abort', late, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', late))
}

function refusalOf(error: unknown): [Outcome, number] {
  if (error instanceof Unreadable) return ['unreadable', error.status]
  return ['failed', error instanceof ShipmateError && error.code === 'Aborted' ? 504 : 500]
}

/** What a stranger may read: of an error that nobody thought of, nothing. */
function wordsOf(error: unknown): string {
  if (error instanceof Unreadable || error instanceof ShipmateError) return error.message
  return 'the webhook failed: the log of its operator says why'
}

function reply(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent || response.destroyed) return
  // What is left of the body is not waited for.
  response.writeHead(status, {
    ...{ 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff', connection: 'close' },
  })
  response.end(`${text}\n`)
}

/** Connections, with what is under way on each. Node would wait for one on which nothing was ever asked, and for the next request of the others. */
function trackConnections(server: Server) {
  const open = new Map<string, { readonly socket: Socket; readonly underWay: Set<ServerResponse> }>()
  let isClosing = false
  server.on('connection', (socket: Socket) => {
    const key = peerOf(socket)
    open.set(key, { socket, underWay: new Set() })
    socket.once('close', () => open.delete(key))
  })
  return {
    begin({ socket }: IncomingMessage, response: ServerResponse): void {
      const underWay = open.get(peerOf(socket))?.underWay
      underWay?.add(response)
      if (isClosing) response.shouldKeepAlive = false
      response.once('close', () => underWay?.delete(response))
    },
    /** What is under way is answered, for as long as the API server would wait for any webhook. */
    close(clock: Clock): Promise<void> {
      isClosing = true
      return new Promise(resolve => {
        const timer = clock.after(longestTimeout, () => {
          for (const { socket } of open.values()) socket.destroy()
        })
        server.close(() => {
          timer.cancel()
          resolve()
        })
        for (const { socket, underWay } of open.values()) {
          if (underWay.size === 0) socket.destroy()
          for (const response of underWay) response.shouldKeepAlive = false
        }
      })
    },
  }
}

/** The same for a connection and for the TLS on it. */
const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
