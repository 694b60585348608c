import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer as createRawServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../../shared/clock.ts'
import { type HttpOptions, request } from '../../../sidecar/calls/http.ts'
import { createAuthority } from '../../fixtures/certificates.ts'
import { VirtualClock } from '../../fixtures/virtual-clock.ts'

const ask = (url: string, options: Partial<HttpOptions> = {}) =>
  request({ url, clock: systemClock, timeoutMs: 20_000, bodyLimit: 1024, ...options })

async function listen(server: Pick<Server, 'listen' | 'close' | 'on' | 'address'>) {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server as Server, 'listening')
  const { port } = server.address() as AddressInfo
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port, host: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}`, sockets }
}

const serve = (handle: RequestListener) => listen(createServer(handle))
/** A server of anything: `handle` gets the socket once something has come, unless it is to speak first. */
const serveRaw = (handle: (socket: Socket) => void) => listen(createRawServer(handle) as never)

async function unusedPort(): Promise<number> {
  const server = createRawServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

describe('an answer', () => {
  it('has status, headers and body', async () => {
    const { url } = await serve((_request, response) => {
      response.writeHead(418, { 'X-One': 'a', 'Set-Cookie': ['b=1', 'c=2'] }).end('short and stout')
    })
    expect(await ask(url)).toMatchObject({
      status: 418,
      headers: { 'x-one': 'a', 'set-cookie': 'b=1, c=2' },
      body: 'short and stout',
      cut: false,
    })
  })

  it('that redirects is an answer; it is not followed', async () => {
    const paths: (string | undefined)[] = []
    const { url } = await serve((request, response) => {
      paths.push(request.url)
      response.writeHead(302, { Location: '/other' }).end()
    })
    expect(await ask(`${url}/first?a=b#c`)).toMatchObject({ status: 302, headers: { location: '/other' } })
    expect(paths).toEqual(['/first?a=b'])
  })

  it('is closed once it is longer than is wanted, though it has no end', async () => {
    const server = await serve((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(1000)));
      }
      response.on('drain', more)
      more()
    })
    expect(await ask(server.url, { bodyLimit: 2500 })).toEqual({
      status: 200,
      headers: expect.anything(),
      body: 'x'.repeat(2500),
      cut: true,
    })
    await vi.waitFor(() => expect(server.sockets.size).toBe(0))
  })

  it('that ends with its connection is whole', async () => {
    const { url } = await serveRaw(socket => {
      socket.once('data', () => socket.end('HTTP/1.0 200 OK\r\n\r\nall of it'))
    })
    expect(await ask(url)).toMatchObject({ status: 200, body: 'all of it' })
  })

  it('leaves no connection, although the server would keep it', async () => {
    const server = await serve((_request, response) => void response.end('ok'))
    await ask(server.url, { headers: { Connection: 'keep-alive' } })
    await vi.waitFor(() => expect(server.sockets.size).toBe(0))
  })
})

describe('a request', () => {
  async function echo(options: Partial<HttpOptions>, path = '', login = '') {
    const seen = await serve((request, response) => {
      let body = ''
      request.setEncoding('utf8')
      request.on('data', piece => {
        body += piece
      })
      request.on('end', () => response.end(JSON.stringify({ method: request.method, headers: request.headers, body })))
    })
    const answer = await ask(`http://${login}${seen.host}${path}`, { bodyLimit: 10_000, ...options })
    if (!('body' in answer)) throw new Error(answer.message)
    return { ...JSON.parse(answer.body), host: seen.host }
  }

  it('has the method, headers and body that are given, and no chunks', async () => {
    const seen = await echo({ method: 'POST', headers: { 'X-Word': 'a b' }, body: 'é' })
    expect(seen).toMatchObject({ method: 'POST', body: 'é', headers: { 'x-word': 'a b', 'content-length': '2' } })
    expect(seen.headers.host).toBe(seen.host)
    expect(seen.headers).not.toHaveProperty('transfer-encoding')
  })

  it('says itself where it ends, whatever the headers that are given say', async () => {
    const headers = { 'Content-Length': '1', 'Transfer-Encoding': 'chunked', Expect: '100-continue', Host: 'other' }
    const seen = await echo({ method: 'PUT', headers, body: 'abc' })
    expect(seen).toMatchObject({ body: 'abc', headers: { 'content-length': '3', host: 'other', connection: 'close' } })
  })

  it('takes name and password from the URL', async () => {
    const seen = await echo({}, '/', 'ann:s%40t@')
    expect(seen.headers.authorization).toBe(`Basic ${Buffer.from('ann:s@t').toString('base64')}`)
  })

  it.each([
    ['not a url', {}, '"not a url" is no URL'],
    ['ftp://host/file', {}, 'begins with ftp:// where http:// or https:// is accepted'],
  ])('to "%s" is refused by ourselves', async (url, options, message) => {
    expect(await ask(url, options)).toEqual({
      failed: 'invalid',
      message: expect.stringContaining(message),
      maybeSent: false,
    })
  })

  it.each([{ method: 'GE T' }, { headers: { 'X-A': 'a\r\nX-B: b' } }, { headers: { 'a b': 'c' } }])(
    'that HTTP does not allow (%j) is not sent',
    async options => {
      const handle = vi.fn<RequestListener>()
      const { url } = await serve(handle)
      expect(await ask(url, options)).toMatchObject({ failed: 'invalid', maybeSent: false })
      expect(handle).not.toHaveBeenCalled()
    },
  )
})

describe('a failure', () => {
  it('where nobody listens is a refusal, and nothing was sent', async () => {
    const port = await unusedPort()
    expect(await ask(`http://127.0.0.1:${port}`)).toEqual({
      failed: 'refused',
      message: expect.stringContaining(`ECONNREFUSED 127.0.0.1:${port}`),
      maybeSent: false,
    })
    expect(await ask(`http://localhost:${port}`)).toMatchObject({ failed: 'refused', maybeSent: false })
    expect(await ask(`https://localhost:${port}`)).toMatchObject({ failed: 'refused', maybeSent: false })
  })

  // A machine without a name server takes its time to find that out.
  it('to find the name is no refusal', { timeout: 60_000 }, async () => {
    expect(await ask('http://no-such-host.invalid/', { timeoutMs: 50_000 })).toMatchObject({
      failed: 'dns',
      message: expect.stringContaining('no-such-host.invalid'),
      maybeSent: false,
    })
  })

  it('by a connection that is cut off after the request may have done its work', async () => {
    const { url } = await serve(request => void request.socket.destroy())
    expect(await ask(url, { method: 'POST', body: 'x' })).toMatchObject({ failed: 'reset', maybeSent: true })
  })

  it('by a connection that is cut off within the answer', async () => {
    const { url } = await serveRaw(socket => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'))
    })
    expect(await ask(url)).toMatchObject({ failed: 'reset', maybeSent: true })
  })

  it('by an answer that is not HTTP', async () => {
    const { url } = await serveRaw(socket => void socket.once('data', () => socket.end('220 mail ready\r\n')))
    expect(await ask(url)).toMatchObject({ failed: 'malformed', maybeSent: true })
  })

  it('by an answer whose headers have no end', async () => {
    const { url } = await serveRaw(socket => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\n')
        socket.write(`X-Long: ${'x'.repeat(100_000)}\r\n`)
      })
    })
    expect(await ask(url)).toMatchObject({ failed: 'malformed', maybeSent: true })
  })

  it('by an answer that goes over to another protocol', async () => {
    const { url } = await serveRaw(socket => {
      socket.once('data', () =>
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
      )
    })
    expect(await ask(url)).toMatchObject({ maybeSent: true, failed: 'reset' })
  })

  it('to answer in time tells that it was sent, and closes the connection', async () => {
    const clock = new VirtualClock()
    const asked = Promise.withResolvers<void>()
    const server = await serve(() => asked.resolve())
    const answer = ask(server.url, { clock, timeoutMs: 3000 })
    await asked.promise
    await clock.advance(3000)
    expect(await answer).toEqual({ failed: 'timedOut', message: 'no answer within 3000 ms', maybeSent: true })
    await vi.waitFor(() => expect(server.sockets.size).toBe(0))
    expect(clock.pending).toBe(0)
  })

  it('to finish an answer that drips is a time-out as well', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200)
      const drip = () => {
        if (response.destroyed) return
        response.write('.')
        setTimeout(drip, 5)
      }
      drip()
    })
    expect(await ask(server.url, { timeoutMs: 100 })).toMatchObject({ failed: 'timedOut', maybeSent: true })
    await vi.waitFor(() => expect(server.sockets.size).toBe(0))
  })

  it('to shake hands in time tells that nothing was sent', async () => {
    const clock = new VirtualClock()
    const greeted = Promise.withResolvers<void>()
    const { host } = await serveRaw(socket => void socket.once('data', () => greeted.resolve()))
    const answer = ask(`https://${host}`, { clock, timeoutMs: 3000 })
    await greeted.promise
    await clock.advance(3000)
    expect(await answer).toMatchObject({ failed: 'timedOut', maybeSent: false })
  })

  it('by an abort tells whether it was sent', async () => {
    const stop = new AbortController()
    const asked = Promise.withResolvers<void>()
    const { url, sockets } = await serve(() => asked.resolve())
    expect(await ask(url, { signal: AbortSignal.abort() })).toMatchObject({ failed: 'aborted', maybeSent: false })
    const answer = ask(url, { signal: stop.signal })
    await asked.promise
    stop.abort()
    expect(await answer).toMatchObject({ failed: 'aborted', maybeSent: true })
    await vi.waitFor(() => expect(sockets.size).toBe(0))
  })
})

describe('https', () => {
  async function serveSecurely() {
    const authority = createAuthority()
    const handle = vi.fn<RequestListener>((_request, response) => void response.end('secret'))
    const { key, cert } = authority.issue({ commonName: 'server', ip: ['127.0.0.1'] })
    return { ...(await listen(createSecureServer({ key, cert }, handle))), handle }
  }

  it('is not spoken to a server whose certificate nobody vouches for: nothing is sent', async () => {
    const { host, handle } = await serveSecurely()
    const failure = await ask(`https://${host}`, { method: 'POST', body: 'password' })
    expect(failure).toMatchObject({ failed: 'tls', maybeSent: false })
    expect(handle).not.toHaveBeenCalled()
  })

  it('is, where that is declared', async () => {
    const { host } = await serveSecurely()
    expect(await ask(`https://${host}`, { insecureSkipVerify: true })).toMatchObject({ status: 200, body: 'secret' })
  })

  it('to a server that does not speak it fails', async () => {
    const { host } = await serve((_request, response) => void response.end())
    expect(await ask(`https://${host}`)).toMatchObject({ failed: 'tls', maybeSent: false })
  })
})
