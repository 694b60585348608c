import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { inspect } from 'node:util'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { connect } from '../../controller/kube/access.ts'
import { authenticated } from '../../controller/kube/auth.ts'
import { createConnection } from '../../controller/kube/connection.ts'
import { credentialsFrom, type KubeConfigOptions } from '../../controller/kube/kubeconfig.ts'
import type { Request } from '../../controller/kube/transport.ts'
import { ShipmateError } from '../../shared/errors.ts'
import { createAuthority } from '../fixtures/certificates.ts'
import { startConnectProxy, startLocalServer } from '../fixtures/https-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'shipmate-kubeconfig-'))
  const before = { ...process.env }
  onTestFinished(async () => {
    process.env = before
    await rm(dir, { recursive: true, force: true })
  })
})

async function put(name: string, text: string): Promise<string> {
  const path = join(dir, name)
  await writeFile(path, text)
  return path
}

const base64 = (text: string) => Buffer.from(text).toString('base64')

interface Parts {
  cluster?: object
  user?: object
  namespace?: string
  context?: object
}

/** A kubeconfig of one context, `here`. */
function kubeconfig({ cluster = {}, user = {}, namespace, context = {} }: Parts = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u', ...(namespace ? { namespace } : {}), ...context } }],
    clusters: [{ name: 'c', cluster: { server: 'https://one.example:6443', ...cluster } }],
    users: [{ name: 'u', user }],
  })
}

const from = async (parts: Parts, options: KubeConfigOptions = {}) =>
  credentialsFrom({ file: await put('config', kubeconfig(parts)), ...options })
const read = async (parts: Parts, options: KubeConfigOptions = {}) => (await from(parts, options)).current()

const why = (run: () => unknown): ShipmateError => {
  try {
    run()
  } catch (error) {
    expect(error).toBeInstanceOf(ShipmateError)
    return error as ShipmateError
  }
  throw new Error('it did not fail')
}

describe('a kubeconfig', () => {
  it('says where the server is, and in which namespace we are', async () => {
    expect(await read({ namespace: 'shop' })).toMatchObject({ server: 'https://one.example:6443', namespace: 'shop' })
    expect(await read({ cluster: { server: 'https://one.example/' } })).toMatchObject({
      server: 'https://one.example',
      namespace: 'default',
    })
  })

  it('is YAML or JSON', async () => {
    const file = await put(
      'yaml',
      `
apiVersion: v1
kind: Config
current-context: here
contexts:
- name: here
  context: {cluster: c, user: u, namespace: shop}
clusters:
- name: c
  cluster:
    server: https://one.example
users:
- name: u
  user:
    token: abc
`,
    )
    expect(await credentialsFrom({ file }).current()).toMatchObject({
      server: 'https://one.example',
      headers: { authorization: 'Bearer abc' },
      namespace: 'shop',
    })
  })

  it('has contexts, of which one may be chosen', async () => {
    const config = JSON.parse(kubeconfig())
    config.clusters.push({ name: 'other', cluster: { server: 'https://two.example' } })
    config.contexts.push({ name: 'there', context: { cluster: 'other', user: 'u' } })
    const file = await put('config', JSON.stringify(config))
    expect((await credentialsFrom({ file }).current()).server).toBe('https://one.example:6443')
    expect((await credentialsFrom({ file, context: 'there' }).current()).server).toBe('https://two.example')
  })

  it('that lacks the context asked for says which it has', async () => {
    const file = await put('config', kubeconfig())
    expect(why(() => credentialsFrom({ file, context: 'nowhere' })).message).toMatch(/"nowhere".*it has: here/)
  })

  it('that lacks what its context names says so', async () => {
    const cluster = await put('c', kubeconfig({ context: { cluster: 'gone' } }))
    expect(why(() => credentialsFrom({ file: cluster })).message).toMatch(/here/)
    const user = await put('u', kubeconfig({ context: { user: 'gone' } }))
    expect(why(() => credentialsFrom({ file: user })).message).toMatch(/user "gone"/)
  })

  it.each([
    ['is not there', undefined],
    ['is empty', ''],
    ['is no YAML', '{{{'],
    ['is something else', '[1, 2]'],
    ['has a server that is no URL', kubeconfig({ cluster: { server: 'nonsense' } })],
    ['has a server of another sort', kubeconfig({ cluster: { server: 'ftp://one.example' } })],
    ['has a proxy that is no URL', kubeconfig({ cluster: { 'proxy-url': '???' } })],
    ['has users without names', JSON.stringify({ ...JSON.parse(kubeconfig()), users: [{ user: {} }] })],
  ])('that %s is a mistake of the user’s, said with the file', async (_what, text) => {
    const file = text === undefined ? join(dir, 'missing') : await put('config', text)
    const error = why(() => credentialsFrom({ file }))
    expect(error).toMatchObject({ code: 'Misuse', retry: 'never' })
    expect(error.message).toContain(file)
  })

  it('may have no user at all: then nobody is asking, but the server is still checked', async () => {
    const { cert } = createAuthority()
    const credentials = await read({
      cluster: { 'certificate-authority-data': base64(cert), 'tls-server-name': 'api' },
      context: { user: undefined },
    })
    expect(credentials.headers).toEqual({})
    expect(credentials.tls).toMatchObject({ ca: cert, servername: 'api' })
  })

  it('may name a server without TLS, as `kubectl proxy` serves it', async () => {
    expect(await read({ cluster: { server: 'http://127.0.0.1:8001' } })).toMatchObject({
      server: 'http://127.0.0.1:8001',
    })
  })

  it('gives TLS as it says', async () => {
    const authority = createAuthority()
    const { cert, key } = authority.issue({ commonName: 'me' })
    expect(
      await read({
        cluster: { 'certificate-authority-data': base64(authority.cert), 'tls-server-name': 'kubernetes' },
        user: { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) },
      }),
    ).toMatchObject({ tls: { ca: authority.cert, cert, key, servername: 'kubernetes' } })
    const careless = await read({ cluster: { 'insecure-skip-tls-verify': true } })
    expect(careless.tls.rejectUnauthorized).toBe(false)
    expect((await read({})).tls.rejectUnauthorized).not.toBe(false)
  })

  it('gives a name and password as basic authentication', async () => {
    const { headers } = await read({ user: { username: 'me', password: 'p:ä' } })
    expect(headers).toEqual({ authorization: `Basic ${base64('me:p:ä')}` })
  })

  it('gives impersonation', async () => {
    const { headers } = await read({ user: { token: 't', as: 'somebody' } })
    expect(headers).toEqual({ authorization: 'Bearer t', 'impersonate-user': 'somebody' })
  })

  it('refuses what it cannot do, instead of being somebody else', async () => {
    const file = await put('config', kubeconfig({ user: { token: 't', as: 'a', 'as-groups': ['b'] } }))
    expect(why(() => credentialsFrom({ file })).message).toContain('as-groups')
  })

  it('names files relative to its own folder, not to where we are', async () => {
    const authority = createAuthority()
    const { cert, key } = authority.issue({ commonName: 'me' })
    await Promise.all([put('ca.crt', authority.cert), put('me.crt', cert), put('me.key', key), put('token', 'abc\n')])
    const parts = {
      cluster: { 'certificate-authority': 'ca.crt' },
      user: { 'client-certificate': './me.crt', 'client-key': 'me.key', tokenFile: 'token' },
    }
    const file = relative(process.cwd(), await put('config', kubeconfig(parts)))
    expect(await credentialsFrom({ file }).current()).toMatchObject({
      tls: { ca: authority.cert, cert, key },
      headers: { authorization: 'Bearer abc' },
    })
  })
})

describe('where kubeconfigs are looked for', () => {
  it('is KUBECONFIG first, of several files the first that says something wins', async () => {
    const one = await put('one', kubeconfig({ user: { token: 'first' } }))
    const other = JSON.parse(kubeconfig({ user: { token: 'second' } }))
    other.clusters.push({ name: 'd', cluster: { server: 'https://two.example' } })
    other.contexts.push({ name: 'there', context: { cluster: 'd', user: 'u' } })
    other['current-context'] = 'there'
    const two = await put('two', JSON.stringify(other))
    process.env.KUBECONFIG = `${one}:${join(dir, 'missing')}:${two}`
    const token = { authorization: 'Bearer first' }
    expect(await credentialsFrom().current()).toMatchObject({ server: 'https://one.example:6443', headers: token })
    expect(await credentialsFrom({ context: 'there' }).current()).toMatchObject({
      server: 'https://two.example',
      headers: token,
    })
  })

  it('is a file without a current context, and one with', async () => {
    const first = JSON.parse(kubeconfig())
    delete first['current-context']
    first.contexts = []
    const one = await put('one', JSON.stringify(first))
    const two = await put('two', kubeconfig())
    process.env.KUBECONFIG = `${one}:${two}`
    expect((await credentialsFrom().current()).server).toBe('https://one.example:6443')
  })

  it('is an error where KUBECONFIG names nothing that is there', () => {
    process.env.KUBECONFIG = join(dir, 'missing')
    expect(why(() => credentialsFrom()).message).toContain(join(dir, 'missing'))
  })

  it('is ~/.kube/config next', async () => {
    delete process.env.KUBECONFIG
    process.env.HOME = dir
    await mkdir(join(dir, '.kube'))
    await put('.kube/config', kubeconfig({ user: { tokenFile: '../token' } }))
    await put('token', 'home')
    expect((await credentialsFrom().current()).headers).toEqual({ authorization: 'Bearer home' })
  })

  it('is the pod’s service account last, whose token is read anew', async () => {
    delete process.env.KUBECONFIG
    process.env.HOME = dir
    process.env.KUBERNETES_SERVICE_HOST = 'fd00::1'
    process.env.KUBERNETES_SERVICE_PORT = '443'
    const account = 'var/run/secrets/kubernetes.io/serviceaccount'
    const authority = createAuthority()
    await mkdir(join(dir, account), { recursive: true })
    await put(`${account}/token`, 'first\n')
    await put(`${account}/ca.crt`, authority.cert)
    await put(`${account}/namespace`, 'shop')
    const clock = new VirtualClock()
    const source = credentialsFrom({ root: dir, clock })
    expect(await source.current()).toEqual({
      server: 'https://[fd00::1]:443',
      tls: { ca: authority.cert },
      headers: { authorization: 'Bearer first' },
      namespace: 'shop',
    })
    await put(`${account}/token`, 'second\n')
    await clock.advance(60_000)
    expect((await source.current()).headers).toEqual({ authorization: 'Bearer second' })
  })

  it('is said when there is none anywhere', () => {
    delete process.env.KUBECONFIG
    process.env.HOME = dir
    const error = why(() => credentialsFrom({ root: dir }))
    expect(error.code).toBe('Misuse')
    expect(error.message).toMatch(/KUBECONFIG.*\.kube\/config.*service account/)
  })
})

describe('credentials that change', () => {
  it('are read again after a minute, not before', async () => {
    const clock = new VirtualClock()
    const token = await put('token', 'first')
    const source = await from({ user: { tokenFile: token } }, { clock })
    const header = async () => (await source.current()).headers.authorization
    expect(await header()).toBe('Bearer first')
    await writeFile(token, 'second\n')
    await clock.advance(59_999)
    expect(await header()).toBe('Bearer first')
    await clock.advance(1)
    expect(await header()).toBe('Bearer second')
  })

  it('are read again at once when the server refused them', async () => {
    const token = await put('token', 'first')
    const source = await from({ user: { tokenFile: token } })
    const used = await source.current()
    await writeFile(token, 'second')
    source.refused(used)
    expect((await source.current()).headers.authorization).toBe('Bearer second')
    // Somebody else's complaint about the old ones comes late.
    await writeFile(token, 'third')
    source.refused(used)
    expect((await source.current()).headers.authorization).toBe('Bearer second')
  })

  it('are taken from the kubeconfig again when the server refused them', async () => {
    const source = await from({ user: { token: 'first' } })
    const used = await source.current()
    await put('config', kubeconfig({ user: { token: 'second' } }))
    source.refused(used)
    expect((await source.current()).headers.authorization).toBe('Bearer second')
  })

  it('stay what they were while the file that holds them is gone', async () => {
    const clock = new VirtualClock()
    const token = await put('token', 'first')
    const source = await from({ user: { tokenFile: token } }, { clock })
    await source.current()
    await rm(token)
    await clock.advance(60_000)
    expect((await source.current()).headers.authorization).toBe('Bearer first')
    await writeFile(token, 'second')
    await clock.advance(60_000)
    expect((await source.current()).headers.authorization).toBe('Bearer second')
  })

  it('are never an empty token, from a file that is being written', async () => {
    const clock = new VirtualClock()
    const token = await put('token', 'first')
    const source = await from({ user: { tokenFile: token } }, { clock })
    await source.current()
    await writeFile(token, '')
    await clock.advance(60_000)
    expect((await source.current()).headers.authorization).toBe('Bearer first')
  })

  it('survive a kubeconfig that is being replaced', async () => {
    const source = await from({ user: { token: 'first' } })
    const used = await source.current()
    await put('config', '')
    source.refused(used)
    expect((await source.current()).headers.authorization).toBe('Bearer first')
  })

  it('include certificates in files', async () => {
    const clock = new VirtualClock()
    const authority = createAuthority()
    const write = async (commonName: string) => {
      const { cert, key } = authority.issue({ commonName })
      await Promise.all([put('me.crt', cert), put('me.key', key)])
      return { cert, key }
    }
    const first = await write('first')
    const source = await from({ user: { 'client-certificate': 'me.crt', 'client-key': 'me.key' } }, { clock })
    expect((await source.current()).tls).toMatchObject(first)
    const second = await write('second')
    await clock.advance(60_000)
    expect((await source.current()).tls).toMatchObject(second)
  })
})

describe('an exec plugin', () => {
  /** A plugin that prints what `credential` says and counts its runs; `$n` in it is the count. */
  async function plugin(credential: string): Promise<{ path: string; runs: () => Promise<number> }> {
    const runs = join(dir, 'runs')
    const path = await put(
      'plugin',
      `#!/bin/sh\necho run >> ${runs}\nn=$(wc -l < ${runs} | tr -d ' ')\n${credential}\n`,
    )
    await chmod(path, 0o755)
    const count = async () => (await readFile(runs, 'utf8').catch(() => '')).split('\n').length - 1
    return { path, runs: count }
  }
  const status = (fields: string) =>
    `echo "{\\"apiVersion\\":\\"client.authentication.k8s.io/v1\\",\\"kind\\":\\"ExecCredential\\",\\"status\\":{${fields}}}"`
  const exec = (command: string, more: object = {}) => ({
    exec: { apiVersion: 'client.authentication.k8s.io/v1', command, interactiveMode: 'Never', ...more },
  })

  it('gives a token, once for many who ask', async () => {
    const { path, runs } = await plugin(status('\\"token\\":\\"t$n\\"'))
    const source = await from({ user: exec(path) })
    const all = await Promise.all([source.current(), source.current(), source.current()])
    for (const one of all) expect(one.headers.authorization).toBe('Bearer t1')
    expect(await runs()).toBe(1)
  })

  it('gives a certificate', async () => {
    const authority = createAuthority()
    const { cert, key } = authority.issue({ commonName: 'me' })
    const answer = { status: { clientCertificateData: cert, clientKeyData: key } }
    const file = await put('answer', JSON.stringify(answer))
    const { path } = await plugin(`cat ${file}`)
    expect((await read({ user: exec(path) })).tls).toMatchObject({ cert, key })
  })

  it('runs again when its token has expired, not before', async () => {
    const clock = new VirtualClock()
    const forever = await plugin(status('\\"token\\":\\"t$n\\",\\"expirationTimestamp\\":\\"2999-01-01T00:00:00Z\\"'))
    const lasting = await from({ user: exec(forever.path) }, { clock })
    await lasting.current()
    await clock.advance(60_000)
    await lasting.current()
    expect(await forever.runs()).toBe(1)

    const { path, runs } = await plugin(
      status('\\"token\\":\\"t$n\\",\\"expirationTimestamp\\":\\"2020-01-01T00:00:00Z\\"'),
    )
    const before = await runs()
    const source = await from({ user: exec(path) }, { clock })
    const first = await source.current()
    await clock.advance(60_000)
    const second = await source.current()
    expect(await runs()).toBe(before + 2)
    expect(second.headers).not.toEqual(first.headers)
  })

  it('runs again when the server refused what it gave', async () => {
    const { path, runs } = await plugin(status('\\"token\\":\\"t$n\\"'))
    const source = await from({ user: exec(path) })
    source.refused(await source.current())
    expect((await source.current()).headers.authorization).toBe('Bearer t2')
    expect(await runs()).toBe(2)
  })

  it('gets its arguments and its environment, and is told what it is to do', async () => {
    const { path } =
      await plugin(`printf '{"status":{"token":"%s %s %s"}}' "$1" "$ME" "$KUBERNETES_EXEC_INFO" | sed 's/"{/{/' > ${join(dir, 'got')}
      ${status('\\"token\\":\\"t\\"')}`)
    await read({ user: exec(path, { args: ['get'], env: [{ name: 'ME', value: 'you' }] }) })
    const got = await readFile(join(dir, 'got'), 'utf8')
    expect(got).toContain('get you')
    expect(got).toContain('"kind":"ExecCredential"')
    expect(got).toContain('client.authentication.k8s.io/v1')
  })

  it('is found relative to the kubeconfig', async () => {
    await plugin(status('\\"token\\":\\"t$n\\"'))
    expect((await read({ user: exec('./plugin') })).headers.authorization).toBe('Bearer t1')
  })

  it('that fails, is missing or talks nonsense says so, as something that may pass', async () => {
    const broken = await plugin('echo "log in first" >&2; exit 1')
    const nonsense = join(dir, 'nonsense')
    await writeFile(nonsense, '#!/bin/sh\necho hello')
    await chmod(nonsense, 0o755)
    const empty = join(dir, 'empty')
    await writeFile(empty, '#!/bin/sh\necho {}')
    await chmod(empty, 0o755)
    const connection = createConnection()
    onTestFinished(() => connection.close())
    const request: Request = { method: 'POST', path: '/', target: { verb: 'create', group: '', resource: 'pods' } }
    const failing = async (command: string) => authenticated(connection, await from({ user: exec(command) }))(request)
    await expect(failing(broken.path)).rejects.toMatchObject({
      code: 'Unavailable',
      mayHaveActed: false,
      message: expect.stringContaining('log in first'),
    })
    for (const command of [nonsense, empty, join(dir, 'missing')]) {
      await expect(failing(command)).rejects.toMatchObject({ code: 'Unavailable', mayHaveActed: false })
    }
  })

  it('that hangs holds up a call no longer than its signal and its deadline', async () => {
    const { path } = await plugin(`while [ -e ${dir} ]; do sleep 0.05; done`)
    const clock = new VirtualClock()
    const connection = createConnection({ clock })
    onTestFinished(() => connection.close())
    const source = await from({ user: exec(path) })
    const send = authenticated(connection, source, { clock })
    const control = new AbortController()
    const request: Request = { method: 'GET', path: '/', target: { verb: 'list', group: '', resource: 'pods' } }
    const aborted = send({ ...request, signal: control.signal })
    aborted.catch(() => undefined)
    control.abort('enough')
    await expect(aborted).rejects.toMatchObject({ code: 'Aborted', cause: 'enough' })
    const late = send({ ...request, deadline: 500 })
    late.catch(() => undefined)
    await clock.advance(500)
    await expect(late).rejects.toMatchObject({ code: 'DeadlineExceeded', mayHaveActed: false })
    expect(clock.pending).toBe(0)
  })
})

describe('on the wire', () => {
  it('a token is sent, and a new one is tried once when the server says 401', async () => {
    const good = 'second'
    const seen: (string | undefined)[] = []
    await using server = await startLocalServer((request, response) => {
      seen.push(request.headers.authorization)
      response.writeHead(request.headers.authorization === `Bearer ${good}` ? 200 : 401).end('{}')
    })
    const cluster = { server: server.url, 'certificate-authority-data': base64(server.authority.cert) }
    const token = await put('token', 'first')
    const access = connect({
      kubeconfig: { file: await put('config', kubeconfig({ cluster, user: { tokenFile: token } })) },
    })
    onTestFinished(() => access.close())
    await expect(access.client.raw('/')).rejects.toMatchObject({ code: 'Unauthorized' })
    await writeFile(token, good)
    await access.client.raw('/')
    await access.client.raw('/')
    expect(seen).toEqual(['Bearer first', 'Bearer first', 'Bearer first', 'Bearer second', 'Bearer second'])
  })

  it('a client certificate is shown, and the new one when it was replaced', async () => {
    await using server = await startLocalServer(
      (request, response) => {
        const { subject } = (
          request.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } }
        ).getPeerCertificate()
        response.end(subject.CN)
      },
      { requestCert: true, rejectUnauthorized: true },
    )
    const clock = new VirtualClock()
    const write = async (commonName: string) => {
      const { cert, key } = server.authority.issue({ commonName })
      await Promise.all([put('me.crt', cert), put('me.key', key)])
    }
    await write('first')
    const cluster = { server: server.url, 'certificate-authority-data': base64(server.authority.cert) }
    const user = { 'client-certificate': 'me.crt', 'client-key': 'me.key' }
    const access = connect({ kubeconfig: { file: await put('config', kubeconfig({ cluster, user })), clock } })
    onTestFinished(() => access.close())
    expect((await access.client.raw('/')).text).toBe('first')
    await write('second')
    expect((await access.client.raw('/')).text).toBe('first')
    await clock.advance(60_000)
    expect((await access.client.raw('/')).text).toBe('second')
  })

  it('the name in the certificate is checked, against tls-server-name where it is given', async () => {
    await using server = await startLocalServer((_, response) => response.end('{}'), { dns: ['api.internal'], ip: [] })
    const ask = async (cluster: object) => {
      const parts = { server: server.url, 'certificate-authority-data': base64(server.authority.cert), ...cluster }
      const access = connect({
        kubeconfig: { file: await put('config', kubeconfig({ cluster: parts })) },
        retry: { tries: 1 },
      })
      onTestFinished(() => access.close())
      return access.client.raw('/')
    }
    await expect(ask({})).rejects.toMatchObject({ code: 'Unavailable' })
    await expect(ask({ 'tls-server-name': 'other.internal' })).rejects.toMatchObject({ code: 'Unavailable' })
    expect((await ask({ 'tls-server-name': 'api.internal' })).text).toBe('{}')
    const careless = { 'certificate-authority-data': undefined, 'insecure-skip-tls-verify': true }
    expect((await ask(careless)).text).toBe('{}')
  })

  it('a proxy is gone through, short calls and streams', async () => {
    await using server = await startLocalServer((request, response) => response.end(request.url))
    await using proxy = await startConnectProxy()
    const cluster = {
      server: server.url,
      'certificate-authority-data': base64(server.authority.cert),
      'proxy-url': proxy.url.replace('http://', 'http://me:secret@'),
    }
    const file = await put('config', kubeconfig({ cluster }))
    const credentials = await credentialsFrom({ file }).current()
    const connection = createConnection({ connections: 4 })
    onTestFinished(() => connection.close())
    const request: Request = { method: 'GET', path: '/version', target: { verb: 'get', group: '', resource: '' } }
    const answers = await Promise.all(Array.from({ length: 50 }, () => connection.send(request, credentials)))
    for (const { text } of answers) expect(text).toBe('/version')
    const { chunks } = await connection.send({ ...request, stream: true }, credentials)
    const parts: Uint8Array[] = []
    for await (const part of chunks as AsyncIterable<Uint8Array>) parts.push(part)
    expect(Buffer.concat(parts).toString()).toBe('/version')
    expect(proxy.asked.length).toBeLessThanOrEqual(5)
    for (const one of proxy.asked) {
      expect(one).toEqual({ to: new URL(server.url).host, authorization: `Basic ${base64('me:secret')}` })
    }
  })

  it('a proxy that is not there is an unavailable server', async () => {
    await using server = await startLocalServer((_, response) => response.end())
    const connection = createConnection()
    onTestFinished(() => connection.close())
    const request: Request = { method: 'POST', path: '/', target: { verb: 'create', group: '', resource: 'pods' } }
    const credentials = { ...server.credentials, proxy: 'http://127.0.0.1:1' }
    await expect(connection.send(request, credentials)).rejects.toMatchObject({
      code: 'Unavailable',
      mayHaveActed: false,
    })
  })

  it('every request carries a user agent', async () => {
    await using server = await startLocalServer((request, response) => response.end(request.headers['user-agent']))
    const cluster = { server: server.url, 'certificate-authority-data': base64(server.authority.cert) }
    const access = connect({ name: 'till', kubeconfig: { file: await put('config', kubeconfig({ cluster })) } })
    onTestFinished(() => access.close())
    expect((await access.client.raw('/')).text).toMatch(/^till .*shipmate/)
  })
})

it('a kubeconfig that cannot be parsed is named with the place of the mistake, and nothing of its content', async () => {
  const file = await put('broken', 'users:\n- name: u\n  user: {token: SECRET-TOKEN}\n  wrong: [1, 2\n')
  const error = (() => {
    try {
      return credentialsFrom({ file })
    } catch (thrown) {
      return thrown
    }
  })()
  expect(error).toBeInstanceOf(ShipmateError)
  expect((error as Error).message).toMatch(/cannot read a kubeconfig from .*broken: .*line \d+, column \d+/)
  expect(inspect(error, { depth: 10 })).not.toContain('SECRET-TOKEN')
})

it('a plugin that hangs is not waited for a second time', async () => {
  const marker = join(dir, 'started')
  const token = JSON.stringify({
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { token: 't' },
  })
  const script = `const fs = require('node:fs')
    if (fs.existsSync(${JSON.stringify(marker)})) console.log(${JSON.stringify(token)})
    else { fs.writeFileSync(${JSON.stringify(marker)}, ''); setInterval(() => {}, 1000); setTimeout(() => process.exit(1), 3000) }`
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: process.execPath, args: ['-e', script] }
  const config = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'http://localhost:1' } }],
    users: [{ name: 'u', user: { exec } }],
  }
  const clock = new VirtualClock()
  const source = credentialsFrom({ file: await put('hangs', JSON.stringify(config)), clock })
  void Promise.resolve(source.current()).catch(() => undefined)
  await expect.poll(() => existsSync(marker)).toBe(true)
  await clock.advance(31_000)
  expect((await source.current()).headers['authorization']).toBe('Bearer t')
})
