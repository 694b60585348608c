/**
 * An app without a sidecar on a cluster with a node: asked by commands in its container, under the controller's own account.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { Lifecycle, Operation, StatefulApp } from '../../controller/app/kinds.ts'
import { shipmateRbac } from '../../controller/app/rbac.ts'
import { type Access, connect } from '../../controller/kube/access.ts'
import { exec } from '../../controller/kube/exec.ts'
import {
  ClusterRole,
  ClusterRoleBinding,
  Namespace,
  Role,
  RoleBinding,
  ServiceAccount,
  StatefulSet,
} from '../../controller/kube/kinds.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import { accountConfig } from '../fixtures/account.ts'
import type { ApiLine } from '../fixtures/app/api-line.ts'
import { type RunningController, startController } from '../fixtures/app/controller.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'

const kubeconfig = inject('kubeconfig')
const image = process.env['SHIPMATE_TEST_IMAGE'] ?? 'localhost/node:24'
const name = 'orders'
const account = { name: 'shipmate-via', namespace: 'default' }
const apiGroup = 'rbac.authorization.k8s.io'
type Status = NonNullable<StatefulApp['status']>

const lifecycle: LifecycleSpec = {
  states: [
    { name: 'Start', verb: 'Create', next: ['Running', 'Stopping'] },
    { name: 'Running', when: 'probes.accepting.ok', next: ['Servicing', 'Stopping'] },
    { name: 'Servicing', actions: ['backup', 'broken'], next: ['Running'] },
    { name: 'Stopping', actions: ['stop'], next: ['End'] },
    { name: 'End', verb: 'Delete', next: ['Start'] },
  ],
  probes: [
    {
      name: 'accepting',
      exec: { command: ['test', '-e', '/tmp/accepting'] },
      every: '500ms',
      timeout: '5s',
      failureThreshold: 1,
    },
  ],
  actions: [
    {
      name: 'backup',
      exec: { command: ['sh', '-c', 'echo "$1" >>/tmp/backups', 'sh', '$(params.to)'] },
      params: { to: { type: 'string' } },
      timeout: '1m',
    },
    { name: 'broken', exec: { command: ['sh', '-c', 'echo "no disk" >&2; exit 3'] }, timeout: '1m' },
    { name: 'stop', exec: { command: ['rm', '/tmp/accepting'] }, timeout: '1m' },
  ],
}

describe.skipIf(!kubeconfig)('an app without a sidecar, on a node', { timeout: 240_000 }, () => {
  let access: Access
  let controller: RunningController
  let namespace: string
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-via-'))

  beforeAll(async () => {
    access = connect({ kubeconfig: { file: kubeconfig } })
    const { client } = access
    await installOwnKinds(client)
    namespace = (await client.create(Namespace, { metadata: { generateName: 'via-' } })).metadata.name
    await client.apply(ClusterRole, {
      metadata: { name: account.name },
      rules: shipmateRbac('shipmate').rules as never,
    })
    await client.apply(ClusterRoleBinding, {
      metadata: { name: account.name },
      roleRef: { apiGroup, kind: 'ClusterRole', name: account.name },
      subjects: [{ kind: 'ServiceAccount', ...account }],
    })
    await client.apply(ServiceAccount, { metadata: account })
    const file = join(folder, 'kubeconfig')
    writeFileSync(file, await accountConfig(access, account), { mode: 0o600 })
    controller = await startController({ kubeconfig: file } as ApiLine, { namespaces: [namespace], namespace })
    await client.create(Lifecycle, { metadata: { name, namespace }, spec: lifecycle as never })
    const container = {
      image,
      imagePullPolicy: 'Never',
      command: ['sh', '-c', 'trap exit TERM; sleep infinity & wait'],
    }
    await client.create(StatefulSet, {
      metadata: { name, namespace },
      spec: {
        ...{
          serviceName: name,
          replicas: 2,
          podManagementPolicy: 'Parallel',
          selector: { matchLabels: { app: name } },
        },
        template: {
          metadata: { labels: { app: name } },
          spec: {
            terminationGracePeriodSeconds: 5,
            // Not the first: what is named is asked.
            containers: [
              { name: 'other', ...container },
              {
                name: 'application',
                ...container,
                command: ['sh', '-c', `touch /tmp/accepting; ${container.command[2]}`],
              },
            ],
          },
        },
      },
    } as never)
    await client.create(StatefulApp, {
      metadata: { name, namespace },
      spec: {
        lifecycle: name,
        workload: { apiVersion: 'apps/v1', kind: 'StatefulSet', name },
        via: { exec: { container: 'application' } },
        desired: { state: 'Running' },
      },
    } as never)
  }, 120_000)
  afterAll(async () => {
    if (namespace) await access.client.delete(Namespace, { name: namespace })
    await controller?.stop()
    await access?.client.delete(ClusterRoleBinding, { name: account.name })
    await access?.client.delete(ServiceAccount, account)
    await access?.client.delete(ClusterRole, { name: account.name })
    await access?.close()
    rmSync(folder, { recursive: true })
  }, 60_000)

  /** In the app's namespace alone. */
  async function permit(verbs: string[]): Promise<void> {
    const metadata = { name: 'shipmate-exec', namespace }
    await access.client.apply(Role, { metadata, rules: [{ apiGroups: [''], resources: ['pods/exec'], verbs }] })
    await access.client.apply(RoleBinding, {
      metadata,
      roleRef: { apiGroup, kind: 'Role', name: metadata.name },
      subjects: [{ kind: 'ServiceAccount', ...account }],
    })
  }
  const inside = async (pod: number, ...command: string[]) => {
    const options = { container: 'application', command }
    return (await exec(access.credentials, { namespace, name: `${name}-${pod}` }, options)).stdout
  }
  async function until(expected: string, holds: (status: Status) => unknown): Promise<Status> {
    let last: Status = {}
    try {
      return await vi.waitFor(
        async () => {
          const { status, metadata } = await access.client.get(StatefulApp, { namespace, name })
          last = (status ?? {}) as Status
          expect(last.observedGeneration === metadata.generation && holds(last)).toBeTruthy()
          return last
        },
        { timeout: 60_000, interval: 100 },
      )
    } catch {
      const said = controller.lines.slice(-20).join('')
      throw new Error(`expected: ${expected}; it is\n${JSON.stringify(last, null, 1)}\n${said}`)
    }
  }
  const condition = ({ conditions = [] }: Status, type: string) => conditions.find(one => one.type === type)
  const ready = (status: Status, state: string) =>
    status.state === state && condition(status, 'Ready')?.status === 'True'
  const wish = (desired: object) =>
    access.client.patch(
      StatefulApp,
      { namespace, name },
      { merge: { spec: { desired: { action: null, params: null, ...desired } } } },
    )

  it('needs what its documentation says, and says what it lacks', async () => {
    const lacks = (verb: string) =>
      until(`that it may not ${verb} pods/exec`, one => {
        const { message = '' } = condition(one, 'SidecarsReachable') ?? {}
        return one.state === 'Unknown' && message.includes(`cannot ${verb} resource "pods/exec"`)
      })
    await lacks('get')
    await permit(['get'])
    await lacks('create')
    await permit(['get', 'create'])
    const status = await until('Running', one => ready(one, 'Running'))
    expect(condition(status, 'ExactlyOnce')).toMatchObject({ status: 'False', reason: 'NoSidecar' })
    expect(condition(status, 'SidecarsReachable')).toMatchObject({ status: 'Unknown', reason: 'NoSidecar' })
  })

  it('walks the same graph, by commands in the container that is named', async () => {
    await wish({ state: 'Servicing', action: 'backup', params: { to: "it's; $HOME" } })
    const served = await until('a backup', one => one.wish?.outcome === 'Succeeded' && ready(one, 'Running'))
    expect(served.path).toMatch(/Running.*Servicing/)
    for (const pod of [0, 1]) expect(await inside(pod, 'cat', '/tmp/backups')).toBe("it's; $HOME\n")

    await inside(1, 'mv', '/tmp/accepting', '/tmp/not')
    await until('Start, as a guard is lost', one => one.state === 'Start' && one.reason === 'GuardLost')
    await inside(1, 'mv', '/tmp/not', '/tmp/accepting')
    await until('Running again', one => ready(one, 'Running'))
  })

  it('says what a command that failed said', async () => {
    await wish({ state: 'Servicing', action: 'broken' })
    await until(
      'a failure',
      one => one.wish?.outcome === 'Failed' && condition(one, 'Stalled')?.reason === 'WishFailed',
    )
    const operations = await access.client.list(Operation, { namespace })
    const broken = operations.find(({ spec }) => spec.action === 'broken')
    expect(broken?.status?.runs?.[0]).toMatchObject({ phase: 'Failed', exitCode: 3 })
    expect(JSON.stringify(broken?.status)).toContain('no disk')
  })

  it('is stopped and ended', async () => {
    await wish({ state: 'End' })
    const ended = await until('End', one => ready(one, 'End'))
    expect(ended.path).toMatch(/>Stopping.*>End$/)
    expect((await access.client.get(StatefulSet, { namespace, name })).spec?.replicas).toBe(0)
  })
})
