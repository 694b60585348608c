/**
 * An HTTP client to an application: over TLS, as somebody, within a time, and heard out.
 *
 * Guarantees: every answer but 2xx is an error, a redirect too. A call ends by its time-out, repetitions included, and by its signal. It is repeated only
 * where that is safe: GET and HEAD after a passing fault, others when the request was certainly not sent. A certificate that is not accepted is never
 * overlooked unless asked for. No message has a token, a password or a query in it.
 */
import { buildConnector, Pool } from 'undici'
import { type Backoff, delay } from '../../../shared/backoff.ts'
import { type Clock, sleep, systemClock } from '../../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../../shared/errors.ts'
import { exchange, type HttpAnswer } from './exchange.ts'
import { HttpError, meaningOf } from './http-error.ts'

export interface HttpClientOptions {
  /** Where the application is: `https://db-0.db.default.svc:8443`, with or without a path that all requests begin with. */
  readonly url: string
  readonly tls?: TlsOptions | undefined
  readonly auth?: Auth | undefined
  /** On each request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Milliseconds for a call, repetitions and the waits between them included. Default 30,000. */
  readonly timeout?: number | undefined
  /** Milliseconds to reach the application. Default 5,000. */
  readonly connectTimeout?: number | undefined
  /** How many times a call is tried in all, where trying again is safe. Default 3. */
  readonly tries?: number | undefined
  /** Between tries. Default 100 ms to 2 s. */
  readonly backoff?: Backoff | undefined
  /** Bytes of an answer; a longer one is an error. Default 8 MiB. */
  readonly maxBody?: number | undefined
  /** How many calls may be under way at once; more wait. Default 8. */
  readonly connections?: number | undefined
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
}

export interface TlsOptions {
  /** Certificates that are trusted, PEM. Default: those of the system. */
  readonly ca?: string | undefined
  /** Our own certificate, PEM, where the application asks for one (mTLS). */
  readonly cert?: string | undefined
  /** Its key, PEM. */
  readonly key?: string | undefined
  /** The name that the application's certificate must have. Default: the host in the URL. */
  readonly servername?: string | undefined
  /** Accept any certificate. Default false. */
  readonly insecureSkipVerify?: boolean | undefined
}

/** As whom. A certificate of one's own stands in `tls`. */
export type Auth =
  /** A token, or where to get the newest one: it is asked for with each try. */
  | { readonly bearer: string | (() => string) }
  | { readonly basic: { readonly username: string; readonly password: string } }

export interface HttpRequest {
  /** Default GET; POST with something to send. */
  readonly method?: string | undefined
  /** From the client's URL on; begins with `/`. Default: the URL itself. */
  readonly path?: string | undefined
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent as it is. */
  readonly body?: string | Uint8Array | undefined
  /** Milliseconds. Default: the client's. */
  readonly timeout?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface HttpClient extends AsyncDisposable {
  /** The answer, if it is a success. */
  request(request: HttpRequest): Promise<HttpAnswer>
  /** What the answer says as JSON; undefined for an empty one. It is taken for `T`, and not checked. */
  json<T = unknown>(request: HttpRequest): Promise<T>
  /** Ends every call under way and closes every connection. */
  close(): Promise<void>
}

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { timeout = 30_000, tries = 3, clock = systemClock, random = Math.random } = options
  const { backoff = { first: 100, longest: 2000 }, maxBody = 8 << 20 } = options
  const base = baseOf(options.url)
  const pool = poolOf(base, options)

  async function request(asked: HttpRequest): Promise<HttpAnswer> {
    const end = clock.monotonic() + (asked.timeout ?? timeout)
    for (let attempt = 1; ; attempt++) {
      try {
        return await once(asked, Math.max(end - clock.monotonic(), 1))
      } catch (error) {
        const wait = error instanceof HttpError ? (error.retryAfter ?? delay(backoff, attempt, random)) : 0
        const isInTime = clock.monotonic() + wait < end
        if (attempt >= tries || !isInTime || !isSafe(error)) throw error
        await sleep(clock, wait, asked.signal).catch(() => Promise.reject(aborted(error as HttpError, asked.signal)))
      }
    }
  }

  async function once(asked: HttpRequest, deadline: number): Promise<HttpAnswer> {
    const { headers, secrets } = headersOf(asked, options)
    const method = methodOf(asked)
    const { path, url } = placeOf(base, asked)
    const body = asked.json === undefined ? asked.body : JSON.stringify(asked.json)
    const call = { origin: base.origin, path, method, headers, body, signal: asked.signal, deadline, maxBody, url }
    const answer = await exchange(pool, call, clock)
    if (answer.status >= 200 && answer.status < 300) return answer
    throw refusal(method, url, answer, secrets)
  }

  return {
    request,
    async json<T>(asked: HttpRequest): Promise<T> {
      const answer = await request({ ...asked, headers: { accept: 'application/json', ...asked.headers } })
      if (answer.text === '') return undefined as T
      try {
        return JSON.parse(answer.text) as T
      } catch (cause) {
        const method = methodOf(asked)
        const { url } = placeOf(base, asked)
        const why = `the answer is not JSON: ${messageOf(cause)}`
        throw new HttpError({ code: 'Garbled', retry: 'later', method, url, why, mayHaveActed: true, cause })
      }
    },
    close: () => pool.destroy(),
    [Symbol.asyncDispose]: () => pool.destroy(),
  }
}

function baseOf(text: string): URL {
  const url = URL.parse(text)
  const problem =
    !url || !/^https?:$/.test(url.protocol)
      ? 'is no http:// or https:// URL'
      : url.username || url.password
        ? 'has a user in it; give `auth` instead'
        : url.search || url.hash
          ? 'has a query in it; give it with each request'
          : undefined
  if (!url || problem) throw misuse(`the application's url ${problem}`)
  return url
}

function poolOf(base: URL, { tls = {}, connectTimeout = 5000, connections = 8 }: HttpClientOptions): Pool {
  const { insecureSkipVerify, ...material } = tls
  if ((tls.cert === undefined) !== (tls.key === undefined))
    throw misuse('a certificate needs its key, and a key its certificate')
  const given = Object.fromEntries(Object.entries(material).filter(([, value]) => value !== undefined))
  try {
    const rejectUnauthorized = insecureSkipVerify !== true
    const connect = buildConnector({ ...given, rejectUnauthorized, timeout: connectTimeout, allowH2: false })
    return new Pool(base.origin, {
      connect,
      connections,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
    })
  } catch (cause) {
    throw misuse(`no connection can be made with this: ${messageOf(cause)}`, cause)
  }
}

/** The headers of a request, and what must not be in a message. */
function headersOf(asked: HttpRequest, { auth, headers }: HttpClientOptions) {
  const secrets: string[] = []
  let authorization: string | undefined
  if (auth && 'bearer' in auth) {
    const token = typeof auth.bearer === 'string' ? auth.bearer : auth.bearer()
    secrets.push(token)
    authorization = `Bearer ${token}`
  } else if (auth) {
    const { username, password } = auth.basic
    const pair = Buffer.from(`${username}:${password}`).toString('base64')
    secrets.push(password, pair)
    authorization = `Basic ${pair}`
  }
  const all = {
    ...(asked.json !== undefined && { 'content-type': 'application/json' }),
    ...(authorization !== undefined && { authorization }),
    ...lowerCase(headers),
    ...lowerCase(asked.headers),
  }
  return { headers: all, secrets }
}

function lowerCase(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

function methodOf({ method, json, body }: HttpRequest): string {
  return (method ?? (json === undefined && body === undefined ? 'GET' : 'POST')).toUpperCase()
}

function placeOf(base: URL, { path = '', query = {} }: HttpRequest): { path: string; url: string } {
  if (path !== '' && !path.startsWith('/')) throw misuse('a path begins with /')
  const prefix = base.pathname === '/' && path !== '' ? '' : base.pathname.replace(/(?<=.)\/$/, '')
  const [bare = '', own] = `${prefix}${path}`.split(/\?(.*)/s)
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  const asked = [own, new URLSearchParams(Object.fromEntries(given)).toString()].filter(Boolean).join('&')
  return { path: asked ? `${bare}?${asked}` : bare, url: `${base.origin}${bare}` }
}

/** So many characters of a refusal stand in the message. */
const mostWords = 500

function refusal(
  method: string,
  url: string,
  { status, headers, text }: HttpAnswer,
  secrets: readonly string[],
): HttpError {
  const [code, retry] = meaningOf(status)
  let body = text.slice(0, 4 * mostWords)
  for (const secret of secrets) if (secret !== '') body = body.replaceAll(secret, '…')
  const words = body.trim().replace(/\s+/g, ' ')
  const said = words.length > mostWords ? `${words.slice(0, mostWords)}…` : words
  const seconds = Number(headers['retry-after'] ?? Number.NaN)
  return new HttpError({
    ...{ code, retry, method, url, status, body, mayHaveActed: status >= 500 },
    why: `HTTP status ${status}${said ? `: ${said}` : ''}`,
    retryAfter: seconds >= 0 ? seconds * 1000 : undefined,
  })
}

/** A refusal is repeated only for a read, and only one that may pass; what was never sent, always. */
function isSafe(error: unknown): boolean {
  if (!(error instanceof HttpError) || error.retry !== 'later') return false
  const isRead = error.method === 'GET' || error.method === 'HEAD'
  if (error.status === undefined) return error.code !== 'DeadlineExceeded' && (isRead || !error.mayHaveActed)
  return isRead && (error.status === 429 || error.status >= 502)
}

function aborted({ method, url, mayHaveActed }: HttpError, signal: AbortSignal | undefined): HttpError {
  const why = 'no longer wanted'
  return new HttpError({ code: 'Aborted', retry: 'never', method, url, why, mayHaveActed, cause: signal?.reason })
}

function misuse(problem: string, cause?: unknown): ShipmateError {
  return new ShipmateError('Misuse', problem, 'never', cause === undefined ? undefined : { cause })
}
