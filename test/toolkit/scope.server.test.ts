/**
 * A custom resource of no namespace, with children in one and in none, on a real API server.
 */
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest'
import { z } from 'zod'
import { type Access, connect } from '../../controller/kube/access.ts'
import { NotFound } from '../../controller/kube/errors.ts'
import { ConfigMap, CustomResourceDefinition, Namespace, PriorityClass } from '../../controller/kube/kinds.ts'
import { createManager, type Manager } from '../../controller/runtime/manager.ts'
import {
  addTo,
  advancedReconciler,
  type Condition,
  defineCustomResource,
  mutable,
  stepper,
} from '../../controller/toolkit/index.ts'

const patience = { timeout: 20_000, interval: 50 }
const file = inject('kubeconfig')
const Tenant = defineCustomResource({
  ...{ group: 'scope.test.example.com', version: 'v1', kind: 'Tenant', namespaced: false },
  spec: z.object({ priority: z.int(), greeting: z.string() }),
})

let access: Access
let manager: Manager
let started: Promise<void>
let home: string
const writes: string[] = []
beforeAll(async () => {
  access = connect({ kubeconfig: { file } })
  await access.client.create(CustomResourceDefinition, Tenant.crd() as never)
  await vi.waitFor(() => access.client.list(Tenant), patience)
  home = (await access.client.create(Namespace, { metadata: { generateName: 'scope-' } })).metadata.name
})
afterAll(async () => {
  await manager?.stop()
  await started
  await access.close()
})

it('looks after both, through changes, drift, pruning and its deletion', async () => {
  const name = `tenant-${home}`
  const finalized: string[] = []
  const priority = mutable(PriorityClass, Tenant, {
    name: cr => `${cr.metadata.name}-${cr.spec.priority}`,
    mutateWithInitialData: cr => ({ value: cr.spec.priority }),
    finalizer: ({ object }) => void finalized.push(object.metadata.name),
  })
  const greeting = mutable(ConfigMap, Tenant, {
    namespace: home,
    mutateWithInitialData: cr => ({ data: { greeting: cr.spec.greeting } }),
    finalizer: ({ object }) => void finalized.push(`${object.metadata.namespace}/${object.metadata.name}`),
  })
  manager = createManager({
    ...{ name: 'tenants', kubeconfig: { file }, signals: false, log: { level: 'silent' } },
    interceptors: [
      next => request => {
        const { verb, resource, name } = request.target
        if (request.method !== 'GET' && resource !== 'events') writes.push(`${verb} ${resource} ${name}`)
        return next(request)
      },
    ],
  })
  addTo(
    manager,
    advancedReconciler(Tenant, {
      resources: [priority, greeting],
      engine: stepper({ CRFinalizer: ({ deleteAllResources }) => deleteAllResources() }),
    }),
  )
  started = manager.start()
  const condition = async (type: string) =>
    ((await access.client.get(Tenant, { name })).status?.conditions as Condition[] | undefined)?.find(
      one => one.type === type,
    )
  const isReady = (generation: number) =>
    vi.waitFor(
      async () => expect(await condition('Ready')).toMatchObject({ status: 'True', observedGeneration: generation }),
      patience,
    )
  const map = () => access.client.get(ConfigMap, { name, namespace: home })

  const { metadata } = await access.client.create(Tenant, { metadata: { name }, spec: { priority: 7, greeting: 'hi' } })
  await isReady(1)
  const owner = { kind: 'Tenant', name, uid: metadata.uid, controller: true }
  expect((await access.client.get(PriorityClass, { name: `${name}-7` })).metadata.ownerReferences).toMatchObject([
    owner,
  ])
  expect((await map()).metadata.ownerReferences).toMatchObject([owner])
  const maker = (await map()).metadata.annotations?.['shipmate.dev/maker']
  expect(maker).toBe(`tenant/Tenant.scope.test.example.com//${name}`)

  await access.client.patch(ConfigMap, { name, namespace: home }, { merge: { data: { greeting: 'theirs' } } })
  await vi.waitFor(async () => expect((await map()).data).toEqual({ greeting: 'hi' }), patience)

  await access.client.patch(Tenant, { name }, { merge: { spec: { priority: 8, greeting: 'hello' } } })
  await isReady(2)
  expect((await map()).data).toEqual({ greeting: 'hello' })
  await vi.waitFor(
    () => expect(access.client.get(PriorityClass, { name: `${name}-7` })).rejects.toBeInstanceOf(NotFound),
    patience,
  )
  expect(finalized).toEqual([`${name}-7`])

  await access.client.delete(Tenant, { name })
  await vi.waitFor(() => expect(access.client.get(Tenant, { name })).rejects.toBeInstanceOf(NotFound), patience)
  await expect(map()).rejects.toBeInstanceOf(NotFound)
  await expect(access.client.get(PriorityClass, { name: `${name}-8` })).rejects.toBeInstanceOf(NotFound)
  expect(finalized.slice(1).sort()).toEqual([`${home}/${name}`, `${name}-8`].sort())
  expect(writes.filter(write => write.includes('namespaces'))).toEqual([])
})
