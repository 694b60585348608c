import { EventEmitter, once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Connection, type ConnectionOptions, createConnection } from '../../controller/kube/connection.ts'
import { Aborted, Unavailable } from '../../controller/kube/errors.ts'
import type { Credentials } from '../../controller/kube/kubeconfig.ts'
import type { Request, Response } from '../../controller/kube/transport.ts'
import { ShipmateError } from '../../shared/errors.ts'
import { closedPort, type LocalServer, type LocalServerOptions, startLocalServer } from '../fixtures/https-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

const target = { verb: 'get', group: '', resource: 'pods' }
const get = (path: string, more: Partial<Request> = {}): Request => ({ method: 'GET', path, target, ...more })
const post = (path: string, more: Partial<Request> = {}): Request => ({
  ...{ method: 'POST', path, target: { ...target, verb: 'create' }, body: '{}' },
  ...more,
})

async function serve(handle: RequestListener, options?: LocalServerOptions): Promise<LocalServer> {
  const server = await startLocalServer(handle, options)
  onTestFinished(() => server.stop())
  return server
}

function open(options?: ConnectionOptions): Connection {
  const connection = createConnection(options)
  onTestFinished(() => connection.close())
  return connection
}

/** A server whose answers the test gives, each when it likes. */
async function served(options?: LocalServerOptions) {
  const arrivals = new EventEmitter()
  const waiting: { request: IncomingMessage; response: ServerResponse }[] = []
  const server = await serve((request, response) => {
    waiting.push({ request, response })
    arrivals.emit('arrival')
  }, options)
  const next = async () => {
    while (waiting.length === 0) await once(arrivals, 'arrival')
    return waiting.shift() as { request: IncomingMessage; response: ServerResponse }
  }
  return { server, next, waiting }
}

/** Waits until something holds that follows from what already happened. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(resolve => setImmediate(resolve))
}

async function read(response: Response): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const part of response.chunks as AsyncIterable<Uint8Array>) parts.push(part)
  return Buffer.concat(parts).toString()
}

describe('a call', () => {
  it('brings the answer as it is: status, headers, text', async () => {
    const server = await serve((request, response) => {
      response.writeHead(409, { 'x-who': String(request.headers['x-me']) }).end(`${request.method} ${request.url} ż`)
    })
    const answer = await open().send(get('/api/v1/pods?limit=5', { headers: { 'x-me': 'me' } }), server.credentials)
    expect(answer).toMatchObject({ status: 409, text: 'GET /api/v1/pods?limit=5 ż', headers: { 'x-who': 'me' } })
  })

  it('sends its body', async () => {
    const server = await serve((request, response) => request.pipe(response))
    const answer = await open().send(post('/', { body: 'żółw' }), server.credentials)
    expect(answer.text).toBe('żółw')
  })

  it('goes below the path of the server, if it has one', async () => {
    const server = await serve((request, response) => response.end(request.url))
    const below = { ...server.credentials, server: `${server.url}/k8s/clusters/one` }
    expect((await open().send(get('/version'), below)).text).toBe('/k8s/clusters/one/version')
  })

  it('shares connections with others: 200 calls need few', async () => {
    const server = await serve((_, response) => response.end('x'))
    const connection = open({ connections: 8 })
    await Promise.all(Array.from({ length: 100 }, () => connection.send(get('/'), server.credentials)))
    for (let i = 0; i < 100; i++) await connection.send(get('/'), server.credentials)
    expect(server.connections.total).toBeLessThanOrEqual(8)
  })

  it('waits for a connection when all are taken, and is counted in its deadline meanwhile', async () => {
    const { server, next } = await served()
    const clock = new VirtualClock()
    const connection = open({ connections: 1, clock })
    const first = connection.send(get('/first', { deadline: 100 }), server.credentials)
    const { response } = await next()
    const second = connection.send(post('/second', { deadline: 50 }), server.credentials)
    second.catch(() => undefined)
    await clock.advance(60)
    await expect(second).rejects.toMatchObject({ code: 'DeadlineExceeded', mayHaveActed: false })
    response.end('done')
    expect((await first).text).toBe('done')
  })

  it('that was given up while it waited is never sent', async () => {
    const seen: string[] = []
    const held: ServerResponse[] = []
    const server = await serve((request, response) => {
      seen.push(String(request.url))
      if (request.url === '/first') held.push(response)
      else response.end()
    })
    const connection = open({ connections: 1 })
    const first = connection.send(get('/first'), server.credentials)
    const control = new AbortController()
    const second = connection.send(post('/second', { signal: control.signal }), server.credentials)
    second.catch(() => undefined)
    await until(() => held.length === 1)
    control.abort()
    await expect(second).rejects.toBeInstanceOf(Aborted)
    held[0]?.end()
    await first
    await connection.send(get('/third'), server.credentials)
    expect(seen).toEqual(['/first', '/third'])
  })

  it('takes a refused connection for something the server did not act on', async () => {
    const port = await closedPort()
    const nobody: Credentials = { server: `https://127.0.0.1:${port}`, tls: {}, headers: {}, namespace: 'default' }
    const error = await open()
      .send(post('/'), nobody)
      .catch(thrown => thrown)
    expect(error).toBeInstanceOf(Unavailable)
    expect(error).toMatchObject({ code: 'Unavailable', mayHaveActed: false })
    expect(error.message).toMatch(/create pods: .*ECONNREFUSED/)
  })

  it('takes a certificate that nobody vouches for the same way', async () => {
    const server = await serve((_, response) => response.end())
    const doubtful = { ...server.credentials, tls: {} }
    await expect(open().send(post('/'), doubtful)).rejects.toMatchObject({ code: 'Unavailable', mayHaveActed: false })
  })

  it('takes a name that does not exist the same way', async () => {
    const nowhere = { server: 'https://nowhere.invalid', tls: {}, headers: {}, namespace: 'default' }
    await expect(open().send(post('/'), nowhere)).rejects.toMatchObject({ code: 'Unavailable', mayHaveActed: false })
  })

  it.each([
    ['a server that is no URL', { server: 'not a url' }],
    ['a proxy that is no URL', { proxy: 'not a url' }],
    ['a certificate that is none', { tls: { cert: 'x', key: 'y' } }],
    ['an authority that is none', { tls: { ca: '-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n' } }],
  ])('fails with an error of ours when the credentials have %s', async (_what, odd) => {
    const server = await serve((_, response) => response.end())
    const error = await open()
      .send(post('/'), { ...server.credentials, ...odd } as Credentials)
      .catch(thrown => thrown)
    expect(error).toBeInstanceOf(ShipmateError)
    expect(error).toMatchObject({ mayHaveActed: false })
  })

  it('fails with an error of ours when a header or path cannot be sent', async () => {
    const server = await serve((_, response) => response.end())
    const connection = open()
    for (const odd of [get('/', { headers: { authorization: 'Bearer a\nb' } }), get('/a b\n'), get('no slash')]) {
      const error = await connection.send(odd, server.credentials).catch(thrown => thrown)
      expect(error).toBeInstanceOf(ShipmateError)
    }
  })

  it('lost before the answer may have acted', async () => {
    const server = await serve(request => request.socket.destroy())
    await expect(open().send(post('/'), server.credentials)).rejects.toMatchObject({
      code: 'Unavailable',
      mayHaveActed: true,
    })
  })

  it('lost in the middle of the answer may have acted, and half an answer is none', async () => {
    const server = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('half')
      setImmediate(() => response.destroy())
    })
    await expect(open().send(post('/'), server.credentials)).rejects.toMatchObject({ mayHaveActed: true })
    const chunked = await serve((_, response) => {
      response.write('half')
      setImmediate(() => response.destroy())
    })
    await expect(open().send(post('/'), chunked.credentials)).rejects.toMatchObject({ mayHaveActed: true })
  })

  it('sees what is not HTTP', async () => {
    const sockets: Socket[] = []
    const server = createServer(socket => {
      sockets.push(socket)
      socket.on('error', () => {})
      socket.once('data', () => socket.write('SSH-2.0-OpenSSH_9.9\r\n\r\n'))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    const { port } = server.address() as { port: number }
    const odd: Credentials = { server: `http://127.0.0.1:${port}`, tls: {}, headers: {}, namespace: 'default' }
    await expect(open().send(post('/'), odd)).rejects.toMatchObject({ code: 'Garbled', mayHaveActed: true })
  })

  it('is not misled by hints that come before the answer', async () => {
    const server = await serve((_, response) => {
      response.writeEarlyHints({ link: '</x>; rel=preload' }, () => {
        response.writeHead(201).end('the answer')
      })
    })
    const connection = open()
    expect(await connection.send(get('/'), server.credentials)).toMatchObject({ status: 201, text: 'the answer' })
    const stream = await connection.send(get('/', { stream: true }), server.credentials)
    expect(stream.status).toBe(201)
    expect(await read(stream)).toBe('the answer')
  })
})

describe('a compressed answer', () => {
  it('is unpacked', async () => {
    const server = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('ż'.repeat(100_000)))
    })
    expect((await open().send(get('/'), server.credentials)).text).toBe('ż'.repeat(100_000))
  })

  it('is unpacked when it says no, too', async () => {
    const server = await serve((_, response) => {
      response.writeHead(404, { 'content-encoding': 'gzip' }).end(gzipSync('{"kind":"Status"}'))
    })
    expect(await open().send(get('/'), server.credentials)).toMatchObject({ status: 404, text: '{"kind":"Status"}' })
  })

  it.each([
    ['damaged', (good: Buffer) => Buffer.concat([good.subarray(0, 20), Buffer.from('damage'), good.subarray(26)])],
    ['cut', (good: Buffer) => good.subarray(0, good.length - 5)],
    ['not compressed', () => Buffer.from('plain')],
    ['empty', () => Buffer.alloc(0)],
  ])('that is %s is garbled', async (_what, harm) => {
    const server = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(harm(gzipSync('x'.repeat(1000) + Math.random())))
    })
    await expect(open().send(get('/'), server.credentials)).rejects.toMatchObject({ code: 'Garbled' })
  })
})

describe('a deadline', () => {
  it('ends a call without an answer, which may have acted', async () => {
    const { server, next } = await served()
    const clock = new VirtualClock()
    const answer = open({ clock }).send(post('/', { deadline: 2000 }), server.credentials)
    answer.catch(() => undefined)
    await next()
    await clock.advance(1999)
    await clock.advance(1)
    await expect(answer).rejects.toMatchObject({ code: 'DeadlineExceeded', mayHaveActed: true })
    await expect(answer).rejects.toThrow('create pods: no complete answer within 2000 ms')
    await until(() => server.connections.open === 0)
  })

  it('ends a call whose answer does not end', async () => {
    const { server, next } = await served()
    const clock = new VirtualClock()
    const answer = open({ clock, deadline: 1000 }).send(get('/'), server.credentials)
    answer.catch(() => undefined)
    const { response } = await next()
    response.write('half')
    await clock.advance(1000)
    await expect(answer).rejects.toMatchObject({ code: 'DeadlineExceeded' })
  })

  it('is shorter where less is left of the call, and never longer', async () => {
    const { server, next } = await served()
    for (const [left, time] of [
      [300, 300],
      [28_000, 1000],
    ] as const) {
      const clock = new VirtualClock()
      const answer = open({ clock, deadline: 1000 }).send(get('/', { left }), server.credentials)
      await next()
      await Promise.all([clock.advance(time), expect(answer).rejects.toThrow(`no complete answer within ${time} ms`)])
    }
  })

  it('holds for the beginning of a stream, not for the stream', async () => {
    const { server, next } = await served()
    const clock = new VirtualClock()
    const connection = open({ clock })
    const stuck = connection.send(get('/', { stream: true, deadline: 1000 }), server.credentials)
    stuck.catch(() => undefined)
    await next()
    await clock.advance(1000)
    await expect(stuck).rejects.toMatchObject({ code: 'DeadlineExceeded' })

    const asked = connection.send(get('/', { stream: true, deadline: 1000 }), server.credentials)
    const { response } = await next()
    response.flushHeaders()
    const stream = await asked
    await clock.advance(1_000_000)
    response.end('late')
    expect(await read(stream)).toBe('late')
    expect(clock.pending).toBe(0)
  })

  it('leaves no timer behind when the answer came', async () => {
    const server = await serve((_, response) => response.end('x'))
    const clock = new VirtualClock()
    const connection = open({ clock })
    await connection.send(get('/'), server.credentials)
    expect(clock.pending).toBe(0)
    await connection.send(get('/', { headers: { authorization: 'a\nb' } }), server.credentials).catch(() => undefined)
    expect(clock.pending).toBe(0)
    await connection.send(get('/'), { ...server.credentials, server: 'not a url' }).catch(() => undefined)
    expect(clock.pending).toBe(0)
  })
})

describe('a signal', () => {
  it('that was aborted before keeps anything from being sent', async () => {
    let requests = 0
    const server = await serve((_, response) => {
      requests++
      response.end()
    })
    const connection = open()
    const signal = AbortSignal.abort('enough')
    await expect(connection.send(post('/', { signal }), server.credentials)).rejects.toMatchObject({
      code: 'Aborted',
      cause: 'enough',
    })
    await connection.send(get('/'), server.credentials)
    expect(requests).toBe(1)
  })

  it('ends a call under way, and its connection', async () => {
    const { server, next } = await served()
    const control = new AbortController()
    const answer = open().send(post('/', { signal: control.signal }), server.credentials)
    answer.catch(() => undefined)
    await next()
    control.abort('enough')
    await expect(answer).rejects.toMatchObject({ code: 'Aborted', cause: 'enough', retry: 'never' })
    await until(() => server.connections.open === 0)
  })

  it('that is aborted after the answer changes nothing', async () => {
    const server = await serve((_, response) => response.end('x'))
    const connection = open()
    const control = new AbortController()
    await connection.send(get('/', { signal: control.signal }), server.credentials)
    control.abort()
    expect((await connection.send(get('/'), server.credentials)).text).toBe('x')
    expect(server.connections.open).toBe(server.connections.total)
  })

  it('ends a stream, after what came before', async () => {
    const { server, next } = await served()
    const control = new AbortController()
    const asked = open().send(get('/', { stream: true, signal: control.signal }), server.credentials)
    const { response } = await next()
    response.write('first')
    const stream = await asked
    const got: string[] = []
    const reading = (async () => {
      for await (const part of stream.chunks as AsyncIterable<Uint8Array>) {
        got.push(Buffer.from(part).toString())
        control.abort('enough')
      }
    })()
    await expect(reading).rejects.toMatchObject({ code: 'Aborted', cause: 'enough' })
    expect(got).toEqual(['first'])
    await until(() => server.connections.open === 0)
  })

  it('shared by many calls gathers no listeners', async () => {
    const server = await serve((_, response) => response.end('x'))
    const connection = open()
    const warnings: unknown[] = []
    const warn = (warning: Error) => warnings.push(warning)
    process.on('warning', warn)
    const { signal } = new AbortController()
    for (let i = 0; i < 30; i++) await connection.send(get('/', { signal }), server.credentials)
    await new Promise(resolve => setImmediate(resolve))
    process.off('warning', warn)
    expect(warnings).toEqual([])
  })
})

describe('a stream', () => {
  it('has a connection of its own: it holds up nobody, however many there are', async () => {
    const server = await serve((request, response) => {
      if (request.url === '/stream') response.write('x')
      else response.end('short')
    })
    const connection = open({ connections: 1 })
    const streams = []
    for (let i = 0; i < 20; i++)
      streams.push(await connection.send(get('/stream', { stream: true }), server.credentials))
    expect((await connection.send(get('/'), server.credentials)).text).toBe('short')
    expect(server.connections.total).toBe(21)
    expect(streams.every(stream => stream.status === 200)).toBe(true)
  })

  it('brings each piece as it comes', async () => {
    const { server, next } = await served()
    const asked = open().send(get('/', { stream: true }), server.credentials)
    const { response } = await next()
    response.write('a')
    const chunks = (await asked).chunks?.[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
    expect(Buffer.from((await chunks.next()).value).toString()).toBe('a')
    response.write('b')
    expect(Buffer.from((await chunks.next()).value).toString()).toBe('b')
    response.end()
    expect((await chunks.next()).done).toBe(true)
  })

  it('that the server refuses is an answer like any other', async () => {
    const server = await serve((_, response) => response.writeHead(410).end('too old'))
    const answer = await open().send(get('/', { stream: true }), server.credentials)
    expect(answer).toMatchObject({ status: 410, text: 'too old' })
    expect(answer.chunks).toBeUndefined()
  })

  it('that is cut fails after what came before', async () => {
    const { server, next } = await served()
    const asked = open().send(get('/', { stream: true }), server.credentials)
    const { response } = await next()
    response.write('first')
    const stream = await asked
    const got: string[] = []
    const reading = (async () => {
      for await (const part of stream.chunks as AsyncIterable<Uint8Array>) {
        got.push(Buffer.from(part).toString())
        server.cut()
      }
    })()
    await expect(reading).rejects.toBeInstanceOf(Unavailable)
    expect(got).toEqual(['first'])
  })

  it('is closed when its reader leaves', async () => {
    const { server, next } = await served()
    const asked = open().send(get('/', { stream: true }), server.credentials)
    const { response } = await next()
    response.write('first')
    for await (const _ of (await asked).chunks as AsyncIterable<Uint8Array>) break
    await until(() => server.connections.open === 0)
  })

  it('keeps no more than it must while its reader is slow', async () => {
    const piece = Buffer.alloc(256 * 1024)
    const total = 200
    let written = 0
    const server = await serve((_, response) => {
      const write = () => {
        while (written < total) {
          written++
          if (!response.write(piece)) return response.once('drain', write)
        }
        return response.end()
      }
      write()
    })
    const stream = await open().send(get('/', { stream: true }), server.credentials)
    const chunks = stream.chunks?.[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
    let bytes = (await chunks.next()).value.length
    // The server is held up: what is neither read nor in the buffers of the system cannot have been written.
    let last = -1
    while (last !== written) {
      last = written
      for (let turn = 0; turn < 50; turn++) await new Promise(resolve => setImmediate(resolve))
    }
    expect(written).toBeLessThan(total / 2)
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) bytes += next.value.length
    expect(bytes).toBe(total * piece.length)
  })
})

describe('new credentials', () => {
  it('that need other connections get new ones, while calls under way finish on the old', async () => {
    const { server, next } = await served({ requestCert: true, rejectUnauthorized: false })
    const connection = open()
    const one = {
      ...server.credentials,
      tls: { ...server.credentials.tls, ...server.authority.issue({ commonName: 'one' }) },
    }
    const two = {
      ...server.credentials,
      tls: { ...server.credentials.tls, ...server.authority.issue({ commonName: 'two' }) },
    }
    const who = ({ request }: { request: IncomingMessage }) =>
      (request.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } }).getPeerCertificate().subject
        .CN

    const stream = connection.send(get('/stream', { stream: true }), one)
    const streaming = await next()
    streaming.response.write('a')
    const first = connection.send(get('/'), one)
    const before = await next()
    const second = connection.send(get('/'), two)
    const after = await next()
    expect([who(streaming), who(before), who(after)]).toEqual(['one', 'one', 'two'])
    after.response.end('2')
    expect((await second).text).toBe('2')
    before.response.end('1')
    expect((await first).text).toBe('1')
    streaming.response.end('b')
    expect(await read(await stream)).toBe('ab')
    // The old ones go when their last call is done.
    await until(() => server.connections.open === 1)
  })

  it('that no connection can be made with leave those there are alone', async () => {
    const { server, next } = await served()
    const connection = open()
    const first = connection.send(get('/'), server.credentials)
    const { response } = await next()
    for (const odd of [{ server: 'not a url' }, { proxy: 'not a url' }]) {
      await expect(connection.send(get('/'), { ...server.credentials, ...odd })).rejects.toThrow(
        /no connection can be made/,
      )
    }
    response.end('1')
    expect((await first).text).toBe('1')
    const second = connection.send(get('/'), server.credentials)
    ;(await next()).response.end('2')
    expect((await second).text).toBe('2')
  })

  it('that only carry another token use the connections there are', async () => {
    const server = await serve((request, response) => response.end(request.headers.authorization))
    const connection = open()
    for (const token of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const headers = { authorization: `Bearer ${token}` }
      const answer = await connection.send(get('/', { headers }), { ...server.credentials, headers })
      expect(answer.text).toBe(`Bearer ${token}`)
    }
    expect(server.connections.total).toBeLessThanOrEqual(2)
  })
})

describe('close', () => {
  it('ends calls and streams under way, and closes every connection', async () => {
    const { server, next } = await served()
    const connection = createConnection()
    const call = connection.send(post('/'), server.credentials)
    call.catch(() => undefined)
    await next()
    const asked = connection.send(get('/', { stream: true }), server.credentials)
    const { response } = await next()
    response.write('a')
    const stream = await asked
    const reading = read(stream)
    reading.catch(() => undefined)
    await connection.close()
    await expect(call).rejects.toMatchObject({ code: 'Unavailable', mayHaveActed: true })
    await expect(reading).rejects.toBeInstanceOf(ShipmateError)
    await until(() => server.connections.open === 0)
  })

  it('ends calls on connections of old credentials too, and those that still wait', async () => {
    const { server, next } = await served()
    const connection = createConnection({ connections: 1 })
    const old = connection.send(get('/old'), server.credentials)
    old.catch(() => undefined)
    await next()
    const credentials = { ...server.credentials, tls: { ...server.credentials.tls, servername: 'localhost' } }
    const fresh = connection.send(get('/new'), credentials)
    const queued = connection.send(post('/queued'), credentials)
    for (const one of [fresh, queued]) one.catch(() => undefined)
    await next()
    await connection.close()
    await expect(old).rejects.toBeInstanceOf(Unavailable)
    await expect(fresh).rejects.toBeInstanceOf(Unavailable)
    await expect(queued).rejects.toMatchObject({ mayHaveActed: false })
    await until(() => server.connections.open === 0)
  })

  it('may be called twice, and lets nothing through afterwards', async () => {
    const server = await serve((_, response) => response.end())
    const connection = createConnection()
    await connection.send(get('/'), server.credentials)
    await Promise.all([connection.close(), connection.close()])
    await connection.close()
    await expect(connection.send(post('/'), server.credentials)).rejects.toMatchObject({ mayHaveActed: false })
  })
})
