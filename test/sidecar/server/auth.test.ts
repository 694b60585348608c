import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Authority, createAuthority, type KeyPair } from '../../fixtures/certificates.ts'
import { aims, pod } from '../../fixtures/sidecar-agent.ts'
import { purposeless, purposesCa, serverOnly } from '../../fixtures/sidecar-purposes.ts'
import { read } from '../../fixtures/sidecar-reader.ts'
import { type Came, call, type Sent, type StartOptions, start, temporary } from '../../fixtures/sidecar-server.ts'
import { VirtualClock } from '../../fixtures/virtual-clock.ts'

const controller = 'controller.shipmate.dev'
const codeOf = ({ status, json }: Came) => [status, json?.code]
const named = { 'shipmate-pod-uid': pod.uid }
const backup = { action: 'backup' }

const serverOf = (authority: Authority) =>
  authority.issue({ commonName: 'app', dns: ['app.shop.sidecar.shipmate.dev'], ip: ['127.0.0.1'] })
const clientOf = (authority: Authority, name = controller) => authority.issue({ commonName: 'x', dns: [name] })

/** A tls-dir as Kubernetes mounts a Secret: `..data` is a link that is swapped. */
async function mount() {
  const tlsDir = await temporary()
  let version = 0
  return {
    tlsDir,
    async put(files: Record<string, string>) {
      const folder = `..v${version++}`
      await mkdir(join(tlsDir, folder))
      for (const [name, text] of Object.entries(files)) {
        await writeFile(join(tlsDir, folder, name), text)
        await symlink(join('..data', name), join(tlsDir, name)).catch(() => undefined)
      }
      await symlink(folder, join(tlsDir, '..new'))
      await rename(join(tlsDir, '..new'), join(tlsDir, '..data'))
    },
  }
}

const secretOf = (authority: Authority, cas: string[] = [authority.cert]) => {
  const { cert, key } = serverOf(authority)
  return { 'tls.crt': cert, 'tls.key': key, 'ca.crt': cas.join('') }
}

/** How to ask over TLS, with a certificate or without. */
function over(authority: Authority, pair?: KeyPair, headers: Record<string, string> = named): Sent {
  const tls = { ca: authority.cert, rejectUnauthorized: true, ...(pair ? { cert: pair.cert, key: pair.key } : {}) }
  const agent = new HttpsAgent({ keepAlive: false, maxCachedSessions: 0, ...tls })
  onTestFinished(() => agent.destroy())
  return { send: httpsRequest, agent, headers }
}

async function startMtls(options: StartOptions = {}, cas?: string[]) {
  const authority = createAuthority()
  const mounted = await mount()
  await mounted.put(secretOf(authority, cas && [authority.cert, ...cas]))
  const started = await start({ auth: 'mtls', tlsDir: mounted.tlsDir, ...options })
  return { ...started, ...mounted, authority }
}

describe('--auth mtls', () => {
  it('lets the controller in', async () => {
    const { port, authority } = await startMtls()
    const sent = over(authority, clientOf(authority))
    expect((await call(port, 'GET', '/v1/state', sent)).status).toBe(200)
    expect((await call(port, 'PUT', '/v1/runs/a', { ...sent, body: { ...backup, ...aims } })).status).toBe(201)
  })

  it('refuses, in this order: nobody, a stranger, another name, no pod, another pod, no route', async () => {
    const { port, authority } = await startMtls()
    const stranger = clientOf(createAuthority())
    const other = clientOf(authority, 'app.shop.sidecar.shipmate.dev')
    const wildcard = clientOf(authority, '*.shipmate.dev')
    const late = authority.issue({ commonName: 'x', dns: [controller], notAfter: new Date(Date.now() - 60_000) })
    const cases: [KeyPair | undefined, Record<string, string>, number, string][] = [
      [undefined, {}, 401, 'Unauthorized'],
      [stranger, {}, 401, 'Unauthorized'],
      [late, {}, 401, 'Unauthorized'],
      [other, {}, 403, 'Forbidden'],
      [wildcard, {}, 403, 'Forbidden'],
      [clientOf(authority), {}, 400, 'InvalidBody'],
      [clientOf(authority), { 'shipmate-pod-uid': 'another' }, 409, 'WrongPod'],
      [clientOf(authority), named, 404, 'NotFound'],
    ]
    for (const [pair, headers, status, code] of cases) {
      const came = await call(port, 'PUT', '/nothing', { ...over(authority, pair, headers), body: '{' })
      expect(codeOf(came)).toEqual([status, code])
    }
  })

  it('refuses a certificate that is not for clients, whatever its name', async () => {
    const { port, authority } = await startMtls({}, [purposesCa])
    for (const pair of [serverOnly, purposeless]) {
      expect(codeOf(await call(port, 'GET', '/v1/state', over(authority, pair)))).toEqual([401, 'Unauthorized'])
    }
  })

  it('knows the controller by its alternative name, not by its common name', async () => {
    const { port, authority } = await startMtls()
    const pair = authority.issue({ commonName: controller, dns: ['x.example'] })
    expect(codeOf(await call(port, 'GET', '/v1/state', over(authority, pair)))).toEqual([403, 'Forbidden'])
    const nameless = authority.issue({ commonName: controller })
    expect(codeOf(await call(port, 'GET', '/v1/state', over(authority, nameless)))).toEqual([403, 'Forbidden'])
  })

  it('takes no client whose certificate has expired meanwhile', async () => {
    const clock = new VirtualClock(Date.now())
    const { port, authority } = await startMtls({ clock })
    const pair = authority.issue({ commonName: 'x', dns: [controller], notAfter: new Date(Date.now() + 3_600_000) })
    const sent = over(authority, pair)
    expect((await call(port, 'GET', '/v1/state', sent)).status).toBe(200)
    clock.jumpWall(7_200_000)
    expect(codeOf(await call(port, 'GET', '/v1/state', sent))).toEqual([401, 'Unauthorized'])
  })

  it.each(['podUid', 'configHash', 'journalId', 'fence'] as const)('asks for %s in a PUT', async field => {
    const { port, authority } = await startMtls()
    const { [field]: _left, ...rest } = aims
    const came = await call(port, 'PUT', '/v1/runs/a', {
      ...over(authority, clientOf(authority)),
      body: { ...backup, ...rest, unknown: 1 },
    })
    expect(codeOf(came)).toEqual([400, 'InvalidBody'])
    expect(came.json.detail).toContain(`"${field}" is missing`)
  })

  it('speaks TLS 1.3 only', async () => {
    const { port, authority } = await startMtls()
    const { cert, key } = clientOf(authority)
    const refused = new Promise((_resolve, reject) => {
      const socket = connectTls({ port, host: '127.0.0.1', ca: authority.cert, cert, key, maxVersion: 'TLSv1.2' })
      socket.on('error', reject)
    })
    await expect(refused).rejects.toThrow(/protocol version/)
  })

  it('answers nothing to who speaks no TLS, and goes on', async () => {
    const { port, authority } = await startMtls()
    await expect(call(port, 'GET', '/v1/state')).rejects.toThrow()
    expect((await call(port, 'GET', '/v1/state', over(authority, clientOf(authority)))).status).toBe(200)
  })

  it('gives out no session to resume', async () => {
    const { port, authority } = await startMtls()
    const { cert, key } = clientOf(authority)
    const socket = connectTls({ port, host: '127.0.0.1', ca: authority.cert, cert, key })
    let sessions: Buffer[] = []
    socket.on('session', session => sessions.push(session))
    socket.write(`GET /v1/state HTTP/1.1\r\nHost: x\r\nConnection: close\r\nShipmate-Pod-Uid: ${pod.uid}\r\n\r\n`)
    socket.resume()
    await new Promise(resolve => socket.on('close', resolve))
    const resumed = await Promise.all(
      sessions.map(
        session =>
          new Promise<boolean>((resolve, reject) => {
            const again = connectTls({ port, host: '127.0.0.1', ca: authority.cert, cert, key, session }, () => {
              resolve(again.isSessionReused())
              again.destroy()
            })
            again.on('error', reject)
          }),
      ),
    )
    sessions = []
    expect(resumed).not.toContain(true)
  })

  it('has the same gate for readers of events', async () => {
    const { port, authority, agent } = await startMtls()
    const tls = { ca: authority.cert, ...clientOf(authority) }
    const reader = await read(port, '', { ...tls, headers: named })
    agent.change('A')
    await expect.poll(() => reader.heard.map(({ type }) => type)).toEqual(['reset', 'state'])
    await expect(read(port, '', { ca: authority.cert, headers: named })).rejects.toThrow('401')
    const other = clientOf(authority, 'x.example')
    await expect(read(port, '', { ca: authority.cert, ...other, headers: named })).rejects.toThrow('403')
    await expect(read(port, '', tls)).rejects.toThrow('400')
    await expect(read(port, '', { ...tls, headers: { 'shipmate-pod-uid': 'x' } })).rejects.toThrow('409')
  })

  it('waits for certificates, with the port closed and the reason at /readyz', async () => {
    const authority = createAuthority()
    const { tlsDir, put } = await mount()
    const { servers, publicPort } = await start({ auth: 'mtls', tlsDir, reloadEvery: 5, opened: false })
    const listening: string[] = []
    servers.onListening(({ api }) => listening.push(api))
    const opened = servers.openApi()
    const files = ['tls.crt', 'tls.key', 'ca.crt'].map(name => join(tlsDir, name))
    expect(servers.waiting()).toEqual(files.map(file => `${file} is not there`))
    const early = await call(publicPort, 'GET', '/readyz')
    expect([early.status, early.text]).toEqual([503, expect.stringContaining('tls.key is not there')])
    // A half-written set, then one that does not belong together, then the right one.
    const secret = secretOf(authority)
    await put({ ...secret, 'ca.crt': '' })
    await expect.poll(servers.waiting).toEqual([expect.stringContaining('ca.crt has no certificate')])
    await put({ ...secret, 'tls.key': serverOf(authority).key })
    await expect.poll(servers.waiting).toEqual([expect.stringContaining('tls.key is not the key of tls.crt')])
    expect(servers.api).toBeUndefined()
    await put(secret)
    await opened
    expect(servers.waiting()).toEqual([])
    expect(listening).toEqual([servers.api])
    const port = Number(servers.api?.split(':').at(-1))
    expect((await call(port, 'GET', '/v1/state', over(authority, clientOf(authority)))).status).toBe(200)
    expect((await call(publicPort, 'GET', '/readyz')).status).toBe(200)
  })

  it('takes new certificates without a restart; two authorities while they change; never a half-written set', async () => {
    const { port, authority: old, put, lines } = await startMtls({ reloadEvery: 5 })
    const next = createAuthority('next-ca')
    const get = (server: Authority, client: Authority) =>
      call(port, 'GET', '/v1/state', over(server, clientOf(client))).then(({ status }) => status)
    const logged = (text: string) => () => lines.filter(line => line.includes(text)).length
    expect(await get(old, next)).toBe(401)
    await put(secretOf(old, [old.cert, next.cert]))
    await expect.poll(logged('certificates have changed')).toBe(1)
    expect([await get(old, old), await get(old, next)]).toEqual([200, 200])
    await put({ ...secretOf(next), 'tls.key': '-----BEGIN PRIVATE KEY-----\nMIG' })
    await expect.poll(logged('changed files are not used')).toBe(1)
    expect([await get(old, old), await get(old, next)]).toEqual([200, 200])
    await put(secretOf(next))
    await expect.poll(logged('certificates have changed')).toBe(2)
    expect([await get(next, next), await get(next, old)]).toEqual([200, 401])
    expect(logged('changed files are not used')()).toBe(1)
  })

  it('can be stopped while it waits', async () => {
    const { tlsDir } = await mount()
    const { servers } = await start({ auth: 'mtls', tlsDir, opened: false })
    const opened = servers.openApi()
    await servers.close()
    await opened
    expect(servers.api).toBeUndefined()
  })
})

describe('--auth token', () => {
  async function startToken(options: StartOptions = {}) {
    const tokenFile = join(await temporary(), 'token')
    await writeFile(tokenFile, 's3cret\n')
    return { tokenFile, ...(await start({ auth: 'token', tokenFile, ...options })) }
  }
  const bearer = (token: string) => ({ headers: { authorization: token } })

  it.each(['Bearer s3cret', 'bearer  s3cret'])('lets "%s" in', async token => {
    const { port } = await startToken()
    expect((await call(port, 'GET', '/v1/state', bearer(token))).status).toBe(200)
  })

  it.each(['Bearer', 'Bearer s3cre', 'Bearer s3cret2', 'Basic s3cret', 's3cret', '', 'Bearer s3cret x'])(
    'keeps "%s" out',
    async token => {
      const { port } = await startToken()
      const came = await call(port, 'GET', '/nothing', bearer(token))
      expect(codeOf(came)).toEqual([401, 'Unauthorized'])
      expect(came.headers['www-authenticate']).toBe('Bearer realm="shipmate"')
      expect(came.text).not.toContain('s3cret')
    },
  )

  it('asks for the fields of a PUT, not for the header', async () => {
    const { port } = await startToken()
    const sent = bearer('Bearer s3cret')
    expect(codeOf(await call(port, 'PUT', '/v1/runs/a', { ...sent, body: backup }))).toEqual([400, 'InvalidBody'])
    expect((await call(port, 'PUT', '/v1/runs/a', { ...sent, body: { ...backup, ...aims } })).status).toBe(201)
  })

  it('takes a new token without a restart, and keeps the last one when there is none', async () => {
    const { port, tokenFile, lines } = await startToken({ reloadEvery: 5 })
    const get = async (token: string) => (await call(port, 'GET', '/v1/state', bearer(`Bearer ${token}`))).status
    await writeFile(tokenFile, '')
    await expect.poll(() => lines.join()).toContain('token file is empty')
    expect(await get('s3cret')).toBe(200)
    await rm(tokenFile)
    await expect.poll(() => lines.join()).toContain('is not there')
    expect(await get('s3cret')).toBe(200)
    await writeFile(tokenFile, 'other')
    await expect.poll(() => get('other')).toBe(200)
    expect(await get('s3cret')).toBe(401)
  })

  it('waits for a token', async () => {
    const tokenFile = join(await temporary(), 'token')
    const { servers } = await start({ auth: 'token', tokenFile, reloadEvery: 5, opened: false })
    const opened = servers.openApi()
    expect(servers.waiting()).toEqual([`${tokenFile} is not there`])
    await writeFile(tokenFile, 'x')
    await opened
    expect(servers.api).toMatch(/^127\.0\.0\.1:\d+$/)
  })

  it('speaks TLS where there is a tls-dir', async () => {
    const authority = createAuthority()
    const mounted = await mount()
    const { cert, key } = serverOf(authority)
    await mounted.put({ 'tls.crt': cert, 'tls.key': key })
    const { port } = await startToken({ tlsDir: mounted.tlsDir })
    const sent = over(authority, undefined, { authorization: 'Bearer s3cret' })
    expect((await call(port, 'GET', '/v1/state', sent)).status).toBe(200)
    expect((await call(port, 'GET', '/v1/state', over(authority))).status).toBe(401)
  })
})

describe('what cannot be served', () => {
  it.each<[StartOptions, RegExp]>([
    [
      { auth: 'none', listen: '0.0.0.0:0' },
      /--auth none is for loopback addresses only, and --listen is "0\.0\.0\.0:0"/,
    ],
    [{ auth: 'none', listen: ':0' }, /loopback/],
    [{ auth: 'none', listen: '[::]:0' }, /loopback/],
    [{ auth: 'none', listen: 'example.com:0' }, /loopback/],
    [{ auth: 'mtls' }, /--auth mtls needs --tls-dir/],
    [{ auth: 'token' }, /--auth token needs --token-file/],
    [{ auth: 'token', tokenFile: 'x', listen: '0.0.0.0:0' }, /--auth token needs --tls-dir/],
    [{ listen: '127.0.0.1' }, /--listen is "127\.0\.0\.1"; it must be HOST:PORT/],
    [{ listen: '127.0.0.1:70000' }, /HOST:PORT/],
    [{ publicListen: 'x:y' }, /--public-listen is "x:y"/],
  ])('%o is refused', async (options, message) => {
    await expect(start(options)).rejects.toThrow(message)
  })

  it('loopback has many names', async () => {
    for (const listen of ['localhost:0', '127.1.2.3:0']) await start({ listen })
  })

  it('a public port that is taken is told by its flag, and nothing stays open', async () => {
    const { publicPort } = await start()
    const stateDir = await temporary()
    await expect(start({ stateDir, publicListen: `127.0.0.1:${publicPort}` })).rejects.toThrow(
      `--public-listen is "127.0.0.1:${publicPort}", and that cannot be listened on: EADDRINUSE`,
    )
    await start({ stateDir })
  })

  it('a port of the API that is taken is told by /readyz, and had as soon as it is free', async () => {
    const first = await start()
    const clock = new VirtualClock()
    const listen = `127.0.0.1:${first.port}`
    const { servers, publicPort, lines } = await start({ listen, clock, opened: false })
    const opening = servers.openApi()
    await expect.poll(() => clock.pending).toBe(1)
    const sentence = `the API cannot listen on ${listen}: EADDRINUSE`
    expect(servers.waiting()).toEqual([sentence])
    expect(await call(publicPort, 'GET', '/readyz')).toMatchObject({ status: 503, text: `${sentence}\n` })
    await clock.advance(1000)
    await expect.poll(() => clock.pending).toBe(1)
    expect(lines.filter(line => line.includes('EADDRINUSE'))).toHaveLength(1)
    await first.servers.close()
    await clock.advance(1000)
    await opening
    expect([servers.api, servers.waiting()]).toEqual([listen, []])
    expect((await call(publicPort, 'GET', '/readyz')).status).toBe(200)
    expect((await call(first.port, 'GET', '/v1/state')).status).toBe(200)
  })

  it('a port of the API that stays taken holds no end', async () => {
    const { port } = await start()
    const clock = new VirtualClock()
    const { servers } = await start({ listen: `127.0.0.1:${port}`, clock, opened: false })
    const opening = servers.openApi()
    await expect.poll(() => clock.pending).toBe(1)
    await servers.close()
    await opening
    expect(clock.pending).toBe(0)
  })
})
