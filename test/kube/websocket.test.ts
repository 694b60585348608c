import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { Aborted, BadRequest, Forbidden, NotFound, Unauthorized, Unavailable } from '../../controller/kube/errors.ts'
import type { CredentialsSource } from '../../controller/kube/kubeconfig.ts'
import { type OpenOptions, openChannels } from '../../controller/kube/websocket.ts'
import { createAuthority } from '../fixtures/certificates.ts'
import { type ChannelServerOptions, sourceOf, startChannelServer, statusBody } from '../fixtures/channel-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

const protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io']

async function open(source: CredentialsSource, options: Partial<OpenOptions> = {}) {
  const channels = await openChannels(source, { name: 'pod' }, 'exec', {
    query: new URLSearchParams([
      ['command', 'echo'],
      ['command', 'a b'],
    ]),
    protocols,
    ...options,
  })
  channels.close()
  return channels
}

/** An HTTP proxy, and what it was asked for. */
async function startProxy(status = 200) {
  const asked: { path: string | undefined; login: string | undefined }[] = []
  const server = createServer().on('connect', (request, socket) => {
    asked.push({ path: request.url, login: request.headers['proxy-authorization'] })
    socket.on('error', () => {})
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} No\r\n\r\n`)
      return
    }
    const [host, port] = (request.url ?? '').split(':')
    const there = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(there).pipe(socket)
    })
    there.on('error', () => {}).on('close', () => socket.destroy())
    socket.on('close', () => there.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    asked,
    host: `127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      await new Promise(resolve => server.close(resolve))
    },
  }
}

describe('opening a WebSocket', () => {
  it('asks for the pod in the namespace of the credentials, with these and the protocols', async () => {
    await using server = await startChannelServer()
    const channels = await open(server.source)
    expect(channels.protocol).toBe('v5.channel.k8s.io')
    expect(server.requests).toHaveLength(1)
    expect(server.requests[0]).toMatchObject({
      method: 'GET',
      url: '/api/v1/namespaces/own/pods/pod/exec?command=echo&command=a+b',
      headers: { authorization: 'Bearer token-1', 'sec-websocket-protocol': protocols.join(',') },
    })
  })

  it('keeps to the path under which the server stands', async () => {
    await using server = await startChannelServer()
    await open(sourceOf({ server: `${server.url}/k8s/clusters/c1` }))
    expect(server.requests[0]?.url).toMatch(/^\/k8s\/clusters\/c1\/api\/v1\/namespaces\/own\/pods\/pod\/exec\?/)
  })

  it('takes the older protocol where the server has no newer one', async () => {
    await using server = await startChannelServer({ protocol: () => 'v4.channel.k8s.io' })
    const channels = await open(server.source)
    expect(channels).toMatchObject({ protocol: 'v4.channel.k8s.io', canEnd: false })
  })

  it.each([
    [400, 'BadRequest', 'container x is not valid for pod pod', BadRequest],
    [404, 'NotFound', 'pods "pod" not found', NotFound],
    [500, 'InternalError', 'etcd is on fire', Unavailable],
  ])('turns a refusal with %i into its class', async (status, reason, message, type) => {
    await using server = await startChannelServer({
      refuse: () => ({ status, body: statusBody(status, reason, message) }),
    })
    const error = await open(server.source).catch(error => error)
    expect(error).toBeInstanceOf(type)
    expect(error).toMatchObject({ status, message: expect.stringContaining(message) })
  })

  it('names the rule that the server misses, whichever verb it asked for', async () => {
    const message =
      'pods "pod" is forbidden: User "u" cannot create resource "pods/exec" in API group "" in the namespace "own"'
    await using server = await startChannelServer({
      refuse: () => ({ status: 403, body: statusBody(403, 'Forbidden', message) }),
    })
    const error = await open(server.source).catch(error => error)
    expect(error).toBeInstanceOf(Forbidden)
    expect(error.rule).toEqual({ apiGroups: [''], resources: ['pods/exec'], verbs: ['create'] })
  })

  it('names it too where the server refuses without a word', async () => {
    const body = statusBody(403, 'Forbidden', 'pods "pod" is forbidden: ')
    await using server = await startChannelServer({ refuse: () => ({ status: 403, body }) })
    const error = await open(server.source).catch(error => error)
    expect(error).toBeInstanceOf(Forbidden)
    expect(error.rule).toEqual({ apiGroups: [''], resources: ['pods/exec'], verbs: ['create'] })
    expect(error.message).toContain('the user cannot create resource "pods/exec"; the missing rule is')
  })

  it('names none where something else forbids it', async () => {
    const message = 'pods "pod" is forbidden: admission webhook "no-exec" denied the request'
    await using server = await startChannelServer({
      refuse: () => ({ status: 403, body: statusBody(403, 'Forbidden', message) }),
    })
    const error = await open(server.source).catch(error => error)
    expect(error).toBeInstanceOf(Forbidden)
    expect(error.message).toBe(`get pods/exec pod in namespace own: ${message}`)
  })

  it("keeps the beginning of a page that is not the server's own", async () => {
    await using server = await startChannelServer({
      refuse: () => ({ status: 502, body: `<h1>bad gateway</h1>${'x'.repeat(1 << 20)}` }),
    })
    await expect(open(server.source)).rejects.toThrow(/HTTP status 502: <h1>bad gateway<\/h1>x{1,200}$/)
  })

  it.each<[string, ChannelServerOptions]>([
    ['is no WebSocket', { refuse: () => ({ status: 200, body: 'hello' }) }],
    ['agrees on no protocol', { protocol: () => false }],
  ])('is garbled when the answer %s', async (_what, options) => {
    await using server = await startChannelServer(options)
    await expect(open(server.source)).rejects.toMatchObject({ code: 'Garbled' })
  })

  it('asks for new credentials once when they are refused', async () => {
    const refuse: ChannelServerOptions['refuse'] = ({ headers }) =>
      headers.authorization === 'Bearer token-2'
        ? undefined
        : { status: 401, body: statusBody(401, 'Unauthorized', 'who?') }
    await using server = await startChannelServer({ refuse })
    await open(server.source)
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer token-1', 'Bearer token-2'])
  })

  it('does not ask a third time', async () => {
    await using server = await startChannelServer({ refuse: () => ({ status: 401 }) })
    await expect(open(server.source)).rejects.toBeInstanceOf(Unauthorized)
    expect(server.requests).toHaveLength(2)
  })

  it('says that the server did nothing where it was not reached', async () => {
    const server = await startChannelServer()
    await server[Symbol.asyncDispose]()
    const error = await open(server.source).catch(error => error)
    expect(error).toBeInstanceOf(Unavailable)
    expect(error).toMatchObject({
      code: 'Unavailable',
      mayHaveActed: false,
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it('is given up at its deadline', async () => {
    const clock = new VirtualClock()
    const arrived = Promise.withResolvers<'silence'>()
    const refuse = () => {
      arrived.resolve('silence')
      return 'silence' as const
    }
    await using server = await startChannelServer({ refuse })
    const opening = open(server.source, { clock, openDeadline: 7000 })
    const caught = opening.catch(error => error)
    await arrived.promise
    await clock.advance(7000)
    expect(await caught).toMatchObject({
      code: 'DeadlineExceeded',
      message: expect.stringContaining('not open within 7000 ms'),
    })
    expect(clock.pending).toBe(0)
  })

  it('is given up when aborted: before, while the server thinks, and while a plugin looks for credentials', async () => {
    const stop = new AbortController()
    const refuse = () => {
      stop.abort('enough')
      return 'silence' as const
    }
    await using server = await startChannelServer({ refuse })
    await expect(open(server.source, { signal: stop.signal })).rejects.toBeInstanceOf(Aborted)
    await expect(open(server.source, { signal: stop.signal })).rejects.toBeInstanceOf(Aborted)
    expect(server.requests).toHaveLength(1)

    const later = new AbortController()
    const current = () => {
      queueMicrotask(() => later.abort('enough'))
      return new Promise<never>(() => {})
    }
    await expect(open({ ...server.source, current }, { signal: later.signal })).rejects.toBeInstanceOf(Aborted)
  })
})

describe('a server with TLS', () => {
  const authority = createAuthority()
  const tls = authority.issue({ commonName: 'server', ip: ['127.0.0.1'] })

  it('is checked against the authority of the credentials', async () => {
    await using server = await startChannelServer({ tls })
    await open(sourceOf({ server: server.url, tls: { ca: authority.cert } }))
    await open(sourceOf({ server: server.url, tls: { rejectUnauthorized: false } }))
    await expect(open(sourceOf({ server: server.url }))).rejects.toMatchObject({
      code: 'Unavailable',
      mayHaveActed: false,
    })
    expect(server.requests).toHaveLength(2)
  })

  it('is checked against the name that the credentials give it', async () => {
    const named = authority.issue({ commonName: 'server', dns: ['kubernetes.example'] })
    await using server = await startChannelServer({ tls: named })
    await open(sourceOf({ server: server.url, tls: { ca: authority.cert, servername: 'kubernetes.example' } }))
    await expect(open(sourceOf({ server: server.url, tls: { ca: authority.cert } }))).rejects.toThrow(/altnames/)
  })

  it('is reached through a proxy', async () => {
    await using server = await startChannelServer({ tls })
    await using proxy = await startProxy()
    await open(sourceOf({ server: server.url, tls: { ca: authority.cert }, proxy: `http://me:p%40ss@${proxy.host}` }))
    const login = `Basic ${Buffer.from('me:p@ss').toString('base64')}`
    expect(proxy.asked).toEqual([{ path: `127.0.0.1:${server.port}`, login }])
  })
})

describe('a proxy', () => {
  it('leads to a server without TLS too', async () => {
    await using server = await startChannelServer()
    await using proxy = await startProxy()
    await open(sourceOf({ server: server.url, proxy: `http://${proxy.host}` }))
    expect(proxy.asked).toEqual([{ path: `127.0.0.1:${server.port}`, login: undefined }])
  })

  it('that refuses is named', async () => {
    await using proxy = await startProxy(407)
    const opening = open(sourceOf({ server: 'https://kubernetes.example', proxy: `http://${proxy.host}` }))
    await expect(opening).rejects.toThrow(`the proxy ${proxy.host} answered with HTTP status 407`)
    expect(proxy.asked).toEqual([{ path: 'kubernetes.example:443', login: undefined }])
  })

  it('of a kind that cannot be used is named', async () => {
    const opening = open(sourceOf({ server: 'https://kubernetes.example', proxy: 'socks5://proxy.example:1080' }))
    await expect(opening).rejects.toThrow('socks5://proxy.example:1080')
  })
})
