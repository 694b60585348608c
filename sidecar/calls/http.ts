/**
 * One http or https request, bounded in time and size.
 *
 * Guarantees: it never rejects. It follows no redirect and leaves no connection open. A failure says whether the request may have been sent: it is sent only
 * once the connection stands, for https with a certificate that is accepted. The whole of it, name look-up to last byte, has one time-out.
 */
import { type ClientRequest, type IncomingMessage, request as sendRequest } from 'node:http'
import { connect, isIP, type Socket } from 'node:net'
import type { Clock } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import { bounded } from './bounded.ts'
import { type ConnectFailure, connectFailure, connectMessage } from './connect.ts'

export interface HttpOptions {
  /** http:// or https://. A name and password in it become basic authentication. */
  readonly url: string
  /** Default GET. */
  readonly method?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | undefined
  readonly timeoutMs: number
  /** Accept any certificate. Default false. */
  readonly insecureSkipVerify?: boolean | undefined
  /** So many bytes of the answer's body are read. One that has more is closed then, and the rest is not waited for. */
  readonly bodyLimit: number
  readonly signal?: AbortSignal | undefined
  readonly clock: Clock
}

export interface HttpAnswer {
  readonly status: number
  /** By name in lower case; one that came several times is joined by commas. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The body is longer than `bodyLimit`. */
  readonly cut: boolean
}

export type HttpReason =
  | ConnectFailure
  /** No secure connection came about; nearly always its certificate. */
  | 'tls'
  /** The connection ended before the answer did. */
  | 'reset'
  /** The answer is not HTTP. */
  | 'malformed'
  /** The request cannot be made: its URL, method or headers. */
  | 'invalid'
  | 'aborted'

export interface HttpFailure {
  readonly failed: HttpReason
  /** For a person. */
  readonly message: string
  /** Whether the request, or a part of it, may have reached the server. */
  readonly maybeSent: boolean
}

export function request(options: HttpOptions): Promise<HttpAnswer | HttpFailure> {
  return new Promise(resolve => {
    const { clock, signal, timeoutMs } = options
    const url = parse(options.url)
    if (typeof url === 'string') return resolve({ failed: 'invalid', message: url, maybeSent: false })
    if (signal?.aborted) return resolve({ failed: 'aborted', message: 'it was aborted', maybeSent: false })

    let socket: Socket | undefined
    let maybeSent = false
    let done = false
    const finish = (result: HttpAnswer | HttpFailure) => {
      if (done) return
      done = true
      timer.cancel()
      signal?.removeEventListener('abort', abort)
      socket?.destroy()
      resolve(result)
    }
    const fail = (failed: HttpReason, message: string) => finish({ failed, message, maybeSent })
    const abort = () => fail('aborted', 'it was aborted')
    const timer = clock.after(timeoutMs, () => fail('timedOut', `no answer within ${timeoutMs} ms`))
    signal?.addEventListener('abort', abort, { once: true })

    const connected = (open: Socket) => {
      if (done) return
      open.removeListener('error', failed)
      // The request listens for errors from here on; this one is for those that come after it has ended.
      open.on('error', () => {})
      let call: ClientRequest
      try {
        call = compose(url, options, open)
      } catch (error) {
        return fail('invalid', messageOf(error))
      }
      call.on('error', error => fail(isParseError(error) ? 'malformed' : 'reset', connectMessage(error)))
      let answered = false
      call.on('response', response => {
        answered = true
        receive(response, options.bodyLimit, finish, fail)
      })
      // As after an answer that asks for another protocol.
      call.on('close', () => {
        if (!answered) fail('reset', 'the connection ended without an answer')
      })
      maybeSent = true
      call.end(options.body)
    }
    const failed = (error: Error) => {
      const reason = connectFailure(error) ?? (url.protocol === 'https:' ? 'tls' : 'reset')
      fail(reason, connectMessage(error))
    }
    socket = openSocket(url, options, connected)
    socket.on('error', failed)
  })
}

/** A URL, or what is wrong with it. */
function parse(text: string): URL | string {
  const url = URL.parse(text)
  if (!url) return `"${text}" is no URL`
  if (url.protocol === 'http:' || url.protocol === 'https:') return url
  return `"${text}" begins with ${url.protocol}// where http:// or https:// is accepted`
}

function openSocket(url: URL, { insecureSkipVerify }: HttpOptions, connected: (socket: Socket) => void): Socket {
  const host = hostOf(url)
  if (url.protocol === 'http:') {
    const socket: Socket = connect({ host, port: Number(url.port || 80) }, () => connected(socket))
    return socket
  }
  const tls = process.getBuiltinModule('node:tls')
  const socket = tls.connect(
    {
      host,
      port: Number(url.port || 443),
      // An address may not be named to the server.
      ...(isIP(host) === 0 && { servername: host }),
      rejectUnauthorized: insecureSkipVerify !== true,
      ALPNProtocols: ['http/1.1'],
    },
    () => connected(socket),
  )
  return socket
}

/** Without the brackets of an IPv6 address. */
const hostOf = ({ hostname }: URL) => (hostname.startsWith('[') ? hostname.slice(1, -1) : hostname)

/** Throws if method or headers are not what HTTP allows. */
function compose(url: URL, { method, headers = {}, body }: HttpOptions, socket: Socket): ClientRequest {
  const given = Object.entries(headers).filter(([name]) => !framing.includes(name.toLowerCase()))
  const has = (name: string) => given.some(([other]) => other.toLowerCase() === name)
  return sendRequest({
    createConnection: () => socket,
    method: method ?? 'GET',
    path: `${url.pathname}${url.search}`,
    headers: {
      ...(!has('host') && { host: url.host }),
      ...(url.username !== '' && !has('authorization') && { authorization: basic(url) }),
      ...Object.fromEntries(given),
      ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
      connection: 'close',
    },
  })
}

/** What decides where a message ends is ours to say. */
const framing = ['content-length', 'transfer-encoding', 'connection', 'expect', 'upgrade']

function basic({ username, password }: URL): string {
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return `Basic ${Buffer.from(text).toString('base64')}`
}

function receive(
  response: IncomingMessage,
  bodyLimit: number,
  finish: (answer: HttpAnswer) => void,
  fail: (failed: HttpReason, message: string) => void,
): void {
  const body = bounded(bodyLimit)
  const answer = (cut: boolean) =>
    finish({ status: response.statusCode ?? 0, headers: flat(response), body: body.text(), cut })
  response.on('data', (piece: Buffer) => {
    body.add(piece)
    if (body.dropped > 0) answer(true)
  })
  response.on('end', () => answer(false))
  response.on('error', error => fail(isParseError(error) ? 'malformed' : 'reset', connectMessage(error)))
  response.on('close', () => fail('reset', 'the connection ended within the answer'))
}

function flat({ headers }: IncomingMessage): Record<string, string> {
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : value,
  ])
  return Object.fromEntries(entries)
}

const isParseError = (error: NodeJS.ErrnoException) => error.code?.startsWith('HPE_') === true
