/**
 * The exchange itself, on undici: short calls share a pool of kept-alive connections, each stream has one of its own.
 *
 * Guarantees: HTTP/1.1, so that a stuck stream holds up nobody. Every call ends by its deadline or its signal. When credentials need other
 * connections, new calls use new ones and those under way finish on the old. An error says whether the server may have acted.
 */
import { gunzip } from 'node:zlib'
import { buildConnector, type Dispatcher, errors, Pool, ProxyAgent } from 'undici'
import { type Clock, systemClock, type Timer } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import { Chunks } from './chunks.ts'
import { Aborted, Unavailable } from './errors.ts'
import { type Credentials, sameConnection } from './kubeconfig.ts'
import { type Request, type Response, timeFor } from './transport.ts'

export interface ConnectionOptions {
  /** How many short calls may be under way at once; more wait. Default 32. */
  readonly connections?: number | undefined
  /** Milliseconds to reach the server. Default 10,000. */
  readonly connectTimeout?: number | undefined
  /** The deadline of calls that name none, in milliseconds. Default 30,000. */
  readonly deadline?: number | undefined
  readonly clock?: Clock | undefined
}

export interface Connection {
  send(request: Request, credentials: Credentials): Promise<Response>
  /** Ends every call under way and closes every connection. */
  close(): Promise<void>
}

interface Pools {
  readonly credentials: Credentials
  readonly origin: string
  /** What a server's URL has before /api: behind some proxies. */
  readonly prefix: string
  readonly calls: Dispatcher
  readonly streams: Dispatcher
}

export function createConnection(options: ConnectionOptions = {}): Connection {
  const clock = options.clock ?? systemClock
  let pools: Pools | undefined
  const retired = new Set<Dispatcher>()
  let closed = false

  function poolsFor(credentials: Credentials): Pools {
    if (pools?.credentials === credentials) return pools
    if (pools && sameConnection(pools.credentials, credentials)) {
      // Remembered, so that equal credentials are compared once and not with each request.
      pools = { ...pools, credentials }
      return pools
    }
    const old = pools
    const connect = {
      ...credentials.tls,
      timeout: options.connectTimeout ?? 10_000,
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
    }
    // The server closes idle connections after 90 s; ours go first, so that a call is never lost in that race.
    const common = {
      allowH2: false,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 45_000,
      keepAliveMaxTimeout: 60_000,
    }
    const { origin, pathname } = new URL(credentials.server)
    const where = { credentials, origin, prefix: pathname === '/' ? '' : pathname }
    if (credentials.proxy) {
      const { proxy } = credentials
      const agent = (connections: number | null) =>
        new ProxyAgent({
          ...common,
          uri: proxy,
          requestTls: connect,
          proxyTls: { timeout: connect.timeout },
          connections,
        })
      pools = { ...where, calls: agent(options.connections ?? 32), streams: agent(null) }
    } else {
      const connector = buildConnector({ ...connect, allowH2: false })
      pools = {
        ...where,
        calls: new Pool(origin, { ...common, connect: connector, connections: options.connections ?? 32 }),
        streams: new Pool(origin, { ...common, connect: connector, connections: null }),
      }
    }
    if (old) for (const pool of [old.calls, old.streams]) retire(pool)
    return pools
  }

  /** Closes a pool when its last call is done. */
  function retire(pool: Dispatcher) {
    retired.add(pool)
    pool.close().finally(() => retired.delete(pool))
  }

  function poolsOrWhyNot(request: Request, credentials: Credentials): Pools {
    try {
      return poolsFor(credentials)
    } catch (error) {
      const why = `no connection can be made with these credentials: ${messageOf(error)}`
      throw new Unavailable('Unavailable', request.target, why, { mayHaveActed: false, cause: error })
    }
  }

  return {
    async send(request, credentials) {
      if (closed) throw new Unavailable('Unavailable', request.target, 'the client is closed', { mayHaveActed: false })
      const { calls, streams, origin, prefix } = poolsOrWhyNot(request, credentials)
      return exchange(request.stream ? streams : calls, origin, prefix, request, options.deadline ?? 30_000, clock)
    },
    async close() {
      closed = true
      const open = pools ? [pools.calls, pools.streams, ...retired] : [...retired]
      await Promise.all(open.map(pool => pool.destroy()))
    },
  }
}

function exchange(
  pool: Dispatcher,
  origin: string,
  prefix: string,
  request: Request,
  defaultDeadline: number,
  clock: Clock,
): Promise<Response> {
  const { target, signal } = request
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new Aborted(target, signal.reason))
    let control: Dispatcher.DispatchController | undefined
    /** Why we ended it ourselves. */
    let ended: Error | undefined
    let timer: Timer | undefined
    let chunks: Chunks | undefined
    let status = 0
    let headers: Response['headers'] = {}
    let body: Buffer[] = []

    function end(error: Error) {
      ended ??= error
      settle()
      reject(ended)
      chunks?.fail(ended)
      control?.abort(ended)
    }
    const abort = () => end(new Aborted(target, signal?.reason))
    function settle() {
      timer?.cancel()
      signal?.removeEventListener('abort', abort)
    }
    const deadline = timeFor(request, defaultDeadline)
    timer = clock.after(deadline, () =>
      end(
        new Unavailable('DeadlineExceeded', target, `no complete answer within ${Math.round(deadline)} ms`, {
          mayHaveActed: control !== undefined,
        }),
      ),
    )
    signal?.addEventListener('abort', abort, { once: true })

    pool.dispatch(
      {
        origin,
        path: prefix + request.path,
        method: request.method,
        headers: request.headers ?? null,
        body: request.body ?? null,
      },
      {
        onRequestStart(controller) {
          control = controller
          if (ended) controller.abort(ended)
        },
        onResponseStart(controller, code, received) {
          // A hint that comes before the answer.
          if (code < 200) return
          status = code
          headers = received
          if (!request.stream || code >= 400) return
          // The headers are here: from now on the reader decides how long it waits. The signal goes on to end it.
          timer?.cancel()
          chunks = new Chunks({
            pause: () => controller.pause(),
            resume: () => controller.resume(),
            cancel: () => {
              settle()
              controller.abort(new Aborted(target, 'the reader has left'))
            },
          })
          resolve({ status, headers, text: '', chunks })
        },
        onResponseData(_controller, chunk) {
          if (chunks) chunks.push(chunk)
          else body.push(chunk)
        },
        onResponseEnd() {
          settle()
          if (chunks) return chunks.end()
          const whole = body.length === 1 ? (body[0] as Buffer) : Buffer.concat(body)
          body = []
          if (headers['content-encoding'] !== 'gzip') return resolve({ status, headers, text: whole.toString() })
          gunzip(whole, (error, text) => {
            if (error)
              reject(
                new Unavailable('Garbled', target, `the compressed answer is damaged: ${error.message}`, {
                  mayHaveActed: true,
                }),
              )
            else resolve({ status, headers, text: text.toString() })
          })
        },
        onResponseError(_controller, error) {
          settle()
          const why = ended ?? failure(request, error, control !== undefined)
          if (chunks) chunks.fail(why)
          reject(why)
        },
      },
    )
  })
}

function failure(request: Request, error: Error, started: boolean): Unavailable {
  const code = (error as NodeJS.ErrnoException).code
  const words = code && !error.message.includes(code) ? `${messageOf(error)} (${code})` : messageOf(error)
  const garbled = error instanceof errors.HTTPParserError || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'
  return new Unavailable(garbled ? 'Garbled' : 'Unavailable', request.target, words, {
    mayHaveActed: started,
    cause: error,
  })
}
