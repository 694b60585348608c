/**
 * An operator whose account lacks a rule, on a real API server: it starts, names what is missing, and goes on when the rule is there.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest'
import { type Access, connect } from '../../controller/kube/access.ts'
import type { Kind } from '../../controller/kube/kind.ts'
import { ConfigMap, Namespace, Role, RoleBinding, Secret, ServiceAccount } from '../../controller/kube/kinds.ts'
import { createManager, type Manager } from '../../controller/runtime/manager.ts'
import {
  addTo,
  advancedReconciler,
  type Condition,
  mutable,
  type PolicyRule,
  rbacOf,
} from '../../controller/toolkit/index.ts'
import { accountConfig } from '../fixtures/account.ts'
import { installWidgets, type Widget } from '../fixtures/widget.ts'

const patience = { timeout: 40_000, interval: 100 }
let access: Access
let widgets: Kind<Widget>
let namespace: string
let folder: string
let manager: Manager | undefined
let started: Promise<void> | undefined
const account = 'operator'

beforeAll(async () => {
  access = connect({ kubeconfig: { file: inject('kubeconfig') } })
  widgets = await installWidgets(access.client, 'refused.test.example.com', { preserve: true })
  namespace = (await access.client.create(Namespace, { metadata: { generateName: 'refused-' } })).metadata.name
  folder = await mkdtemp(join(tmpdir(), 'shipmate-'))
  await access.client.create(ServiceAccount, { metadata: { name: account, namespace } })
  await access.client.create(RoleBinding, {
    metadata: { name: account, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
  })
})
afterAll(async () => {
  await manager?.stop()
  await started
  await access.close()
  await rm(folder, { recursive: true, force: true })
})

const allow = (rules: readonly PolicyRule[]) =>
  access.client.apply(Role, { metadata: { name: account, namespace }, rules: rules as never })

it('starts without a rule for one of its kinds, names it, and needs no restart once it is there', async () => {
  const child = (kind: typeof ConfigMap | typeof Secret) =>
    mutable<Widget, object>(kind as Kind<object>, widgets, { mutateWithInitialData: () => ({}) as never })
  const reconciler = advancedReconciler(widgets, { resources: [child(Secret), child(ConfigMap)] })
  const { rules } = rbacOf([reconciler])
  await allow(rules.filter(({ resources }) => !resources.includes('configmaps')))
  const file = join(folder, 'kubeconfig')
  await writeFile(file, await accountConfig(access, { name: account, namespace }))
  const lines: string[] = []
  manager = createManager({
    ...{ name: 'widgets', kubeconfig: { file }, namespaces: [namespace], signals: false },
    health: { host: '127.0.0.1', port: 0 },
    log: { level: 'info', destination: { write: line => void lines.push(line) } },
  })
  addTo(manager, reconciler)
  started = manager.start()
  await access.client.create(widgets, { metadata: { name: 'a', namespace }, spec: { value: 'x' } })

  const rule = '{apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"]}'
  const condition = async (type: string) => {
    const { status } = await access.client.get(widgets, { name: 'a', namespace })
    return (status as { conditions?: Condition[] } | undefined)?.conditions?.find(one => one.type === type)
  }
  await vi.waitFor(async () => expect(await condition('Ready')).toMatchObject({ status: 'False' }), patience)
  expect((await condition('Ready'))?.message).toMatch(/ConfigMap may not be read.*resources: \["configmaps"\]/)
  expect(JSON.parse(lines.find(line => line.includes('watching fails')) ?? '{}').msg).toContain(rule)
  const readyz = async () => {
    const [{ host, port } = { host: '', port: 0 }] = manager?.addresses ?? []
    return (await fetch(`http://${host}:${port}/readyz?verbose`)).text()
  }
  expect(await readyz()).toContain(rule)

  await allow(rules)
  await vi.waitFor(async () => expect(await condition('Ready')).toMatchObject({ status: 'True' }), patience)
  await access.client.get(ConfigMap, { name: 'a', namespace })
  expect(await readyz()).not.toContain(rule)
})
