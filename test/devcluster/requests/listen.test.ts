import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { type RequestOptions, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Client } from '../../../controller/kube/client.ts'
import { ConfigMap } from '../../../controller/kube/kinds.ts'
import { type Listening, listen } from '../../../devcluster/api/listen.ts'
import { sendTo } from '../../../devcluster/api/send.ts'
import { type Api, type ApiOptions, createApi } from '../../../devcluster/api/server.ts'

async function start(options?: ApiOptions): Promise<{ api: Api; server: Listening }> {
  const api = createApi(options)
  const server = await listen(api)
  onTestFinished(async () => {
    await server.close()
    await api.close()
  })
  return { api, server }
}

function call(
  server: Listening,
  path: string,
  options: RequestOptions = {},
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(`${server.url}${path}`, { ca: server.ca, agent: false, ...options }, answer => {
      let text = ''
      answer.setEncoding('utf8').on('data', piece => {
        text += piece
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
    })
    sent.on('error', reject).end()
  })
}

test('a person is known by certificate, a program by token, anybody else is anonymous', async () => {
  const { api, server } = await start()
  const users: string[] = []
  api.onRequest(({ user }) => users.push(`${user.name} ${user.groups.join()}`))
  const { cert, key } = server.certificate({ name: 'bob', groups: ['devs'] })
  await call(server, '/api/v1/namespaces', { cert, key })
  await call(server, '/api/v1/namespaces', { headers: { authorization: `Bearer ${server.adminToken}` } })
  await call(server, '/readyz')
  const refused = await call(server, '/readyz', { headers: { authorization: 'Bearer x' } })
  expect([refused.status, JSON.parse(refused.text).reason]).toEqual([401, 'Unauthorized'])
  expect(users).toEqual([
    'bob devs,system:authenticated',
    'kubernetes-admin system:masters,system:authenticated',
    'system:anonymous system:unauthenticated',
  ])
})

test('whoever may impersonate is answered as the other', async () => {
  const { server } = await start({
    authorize: async ({ verb }, user) => ({ allowed: user.name === 'kubernetes-admin' || verb === 'get', reason: '' }),
  })
  const authorization = `Bearer ${server.adminToken}`
  const asBob = await call(server, '/api/v1/namespaces/default/configmaps', {
    headers: { authorization, 'impersonate-user': 'bob' },
  })
  expect([asBob.status, JSON.parse(asBob.text).message]).toEqual([
    403,
    'configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "default"',
  ])
  const nobody = await call(server, '/readyz', { headers: { authorization, 'impersonate-group': 'x' } })
  expect([nobody.status, JSON.parse(nobody.text).message]).toEqual([
    400,
    expect.stringContaining('without impersonating a user name'),
  ])
})

test('a kubeconfig is for its owner alone', async () => {
  const { server } = await start()
  const folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'config')
  await server.writeKubeconfig(path)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('a client of the same process needs no port', async () => {
  const api = createApi()
  onTestFinished(() => api.close())
  const client = new Client(sendTo(api))
  await client.create(ConfigMap, { metadata: { name: 'a', namespace: 'default' }, data: { x: '1' } })
  expect((await client.get(ConfigMap, { name: 'a', namespace: 'default' })).data).toEqual({ x: '1' })
})
