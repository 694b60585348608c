import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { describe, expect, it } from 'vitest'
import type { ShapeOf, Snapshot } from '../../../controller/kube/kind.ts'
import type { Secret } from '../../../controller/kube/kinds.ts'
import { createHttpClient, type HttpClientOptions } from '../../../controller/toolkit/clients/http.ts'
import { HttpError } from '../../../controller/toolkit/clients/http-error.ts'
import { authFrom, tlsFrom } from '../../../controller/toolkit/clients/secret.ts'
import { createAuthority } from '../../fixtures/certificates.ts'
import { closedPort, type LocalServerOptions, startLocalServer } from '../../fixtures/https-server.ts'

const quick = { backoff: { first: 1, longest: 1 } }

/** A server that answers as `handle` says, a client to it, and what it was asked. */
async function world(
  handle: (request: IncomingMessage, response: ServerResponse, body: string) => void,
  options: Partial<HttpClientOptions> = {},
  serverOptions: LocalServerOptions = {},
) {
  const asked: { line: string; headers: IncomingMessage['headers']; body: string }[] = []
  const listener: RequestListener = (request, response) => {
    let body = ''
    request.on('data', piece => {
      body += piece
    })
    request.on('end', () => {
      asked.push({ line: `${request.method} ${request.url}`, headers: request.headers, body })
      handle(request, response, body)
    })
  }
  const server = await startLocalServer(listener, serverOptions)
  const http = createHttpClient({ url: server.url, tls: { ca: server.authority.cert }, ...quick, ...options })
  return {
    server,
    http,
    asked,
    async [Symbol.asyncDispose]() {
      await http.close()
      await server.stop()
    },
  }
}

async function failure(call: Promise<unknown>): Promise<HttpError> {
  const error = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(error).toBeInstanceOf(HttpError)
  return error as HttpError
}

const secret = (data: Record<string, string>) =>
  ({
    metadata: { name: 's', namespace: 'ns' },
    data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
  }) as unknown as Snapshot<ShapeOf<typeof Secret>>

describe('a call', () => {
  it('sends and receives JSON, over connections that it keeps', async () => {
    await using w = await world((_request, response, body) => response.end(JSON.stringify({ got: JSON.parse(body) })))
    const request = { path: '/v1/x', query: { a: 'b c', n: 1, none: undefined }, json: { y: [1, 'ä'] } }
    for (let n = 0; n < 10; n++) expect(await w.http.json(request)).toEqual({ got: { y: [1, 'ä'] } })
    expect(w.asked[0]).toMatchObject({ line: 'POST /v1/x?a=b+c&n=1', headers: { 'content-type': 'application/json' } })
    // The next call may come before the connection is known to be free again.
    expect(w.server.connections.total).toBeLessThanOrEqual(2)
  })

  it('begins its path with that of the URL', async () => {
    await using w = await world((_request, response) => response.end())
    await using http = createHttpClient({ url: `${w.server.url}/base/`, tls: { ca: w.server.authority.cert } })
    expect((await http.request({ path: '/x?own=1', query: { more: true } })).status).toBe(200)
    await http.request({})
    await w.http.request({ method: 'head' })
    expect(w.asked.map(({ line }) => line)).toEqual(['GET /base/x?own=1&more=true', 'GET /base', 'HEAD /'])
  })

  it('answers undefined for JSON that is empty, and is an error for what is none', async () => {
    await using w = await world((request, response) => response.end(request.url === '/empty' ? '' : '<html>'))
    expect(await w.http.json({ path: '/empty' })).toBeUndefined()
    expect(await failure(w.http.json({ path: '/html' }))).toMatchObject({ code: 'Garbled' })
  })

  it('is an error for every answer but a success, with method, URL, status and the beginning of the answer', async () => {
    await using w = await world((request, response) => {
      const status = Number(request.url?.slice(1, 4))
      response.writeHead(status, { location: '/200' }).end(`no ${'x'.repeat(100_000)}`)
    })
    const meanings = { 302: 'BadRequest', 400: 'BadRequest', 401: 'Unauthorized', 404: 'NotFound', 500: 'Unavailable' }
    for (const [status, code] of Object.entries(meanings)) {
      const error = await failure(w.http.request({ method: 'PUT', path: `/${status}`, query: { token: 'hidden' } }))
      expect(error).toMatchObject({ code, status: Number(status), method: 'PUT', url: `${w.server.url}/${status}` })
      expect(error.message).toMatch(new RegExp(`^PUT ${w.server.url}/${status}: HTTP status ${status}: no x+…$`))
      expect(error.message.length).toBeLessThan(700)
    }
    expect(w.asked).toHaveLength(5)
  })

  it('is an error for an answer that is longer than it may be', async () => {
    await using w = await world((_request, response) => response.end('x'.repeat(2000)), { maxBody: 1000 })
    expect(await failure(w.http.request({}))).toMatchObject({ code: 'Garbled', retry: 'never' })
  })

  it('ends by its time-out, and by its signal', async () => {
    await using w = await world((request, response) => {
      if (request.url === '/half') response.write('half')
    })
    for (const path of ['/none', '/half'])
      expect(await failure(w.http.request({ path, timeout: 500 }))).toMatchObject({
        code: 'DeadlineExceeded',
        mayHaveActed: true,
      })
    const stop = new AbortController()
    const call = failure(w.http.request({ path: '/none', signal: stop.signal }))
    await expect.poll(() => w.asked.length).toBe(3)
    stop.abort(new Error('enough'))
    expect(await call).toMatchObject({ code: 'Aborted', cause: { message: 'enough' } })
    expect(await failure(w.http.request({ signal: stop.signal }))).toMatchObject({
      code: 'Aborted',
      mayHaveActed: false,
    })
  })

  it('ends by its signal while it waits to be repeated', async () => {
    await using w = await world((_request, response) => response.writeHead(503).end(), {
      backoff: { first: 20_000, longest: 20_000 },
    })
    const stop = new AbortController()
    const call = failure(w.http.request({ signal: stop.signal }))
    await expect.poll(() => w.asked.length).toBe(1)
    stop.abort()
    expect(await call).toMatchObject({ code: 'Aborted' })
  })
})

describe('a repetition', () => {
  it('is made of a read after a passing fault', async () => {
    let left = 2
    await using w = await world((request, response) => {
      if (left-- > 0) request.url === '/cut' ? response.destroy() : response.writeHead(503).end()
      else response.end('ok')
    })
    expect((await w.http.request({ path: '/busy' })).text).toBe('ok')
    left = 2
    expect((await w.http.request({ path: '/cut' })).text).toBe('ok')
    left = 3
    expect(await failure(w.http.request({ path: '/busy' }))).toMatchObject({ status: 503 })
    expect(w.asked).toHaveLength(9)
  })

  it('is not made of a write that may have been acted on', async () => {
    await using w = await world((request, response) => {
      if (request.url === '/cut') response.destroy()
      else response.writeHead(503).end()
    })
    for (const path of ['/cut', '/busy'])
      expect(await failure(w.http.request({ method: 'POST', path }))).toMatchObject({ mayHaveActed: true })
    expect(w.asked).toHaveLength(2)
  })

  it('is not made after a refusal that will not pass', async () => {
    await using w = await world((_request, response) => response.writeHead(404).end())
    await failure(w.http.request({}))
    expect(w.asked).toHaveLength(1)
  })

  it('is made of any call when nobody could be reached', async () => {
    const port = await closedPort()
    let tries = 0
    const random = () => {
      tries++
      return 0
    }
    await using http = createHttpClient({ url: `http://127.0.0.1:${port}`, ...quick, random })
    expect(await failure(http.request({ method: 'POST', json: {} }))).toMatchObject({
      code: 'Unavailable',
      mayHaveActed: false,
      retry: 'later',
    })
    expect(tries).toBe(3)
  })
})

describe('TLS', () => {
  it('is refused where the certificate is not trusted, or has another name', async () => {
    await using w = await world((_request, response) => response.end('ok'))
    const { cert } = createAuthority()
    for (const tls of [{}, { ca: cert }, { ca: w.server.authority.cert, servername: 'other' }]) {
      await using http = createHttpClient({ url: w.server.url, tls })
      expect(await failure(http.request({ method: 'POST' }))).toMatchObject({ mayHaveActed: false, retry: 'never' })
    }
    await using http = createHttpClient({ url: w.server.url, tls: { insecureSkipVerify: true } })
    expect((await http.request({})).text).toBe('ok')
    expect(w.asked).toHaveLength(1)
  })

  it('can be for a name that is not the host', async () => {
    await using w = await world((_request, response) => response.end('ok'), {}, { dns: ['db.example'], ip: [] })
    await using http = createHttpClient({
      url: w.server.url,
      tls: tlsFrom(secret({ 'ca.crt': w.server.authority.cert }), { servername: 'db.example' }),
    })
    expect((await http.request({})).text).toBe('ok')
    expect(await failure(w.http.request({}))).toMatchObject({ retry: 'never' })
  })

  it('shows a certificate of our own, from a Secret', async () => {
    const mutual = { requestCert: true, rejectUnauthorized: true }
    await using w = await world(
      (request, response) => response.end((request.socket as TLSSocket).getPeerCertificate().subject.CN),
      {},
      mutual,
    )
    const pair = w.server.authority.issue({ commonName: 'us' })
    const tls = tlsFrom(secret({ 'ca.crt': w.server.authority.cert, 'tls.crt': pair.cert, 'tls.key': pair.key }))
    await using http = createHttpClient({ url: w.server.url, tls })
    expect((await http.request({})).text).toBe('us')
    expect(await failure(w.http.request({}))).toMatchObject({ code: 'Unavailable' })
  })
})

describe('who asks', () => {
  it('is told by a token, the newest one, or by a password', async () => {
    await using w = await world((request, response) => response.end(request.headers.authorization))
    const { url, authority } = w.server
    let token = 1
    await using bearer = createHttpClient({ url, tls: { ca: authority.cert }, auth: { bearer: () => `t${token++}` } })
    expect((await bearer.request({})).text).toBe('Bearer t1')
    expect((await bearer.request({})).text).toBe('Bearer t2')
    const auth = authFrom(secret({ username: 'me', password: 'pä' }))
    await using basic = createHttpClient({ url, tls: { ca: authority.cert }, auth })
    expect((await basic.request({})).text).toBe(`Basic ${Buffer.from('me:pä').toString('base64')}`)
    expect(authFrom(secret({ token: 'x' }))).toEqual({ bearer: 'x' })
  })

  it('is in no message, even if the application repeats it', async () => {
    await using w = await world((request, response) =>
      response.writeHead(401).end(`${request.headers.authorization} is wrong, hunter2 too`),
    )
    const tls = { ca: w.server.authority.cert }
    const auth = { basic: { username: 'me', password: 'hunter2' } }
    await using http = createHttpClient({ url: w.server.url, tls, auth })
    const error = await failure(http.request({}))
    expect(error.message).toMatch(/HTTP status 401: Basic … is wrong, … too$/)
    expect(error.body).not.toContain('hunter2')
  })
})

describe('what cannot work', () => {
  it('is refused at once', async () => {
    const misuse = { code: 'Misuse' }
    for (const url of ['db:80', 'ftp://x', 'https://me:pw@x', 'https://x/?a=b'])
      expect(() => createHttpClient({ url })).toThrow(expect.objectContaining(misuse))
    const pair = createAuthority().issue({ commonName: 'x' })
    expect(() => createHttpClient({ url: 'https://x', tls: { cert: pair.cert } })).toThrow(/needs its key/)
    await using http = createHttpClient({ url: 'https://x' })
    await expect(http.request({ path: 'x' })).rejects.toThrow('a path begins with /')
  })

  it('is a Secret without what is needed, by its name and keys alone', () => {
    expect(() => tlsFrom(secret({ 'tls.crt': 'c', password: 'p' }))).toThrow(
      'Secret ns/s has no tls.key; it has tls.crt, password',
    )
    expect(() => tlsFrom(secret({}))).toThrow('it has nothing')
    expect(() => tlsFrom(secret({ 'ca.crt': 'c' }), { ca: 'root.pem' })).toThrow('has no root.pem')
    expect(() => authFrom(secret({ username: 'x' }))).toThrow('has no token, or username and password')
  })
})
