import { describe, expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import { CommandFailed, execAppClient, httpAppClient } from '../../../controller/toolkit/clients/app.ts'
import { createHttpClient } from '../../../controller/toolkit/clients/http.ts'
import { tail } from '../../../controller/toolkit/clients/tail.ts'
import { frame, startChannelServer, statusBody } from '../../fixtures/channel-server.ts'
import { startLocalServer } from '../../fixtures/https-server.ts'

const success = JSON.stringify({ metadata: {}, status: 'Success' })
const ended = (code: number) =>
  JSON.stringify({ status: 'Failure', details: { causes: [{ reason: 'ExitCode', message: String(code) }] } })

/** A pod whose containers do as `play` says, and a client of it. */
async function container(play: (socket: WebSocket) => void) {
  const server = await startChannelServer({ onSocket: play })
  const app = execAppClient({
    credentials: server.source,
    pod: { name: 'db-0', namespace: 'ns' },
    container: 'main',
    actions: {
      flush: ({ level }) => ['db', 'flush', `--level=${level}`],
      load: ({ dump }) => ({ command: ['db', 'load'], stdin: String(dump) }),
    },
  })
  const query = () => new URL(server.requests.at(-1)?.url ?? '', server.url).searchParams
  return { server, app, query, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

describe('an application that is asked by commands', () => {
  it('carries them out in the container of that name, as a list that no shell reads', async () => {
    await using w = await container(socket => {
      socket.send(frame(1, '{"pages":'))
      socket.send(frame(1, '3}'))
      socket.send(frame(3, success))
    })
    expect(await w.app.execute('flush', { level: '1; rm -rf /' })).toEqual({ text: '{"pages":3}', value: { pages: 3 } })
    expect(w.query().getAll('command')).toEqual(['db', 'flush', '--level=1; rm -rf /'])
    expect(w.query().get('container')).toBe('main')
  })

  it('is given what it reads', async () => {
    await using w = await container(socket => {
      socket.on('message', (message: Buffer) => {
        if (message[0] === 0) socket.send(frame(1, message.subarray(1)))
        else socket.send(frame(3, success))
      })
    })
    expect(await w.app.execute('load', { dump: 'rows' })).toEqual({ text: 'rows' })
  })

  it('that ends with another exit code than 0 is an error with the end of stderr, and no parameter', async () => {
    await using w = await container(socket => {
      socket.send(frame(2, `${'x'.repeat(100_000)}disk full\n`))
      socket.send(frame(3, ended(3)))
    })
    const error = await w.app.execute('flush', { level: 'hidden' }).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(CommandFailed)
    expect(error).toMatchObject({ code: 'ExecFailed', exitCode: 3 })
    const { message } = error as CommandFailed
    expect(message).toMatch(/^flush in container main of pod db-0 ended with exit code 3: …x+disk full$/)
    expect(message).not.toContain('hidden')
    expect(message.length).toBeLessThan(2200)
  })

  it('must name the container', () => {
    const credentials = {} as never
    expect(() => execAppClient({ credentials, pod: { name: 'p' }, container: '', actions: {} })).toThrow(/by name/)
  })

  it('is not asked for what is not declared', async () => {
    await using w = await container(() => {})
    await expect(w.app.execute('flsh')).rejects.toThrow('there is no action flsh; did you mean "flush"?')
    await expect(w.app.execute('constructor')).rejects.toThrow('there is no action constructor')
    expect(w.server.requests).toHaveLength(0)
  })

  it('is within its time, and its output within bounds', async () => {
    await using w = await container(() => {})
    await expect(w.app.execute('flush', {}, { timeout: 50 })).rejects.toMatchObject({ code: 'DeadlineExceeded' })
    await using long = await container(socket => {
      socket.send(frame(1, 'x'.repeat(2 << 20)))
      socket.send(frame(3, success))
    })
    await expect(long.app.execute('flush')).rejects.toThrow('wrote more than 1048576 bytes')
  })

  it('answers a ping, or says why not', async () => {
    let code = success
    await using w = await container(socket => socket.send(frame(3, code)))
    expect(await w.app.ping()).toEqual({ reachable: true, message: 'it answers' })
    expect(w.query().getAll('command')).toEqual(['true'])
    code = ended(1)
    expect(await w.app.ping()).toEqual({
      reachable: false,
      message: 'ping in container main of pod db-0 ended with exit code 1',
    })
    await using gone = await startChannelServer({
      refuse: () => ({ status: 404, body: statusBody(404, 'NotFound', 'pods "db-0" not found') }),
    })
    const app = execAppClient({ credentials: gone.source, pod: { name: 'db-0' }, container: 'main', actions: {} })
    expect(await app.ping()).toMatchObject({ reachable: false, message: expect.stringContaining('not found') })
    await expect(app.ping({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'Aborted' })
  })
})

describe('an application that is asked over HTTP', () => {
  it('carries out what was declared, and answers a ping or says why not', async () => {
    let status = 200
    await using server = await startLocalServer((request, response) => {
      request.resume().on('end', () => response.writeHead(status).end(`{"did":"${request.method} ${request.url}"}`))
    })
    await using http = createHttpClient({ url: server.url, tls: { ca: server.authority.cert }, tries: 1 })
    const app = httpAppClient({
      http,
      actions: { backup: ({ to }) => ({ method: 'POST', path: '/backup', json: { to } }) },
      ping: { path: '/healthz' },
    })
    expect(await app.execute('backup', { to: '/b' })).toMatchObject({ value: { did: 'POST /backup' } })
    expect(await app.ping()).toEqual({ reachable: true, message: 'it answers' })
    await expect(app.execute('bakcup')).rejects.toThrow('did you mean "backup"?')
    status = 500
    await expect(app.execute('backup', { to: 'hidden' })).rejects.toMatchObject({ status: 500 })
    expect(await app.ping()).toMatchObject({ reachable: false, message: expect.stringContaining('HTTP status 500') })
    await expect(app.ping({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'Aborted' })
    await server.stop()
    expect(await app.ping({ timeout: 1000 })).toMatchObject({ reachable: false })
  })
})

describe('the end of a stream', () => {
  it('is whole characters, whatever pieces it came in', () => {
    const end = tail(5)
    expect(end.text()).toBe('')
    end.add(Buffer.from('ab'))
    expect(end.text()).toBe('ab')
    for (const byte of Buffer.from('ääää')) end.add(Buffer.of(byte))
    expect(end.text()).toBe('…ää')
    end.add(Buffer.from('x'.repeat(100)))
    expect(end.text()).toBe('…xxxxx')
  })
})
