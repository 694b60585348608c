/**
 * What the build leaves out of client-node and undici is not missed: the ways to sign in, and proxies, work from dist.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const { connect, Namespace } = (await import(
  join(import.meta.dirname, '../../dist/kube.js')
)) as typeof import('shipmate/kube')

let server: Server
let proxy: Server
let dir: string
let asked: IncomingMessage[] = []
let throughProxy = 0
const nothing = JSON.stringify({ kind: 'NamespaceList', items: [], metadata: { resourceVersion: '1' } })

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'shipmate-dist-'))
  server = createServer((request, response) => {
    asked.push(request)
    response.end(nothing)
  })
  // To a server without TLS a proxy is asked as if it were that server.
  proxy = createServer((_request, response) => {
    throughProxy++
    response.end(nothing)
  })
  for (const one of [server, proxy]) await new Promise<void>(resolve => one.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  for (const one of [server, proxy]) {
    one.closeAllConnections()
    one.close()
  }
  await rm(dir, { recursive: true })
})

async function listAs(user: object, cluster: object = {}): Promise<IncomingMessage> {
  asked = []
  const file = join(dir, 'config')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const config = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: url, ...cluster } }],
    users: [{ name: 'u', user }],
  }
  await writeFile(file, JSON.stringify(config))
  const access = connect({ kubeconfig: { file } })
  await access.client.list(Namespace)
  await access.close()
  return asked[0] as IncomingMessage
}

const soon = Math.floor(Date.now() / 1000) + 3600
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const idToken = `${part({ alg: 'none' })}.${part({ exp: soon })}.x`
const expiry = new Date(soon * 1000).toISOString()

test.each([
  [
    'oidc',
    { 'id-token': idToken, 'client-id': 'c', 'idp-issuer-url': 'https://issuer.invalid', 'refresh-token': 'r' },
    idToken,
  ],
  ['gcp', { 'access-token': 'gcp-token', expiry }, 'gcp-token'],
  ['azure', { 'access-token': 'azure-token', 'expires-on': String(soon) }, 'azure-token'],
])('signs in by %s', async (name, config, token) => {
  const request = await listAs({ 'auth-provider': { name, config } })
  expect(request.headers.authorization).toBe(`Bearer ${token}`)
})

test('signs in by a plugin', async () => {
  const status = {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { token: 'from-a-plugin' },
  }
  const script = `console.log(${JSON.stringify(JSON.stringify(status))})`
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: process.execPath, args: ['-e', script] }
  expect((await listAs({ exec })).headers.authorization).toBe('Bearer from-a-plugin')
})

test('goes through a proxy', async () => {
  await listAs({ token: 't' }, { 'proxy-url': `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` })
  expect(throughProxy).toBe(1)
})
