/**
 * Story 2: a custom resource of one's own whose application has a lifecycle, on a real API server. Shipmate's controller is not here: what it would write, the test does.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { z } from 'zod'
import { type Access, connect } from '../../controller/kube/access.ts'
import type { Client } from '../../controller/kube/client.ts'
import { Invalid, NotFound } from '../../controller/kube/errors.ts'
import type { Kind } from '../../controller/kube/kind.ts'
import { Namespace } from '../../controller/kube/kinds.ts'
import { createManager, type Manager } from '../../controller/runtime/manager.ts'
import {
  addTo,
  advancedReconciler,
  appResource,
  defineCustomResource,
  Lifecycle,
  lifecycleResource,
  StatefulApp,
  type Wish,
} from '../../controller/toolkit/index.ts'
import { kubectl, kubectlMissing, needsKubectl } from '../fixtures/kubectl.ts'
import { installKinds, installOwnKinds } from '../fixtures/own-kinds.ts'
import { postgres } from '../shared/lifecycle/postgres.ts'

const file = inject('kubeconfig')
const patience = { timeout: 20_000, interval: 50 }
const held = 'shipmate.dev/lifecycle'
const at = '2026-11-16T14:02:00Z'

const Database = defineCustomResource({
  group: 'story.test.example.com',
  version: 'v1',
  kind: 'Database',
  spec: z.object({ size: z.int().min(1).default(1) }),
  columns: { Size: '.spec.size' },
  lifecycle: { spec: postgres },
})

const lifecycle = lifecycleResource(Database)
const app = appResource(Database, {
  lifecycle,
  workload: cr => ({ kind: 'StatefulSet', name: cr.metadata.name }),
  endingDeadline: '5m',
})

describe.skipIf(!file)('a custom resource whose app has a lifecycle', () => {
  let access: Access
  let client: Client
  let namespace: string
  let manager: Manager
  let started: Promise<void>
  let writes: number

  beforeAll(async () => {
    access = connect({ kubeconfig: { file } })
    client = access.client
    await installOwnKinds(client)
    await installKinds(client, [Database])
  })
  afterAll(() => access.close())
  beforeEach(async () => {
    namespace = (await client.create(Namespace, { metadata: { generateName: 'story-' } })).metadata.name
    writes = 0
    manager = createManager({
      ...{ name: 'databases', kubeconfig: { file }, namespaces: [namespace], signals: false, log: { level: 'silent' } },
      interceptors: [
        next => request => {
          if (request.method !== 'GET') writes++
          return next(request)
        },
      ],
    })
    addTo(manager, advancedReconciler(Database, { resources: [lifecycle, app], throttle: { first: 100 } }))
    started = manager.start()
  })
  afterEach(async () => {
    await manager.stop()
    await started
  })

  const ref = () => ({ name: 'orders', namespace })
  const create = (desired?: Wish) =>
    client.create(Database, Database.draft({ metadata: ref(), spec: { ...(desired && { desired }) } }))
  const wish = (desired: object | null) => client.patch(Database, ref(), { merge: { spec: { desired } } })
  const theApp = () => client.get(StatefulApp, ref())
  const conditionOf = async (type: string) =>
    (await client.get(Database, ref())).status?.conditions?.find(one => one.type === type)
  /** As Shipmate's controller does when it first sees an app. */
  const hold = () =>
    client.patch(StatefulApp, ref(), { json: [{ op: 'add', path: '/metadata/finalizers/-', value: held }] })
  const letGo = async () => {
    const { finalizers = [], resourceVersion } = (await theApp()).metadata
    const left = finalizers.filter(one => one !== held)
    await client.patch(StatefulApp, ref(), { merge: { metadata: { resourceVersion, finalizers: left } } })
  }
  /** As it writes how far the app is. */
  const observe = async (state: string, conditions: Record<string, ['True' | 'False', string, string]>, more = {}) => {
    const { generation } = (await theApp()).metadata
    const told = Object.entries(conditions).map(([type, [status, reason, message]]) => {
      return { type, status, reason, message, lastTransitionTime: at, observedGeneration: generation }
    })
    const status = { state, since: at, observedGeneration: generation, conditions: told, ...more }
    await client.patch(StatefulApp, ref(), { merge: { status } }, { subresource: 'status' })
  }
  const isThere = () => vi.waitFor(theApp, patience)
  const isGone = (kind: Kind) =>
    vi.waitFor(async () => expect(client.get(kind, ref())).rejects.toBeInstanceOf(NotFound), patience)

  test('the StatefulApp and its Lifecycle are made, with the wish in it', async () => {
    await create({ state: 'Running' })
    await isThere()
    const { spec, metadata } = await theApp()
    expect(spec).toMatchObject({
      lifecycle: 'orders',
      workload: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'orders' },
      desired: { state: 'Running' },
      deletion: { policy: 'WalkToEnd', deadline: '5m' },
    })
    expect(metadata.ownerReferences).toMatchObject([{ kind: 'Database', name: 'orders', controller: true }])
    expect((await client.get(Lifecycle, ref())).spec.states).toEqual(postgres.states)
  })

  test('it follows the wish, and is only observed without one', async () => {
    await create()
    await isThere()
    expect((await theApp()).spec).not.toHaveProperty('desired')
    expect((await theApp()).spec.deletion).not.toHaveProperty('policy')
    const backup = { state: 'Servicing', action: 'backup', params: { to: '/backup/1' }, request: 'a' }
    await wish(backup)
    await vi.waitFor(async () => expect((await theApp()).spec.desired).toEqual(backup), patience)
    await wish(null)
    await vi.waitFor(async () => expect((await theApp()).spec).not.toHaveProperty('desired'), patience)
  })

  test.skipIf(kubectlMissing)(
    `the state of the app stands in the custom resource, with what it waits for and what stalls it${needsKubectl}`,
    async () => {
      await create({ state: 'Running' })
      await isThere()
      await vi.waitFor(async () => {
        expect(await conditionOf('AppState')).toMatchObject({ status: 'Unknown', reason: 'NotObserved' })
        expect(await conditionOf('Ready')).toMatchObject({ status: 'False', reason: 'AppNotObserved' })
      }, patience)

      const waitingFor = 'orders-0 to accept connections, since 14:02'
      const moving = { Ready: ['False', 'Start', waitingFor], Reconciling: ['True', 'Start', waitingFor] } as const
      await observe('Start', { ...structuredClone(moving), AtDesiredState: ['False', 'Start', 'not yet'] } as never, {
        waitingFor,
        path: '>Start',
      })
      await vi.waitFor(async () => {
        expect(await conditionOf('AppState')).toMatchObject({
          status: 'False',
          reason: 'Start',
          message: `The app is in Start: ${waitingFor}`,
        })
        const ready = await conditionOf('Ready')
        expect(ready).toMatchObject({ status: 'False', message: expect.stringContaining(waitingFor) })
        const { status } = await client.get(Database, ref())
        expect(status?.app).toEqual({ name: 'orders', state: 'Start', since: at, waitingFor, path: '>Start' })
      }, patience)

      await observe(
        'Running',
        { Ready: ['True', 'Running', ''], AtDesiredState: ['True', 'Running', ''] },
        { waitingFor: null },
      )
      await vi.waitFor(async () => {
        expect(await conditionOf('AppState')).toMatchObject({ status: 'True', reason: 'Running' })
        expect(await conditionOf('Ready')).toMatchObject({ status: 'True' })
        expect((await client.get(Database, ref())).status?.app).not.toHaveProperty('waitingFor')
      }, patience)

      const why = 'the backup failed: no space left'
      await observe('Running', { Ready: ['False', 'WishFailed', why], Stalled: ['True', 'WishFailed', why] })
      await vi.waitFor(async () => {
        expect(await conditionOf('AppState')).toMatchObject({
          status: 'False',
          message: `The app is in Running: ${why}`,
        })
        expect(await conditionOf('Stalled')).toMatchObject({ status: 'True', message: expect.stringContaining(why) })
      }, patience)
      expect(await kubectl(file, '-n', namespace, 'get', 'database', 'orders')).toMatch(
        /DESIRED\s+STATE\s+SIZE[\s\S]*Running\s+Running\s+1/,
      )
    },
  )

  test('what is deleted comes to its end first, and says how far it is', async () => {
    await create({ state: 'Running' })
    await isThere()
    await hold()
    await observe('Running', { Ready: ['True', 'Running', ''] })
    await vi.waitFor(async () => expect(await conditionOf('Ready')).toMatchObject({ status: 'True' }), patience)

    await client.delete(Database, ref())
    await vi.waitFor(async () => expect((await theApp()).metadata.deletionTimestamp).toBeDefined(), patience)
    await observe('Stopping', { Ready: ['False', 'Stopping', ''] }, { waitingFor: 'orders-0 to finish stop' })
    await vi.waitFor(async () => {
      expect(await conditionOf('Deleting')).toMatchObject({ status: 'True', reason: 'AppEnding' })
      expect((await conditionOf('Deleting'))?.message).toBe(
        'StatefulApp orders is on its way to its end, in Stopping: orders-0 to finish stop',
      )
      expect(await conditionOf('AppState')).toMatchObject({ reason: 'Stopping' })
    }, patience)
    expect((await client.get(Database, ref())).metadata.finalizers).toEqual(['story.test.example.com/finalizer'])

    await letGo()
    await isGone(StatefulApp)
    await isGone(Database)
  })

  test('a StatefulApp that somebody deletes is made anew when it has come to its end', async () => {
    await create({ state: 'Running' })
    await isThere()
    await hold()
    const { uid } = (await theApp()).metadata
    await client.delete(StatefulApp, ref())
    await vi.waitFor(
      async () => expect(await conditionOf('Ready')).toMatchObject({ status: 'False', reason: 'AppEnding' }),
      patience,
    )
    expect((await theApp()).metadata.uid).toBe(uid)
    await letGo()
    await vi.waitFor(async () => expect((await theApp()).metadata.uid).not.toBe(uid), patience)
  })

  test('one that nobody has looked at goes at once', async () => {
    await create({ state: 'Running' })
    await isThere()
    await client.delete(Database, ref())
    await isGone(Database)
    await isGone(StatefulApp)
  })

  test('nothing is written while nothing changes', async () => {
    await create({ state: 'Servicing', action: 'backup', params: { to: '/backup/1' } })
    await isThere()
    await observe('Running', { Ready: ['True', 'Running', ''] }, { path: '>Start>Running' })
    await vi.waitFor(async () => expect(await conditionOf('Ready')).toMatchObject({ status: 'True' }), patience)
    const before = writes
    // Wakes the operator without a change that concerns it.
    await client.patch(Database, ref(), { merge: { metadata: { annotations: { seen: 'yes' } } } })
    await client.patch(StatefulApp, ref(), { merge: { metadata: { annotations: { seen: 'yes' } } } })
    await client.patch(Database, ref(), { merge: { spec: { size: 2 } } })
    await vi.waitFor(
      async () => expect((await client.get(Database, ref())).status?.observedGeneration).toBe(2),
      patience,
    )
    expect(writes - before).toBe(1)
  })

  test.each<[string, object, string]>([
    [
      'a state that the lifecycle does not have',
      { state: 'Runing' },
      'Unsupported value: "Runing": supported values: "Start", "Running", "Servicing", "Stopping", "End"',
    ],
    [
      'an action of another state',
      { state: 'Stopping', action: 'backup' },
      'action is none of the wished state: Servicing has backup, reload; Stopping has stop',
    ],
    ['an action where none is', { state: 'Running', action: 'backup' }, 'action is none of the wished state'],
    [
      'a state with several actions and none named',
      { state: 'Servicing' },
      'Servicing has several actions: say in `action` which of backup, reload',
    ],
    [
      'parameters where nothing takes them',
      { state: 'Running', params: { to: '/backup/1' } },
      'parameters are for Servicing, Stopping alone',
    ],
    ['no parameters where they are needed', { state: 'Servicing', action: 'backup' }, 'backup needs the parameters to'],
  ])('%s is refused by the API server', async (_, desired, words) => {
    const refused = await create(desired as Wish).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(Invalid)
    expect((refused as Invalid).message).toContain(words)
  })
})
