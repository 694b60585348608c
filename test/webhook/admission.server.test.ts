/**
 * What a person is told by kubectl of a write that cannot be carried out, or that they could not have done themselves; and the sidecar in the pods that ask for it.
 */
import type { V1Pod } from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Lifecycle, Operation, OperationSchedule, StatefulApp } from '../../controller/app/kinds.ts'
import { type Access, connect } from '../../controller/kube/access.ts'
import { Forbidden, Invalid } from '../../controller/kube/errors.ts'
import type { Draft, Kind } from '../../controller/kube/kind.ts'
import { ClusterRole, ClusterRoleBinding, Namespace, Pod, ServiceAccount } from '../../controller/kube/kinds.ts'
import { addWebhooks, createManager, type Manager } from '../../controller/runtime/index.ts'
import { shipmateHooks } from '../../controller/webhook/hooks.ts'
import { type ApiServer, assetsMissing, startApiServer } from '../fixtures/apiserver.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'
import { postgres } from '../shared/lifecycle/postgres.ts'

const namespace = 'shop'
const settings = { version: '0.1.0', image: 'registry.example.com/shipmate-sidecar:0.1.0' }
const workload = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db' }
const template = { spec: { template: { spec: { containers: [{ name: 'db', image: 'db' }] } } } }

describe.skipIf(assetsMissing)('admission', () => {
  let server: ApiServer
  let admin: Access
  let manager: Manager
  let running: Promise<void>
  const people: Access[] = []

  beforeAll(async () => {
    server = await startApiServer()
    admin = connect({ kubeconfig: { file: server.kubeconfig } })
    await installOwnKinds(admin.client)
    for (const name of [namespace, 'shipmate-system']) await admin.client.create(Namespace, { metadata: { name } })
    // No controller makes it here.
    await admin.client.create(ServiceAccount, { metadata: { name: 'default', namespace } }).catch(() => undefined)
    manager = createManager({
      ...{ name: 'shipmate-controller', kubeconfig: { file: server.kubeconfig }, namespace: 'shipmate-system' },
      ...{ signals: false, log: { level: 'silent' } },
    } as never)
    addWebhooks(manager, {
      ...{ name: 'shipmate', register: true, listen: { host: '127.0.0.1', port: 0 }, linger: 0 },
      hooks: shipmateHooks({ client: admin.client, settings, user: 'controller' }),
      place: port => ({ url: `https://127.0.0.1:${port}` }),
    })
    running = manager.start()
    // The server learns of a registration a moment after it has its bundle.
    await vi.waitFor(
      async () => {
        const wrong = { state: 'Nowhere' }
        await expect(app('probe', { lifecycle: 'none', desired: wrong })).rejects.toThrow('there is no Lifecycle')
      },
      { timeout: 60_000, interval: 100 },
    )
    await admin.client.create(Lifecycle, { metadata: { name: 'postgres', namespace }, spec: postgres as never })
  }, 120_000)
  afterAll(async () => {
    await manager?.stop()
    await running
    for (const one of [...people, admin]) await one?.close()
    await server?.stop()
  }, 60_000)

  const create = <T extends object>(kind: Kind<T>, name: string, spec: object, access = admin) =>
    access.client.create(kind, { metadata: { name, namespace }, spec } as unknown as Draft<T>)
  const app = (name: string, spec: object, access = admin) =>
    create(StatefulApp, name, { lifecycle: 'postgres', workload, ...spec }, access)
  /** Somebody with these rules and no others. */
  async function person(name: string, rules: object[]): Promise<Access> {
    await admin.client.create(ClusterRole, { metadata: { name }, rules } as never)
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }]
    await admin.client.create(ClusterRoleBinding, { metadata: { name }, roleRef, subjects } as never)
    const access = connect({ kubeconfig: { file: await server.kubeconfigFor({ name }) } })
    people.push(access)
    return access
  }
  const own = { apiGroups: ['shipmate.dev'], resources: ['*'], verbs: ['get', 'create', 'update', 'patch', 'delete'] }

  it('refuses what the lifecycle cannot carry out, with the field and what would be accepted', async () => {
    await expect(app('a', { desired: { state: 'Runing' } })).rejects.toThrow(
      'spec.desired.state: "Runing" is no state in lifecycle postgres; did you mean "Running"?',
    )
    await expect(app('a', { desired: { state: 'Servicing', action: 'backpu' } })).rejects.toThrow(
      'is no action of state Servicing in lifecycle postgres; did you mean "backup"?',
    )
    await expect(
      app('a', { desired: { state: 'Servicing', action: 'backup', params: { to: '/etc' } } }),
    ).rejects.toThrow('spec.desired.params.to is "/etc", but')
    await expect(app('a', { lifecycle: 'postgers' })).rejects.toThrow('did you mean "postgres"?')
    await expect(create(Operation, 'o', { app: 'nobody', action: 'backup' })).rejects.toBeInstanceOf(Invalid)
    expect(await admin.client.find(StatefulApp, { name: 'a', namespace })).toBeUndefined()
  })

  it('refuses a lifecycle that cannot be used, with every field', async () => {
    const states = [
      { name: 'Start', next: ['Start'] },
      { name: 'Lost', when: 'probes.none.ok', next: ['Start'] },
    ]
    const error = await create(Lifecycle, 'wrong', { states }).catch((error: Error) => error)
    expect(error).toBeInstanceOf(Invalid)
    expect((error as Error).message).toMatch(/spec\.states\[1\]/)
  })

  it('takes what can be carried out, and checks the rest against the app', async () => {
    await app('orders', { desired: { state: 'Running' } })
    await expect(create(Operation, 'o1', { app: 'orders', action: 'backpu' })).rejects.toThrow('did you mean "backup"?')
    await create(Operation, 'o1', { app: 'orders', action: 'backup', params: { to: '/backup/1' } })
    await expect(
      create(OperationSchedule, 's', {
        ...{ schedule: '0 3 * * *', timeZone: 'Europe/Berlni', template: { app: 'orders', action: 'backup' } },
      }),
    ).rejects.toThrow('Europe/Berlin')
  })

  it('is in nobody’s way who leaves the spec alone, nor of the status, a finalizer or a deletion', async () => {
    const { client } = admin
    await client.create(Lifecycle, { metadata: { name: 'fleeting', namespace }, spec: postgres as never })
    await app('held', { lifecycle: 'fleeting', desired: { state: 'Running' } })
    // Were it asked about now, it would be refused.
    await client.delete(Lifecycle, { name: 'fleeting', namespace })
    const ref = { name: 'held', namespace }
    await client.patch(StatefulApp, ref, { merge: { metadata: { finalizers: ['example.com/x'], labels: { a: 'b' } } } })
    await client.patch(StatefulApp, ref, { merge: { status: { state: 'Start' } } }, { subresource: 'status' })
    await client.delete(StatefulApp, ref)
    await client.patch(StatefulApp, ref, { merge: { metadata: { finalizers: null } } })
    expect(await client.find(StatefulApp, ref)).toBeUndefined()
  })

  it('has nothing done for somebody that they could not do', async () => {
    const ada = await person('ada', [own])
    const forbidden = async (made: Promise<unknown>, why: string) => {
      const error = await made.catch((error: Error) => error)
      expect(error).toBeInstanceOf(Forbidden)
      expect((error as Error).message).toContain(why)
    }
    await forbidden(app('b', {}, ada), 'spec.workload: ada may not patch statefulsets.apps "db" in namespace shop')
    await forbidden(app('b', { workload: undefined, template }, ada), 'may not create statefulsets.apps')
    await forbidden(app('orders', { onEnd: 'DeleteWithVolumes' }, ada), 'may not delete persistentvolumeclaims')
    // A wish is hers, on what others have adopted.
    await ada.client.patch(StatefulApp, { name: 'orders', namespace }, { merge: { spec: { paused: true } } })
    const volumes = { merge: { spec: { onEnd: 'DeleteWithVolumes' } } }
    await forbidden(ada.client.patch(StatefulApp, { name: 'orders', namespace }, volumes), 'spec.onEnd')
    const bob = await person('bob', [
      own,
      { apiGroups: ['apps'], resources: ['statefulsets'], resourceNames: ['db'], verbs: ['patch'] },
    ])
    await app('b', {}, bob)
    await forbidden(app('c', { workload: { ...workload, name: 'other' } }, bob), '"other"')
    await forbidden(app('c', { workload: { ...workload, kind: 'Spaceship' } }, bob), 'no kind Spaceship')
  })

  it('lets who may settle do so, in their own name', async () => {
    const word = { run: 'r1', outcome: 'Succeeded', reason: 'the files are there', by: 'somebody else' }
    const ref = { name: 'o1', namespace }
    const say = (access: Access, settle: object[]) =>
      access.client.patch(Operation, ref, { merge: { spec: { settle } } })
    const ada = people[0] as Access
    const error = await say(ada, [word]).catch((error: Error) => error)
    expect(error).toBeInstanceOf(Forbidden)
    expect((error as Error).message).toContain('ada may not settle operations.shipmate.dev "o1"')
    const eve = await person('eve', [
      own,
      { apiGroups: ['shipmate.dev'], resources: ['operations'], verbs: ['settle'] },
    ])
    expect((await say(eve, [word])).spec.settle).toEqual([{ ...word, by: 'eve' }])
    // Whoever adds a word leaves the others'.
    const more = { ...word, run: 'r2' }
    expect((await say(admin, [word, more])).spec.settle).toEqual([
      { ...word, by: 'eve' },
      { ...more, by: 'admin' },
    ])
  })

  /** One that needs no service account. */
  const pod = (name: string, metadata: object) =>
    admin.client.create(Pod, {
      metadata: { name, namespace, ...metadata },
      spec: { containers: [{ name: 'db', image: 'db' }], automountServiceAccountToken: false },
    } as Draft<V1Pod>)
  const labels = { 'shipmate.dev/lifecycle': 'postgres' }

  it('adds the sidecar to pods that ask for it, and to no others', async () => {
    const { spec, metadata } = await pod('with', { labels })
    expect(spec?.initContainers).toMatchObject([{ image: settings.image, restartPolicy: 'Always' }])
    expect(metadata.annotations?.['shipmate.dev/app']).toBe('with')
    expect((await pod('without', {})).spec?.initContainers).toBeUndefined()
    await expect(pod('wrong', { labels, annotations: { 'shipmate.dev/ap': 'x' } })).rejects.toThrow('shipmate.dev/app')
  })

  it('holds no pod when nobody answers, and takes no wish that nobody has looked at', async () => {
    await manager.stop()
    await running
    expect((await pod('alone', { labels })).spec?.initContainers).toBeUndefined()
    await expect(app('d', {})).rejects.toThrow(/validate\.shipmate\.dev/)
  })
})
