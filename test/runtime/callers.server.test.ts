/**
 * Metrics for who may read them: a manager asks the API server, under an account that may do no more than ask.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import { ClusterRole, ClusterRoleBinding, Namespace, ServiceAccount } from '../../controller/kube/kinds.ts'
import { callerRules, createManager, type Manager } from '../../controller/runtime/index.ts'
import { createAuthority, issue } from '../../shared/authority.ts'
import { accountConfig } from '../fixtures/account.ts'

const kubeconfig = inject('kubeconfig')
const namespace = 'callers'
const reader = { nonResourceURLs: ['/metrics'], verbs: ['get'] }

describe.skipIf(!kubeconfig)('metrics for who may read them', () => {
  let access: Access
  let manager: Manager
  let done: Promise<void>
  let folder: string

  beforeAll(async () => {
    access = connect({ kubeconfig: { file: kubeconfig } })
    await access.client.create(Namespace, { metadata: { name: namespace } })
    await account('manager', callerRules)
    await account('prometheus', [reader])
    await account('nobody', [])
    folder = mkdtempSync(join(tmpdir(), 'shipmate-callers-'))
    const file = join(folder, 'kubeconfig')
    writeFileSync(file, await accountConfig(access, { name: 'manager', namespace }))
    const span = { from: Date.now() - 60_000, until: Date.now() + 600_000 }
    const metrics = {
      host: '127.0.0.1',
      port: 0,
      auth: true,
      tls: issue(createAuthority(span), 'server', { dns: ['x'] }, span),
    }
    manager = createManager({ kubeconfig: { file }, metrics, signals: false, log: { level: 'silent' } })
    done = manager.start()
    await manager.ready
  })
  afterAll(async () => {
    await manager?.stop()
    await done
    await access?.close()
    if (folder) rmSync(folder, { recursive: true })
  })

  async function account(name: string, rules: readonly object[]): Promise<void> {
    await access.client.create(ServiceAccount, { metadata: { name, namespace } })
    if (rules.length === 0) return
    const own = { name: `callers-${name}` }
    await access.client.create(ClusterRole, { metadata: own, rules: rules as never })
    await access.client.create(ClusterRoleBinding, {
      metadata: own,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: own.name },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    })
  }
  const tokenOf = async (name: string) => (await access.client.token({ name, namespace })).token
  async function ask(token?: string): Promise<{ status: number; body: string; wants: string | undefined }> {
    const { host, port } = manager.addresses[0] ?? {}
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const asked = request({ host, port, path: '/metrics', headers, rejectUnauthorized: false, agent: false }).end()
    const [answer] = await once(asked, 'response')
    return { status: answer.statusCode, body: await text(answer), wants: answer.headers['www-authenticate'] }
  }

  it('are there for an account with the role', async () => {
    const { status, body } = await ask(await tokenOf('prometheus'))
    expect({ status, body }).toEqual({ status: 200, body: expect.stringContaining('rest_client_requests_total') })
  })

  it('are not for an account without it, which is named', async () => {
    const why = `system:serviceaccount:${namespace}:nobody may not get /metrics\n`
    expect(await ask(await tokenOf('nobody'))).toMatchObject({ status: 403, body: why })
  })

  it('are not for a token that nobody has given, nor for none', async () => {
    expect(await ask('made.up.token')).toMatchObject({ status: 401, wants: 'Bearer' })
    expect(await ask()).toMatchObject({ status: 401, wants: 'Bearer', body: 'a bearer token is needed\n' })
  })

  it('are not for who has lost the role, at the latest a minute later; who never asked sees it at once', async () => {
    await account('former', [reader])
    await access.client.delete(ClusterRoleBinding, { name: 'callers-former' })
    expect(await ask(await tokenOf('former'))).toMatchObject({ status: 403 })
  })
})
