/**
 * examples/memcached against a real API server, as one story: each test goes on where the one before it ended. Nobody makes pods there, so the test plays the part
 * of the Deployment's controller.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { Deployment, Event, Pod } from '../../controller/kube/kinds.ts'
import { Memcached } from '../../examples/memcached/operator.ts'
import { available } from '../fixtures/controllers.ts'
import { type Example, useExample } from '../fixtures/example.ts'

let example: Example
let ref: { name: string; namespace: string }
beforeAll(async () => {
  example = await useExample('memcached', inject('kubeconfig'))
  ref = { name: 'sample', namespace: example.namespace }
  await example.start()
}, 60_000)
afterAll(() => example?.end())

const memcached = () => example.client.get(Memcached, ref)
const deployment = () => example.client.get(Deployment, ref)
const condition = (type: string) => example.condition(Memcached, 'sample', type)
const labels = { 'app.kubernetes.io/name': 'memcached', 'app.kubernetes.io/instance': 'sample' }

/** Whose controller makes the pods of a Deployment. */
const replicaSet = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'sample-1', uid: randomUUID(), controller: true }

/** As the Deployment's controller would: these pods, as many as are wished, all available. */
async function serve(names: string[]): Promise<void> {
  const { namespace } = ref
  for (const { metadata } of await example.client.list(Pod, { namespace })) {
    if (!names.includes(metadata.name)) await example.client.delete(Pod, metadata, { gracePeriodSeconds: 0 })
  }
  for (const name of names) {
    if (await example.client.find(Pod, { name, namespace })) continue
    const spec = { containers: [{ name: 'memcached', image: 'memcached:1.6-alpine' }] }
    await example.client.create(Pod, { metadata: { name, namespace, labels, ownerReferences: [replicaSet] }, spec })
  }
  expect(await available(example.client, ref)).toBe(names.length)
}

it('makes a Deployment from the sample, and says what is missing', async () => {
  await example.apply('sample.yaml')
  await example.until('a Deployment of two servers', async () => {
    const { metadata, spec } = await deployment()
    expect(spec?.replicas).toBe(2)
    expect(spec?.template.metadata?.labels).toEqual(labels)
    expect(spec?.template.spec?.containers[0]).toMatchObject({
      command: ['memcached', '--memory-limit=64'],
      resources: { requests: { memory: '64Mi' } },
    })
    const { uid } = (await memcached()).metadata
    expect(metadata.ownerReferences).toMatchObject([{ kind: 'Memcached', uid, controller: true }])
  })
  await example.until('that no server is there yet', async () => {
    expect(await condition('Available')).toMatchObject({
      status: 'False',
      message: '0 of 2 servers are available',
    })
    expect(await condition('Degraded')).toMatchObject({ status: 'True', reason: 'ServersMissing' })
    expect(await condition('Ready')).toMatchObject({ status: 'False' })
  })
  expect((await memcached()).metadata.finalizers).toEqual(['cache.example.com/finalizer'])
})

it('says which pods serve, and that all is well', async () => {
  await serve(['sample-a', 'sample-b'])
  await example.until('two nodes', async () => {
    const { status } = await memcached()
    expect(status).toMatchObject({ size: 2, nodes: ['sample-a', 'sample-b'] })
    expect(await condition('Available')).toMatchObject({ status: 'True' })
    expect(await condition('Degraded')).toMatchObject({ status: 'False' })
    expect(await condition('Ready')).toMatchObject({ status: 'True' })
  })
  await example.until('an Event', async () => {
    const events = await example.client.list(Event, { namespace: ref.namespace })
    expect(events.map(({ reason, note }) => `${reason}: ${note}`)).toContain('Created: Deployment sample was created')
  })
  expect(await example.kubectl('get', 'mc')).toMatch(/NAME\s+SIZE\s+AVAILABLE\s+READY\s+AGE\nsample\s+2\s+2\s+True/)
})

it('asks nothing of the server when nothing changed', async () => {
  expect(await example.requestsDuring(() => example.touch(Memcached, 'sample'))).toEqual([])
})

it('puts back what somebody has changed or deleted', async () => {
  await example.client.patch(Deployment, ref, { merge: { spec: { replicas: 7 } } })
  await example.until('two replicas again', async () => expect((await deployment()).spec?.replicas).toBe(2))
  const { uid } = (await deployment()).metadata
  await example.client.delete(Deployment, ref)
  await example.until('another Deployment', async () => expect((await deployment()).metadata.uid).not.toBe(uid))
  await serve(['sample-a', 'sample-b'])
  await example.until('that all is well', async () => expect((await condition('Ready'))?.status).toBe('True'))
})

it('follows its size, also by kubectl scale', async () => {
  await example.kubectl('scale', 'mc/sample', '--replicas=3')
  await example.until('three replicas', async () => expect((await deployment()).spec?.replicas).toBe(3))
  await serve(['sample-a', 'sample-b', 'sample-c'])
  await example.until('three nodes', async () =>
    expect((await memcached()).status?.nodes).toEqual(['sample-a', 'sample-b', 'sample-c']),
  )
  await expect(example.kubectl('scale', 'mc/sample', '--replicas=9')).rejects.toThrow('less than or equal to 5')
})

it('writes nothing when it is started again', async () => {
  await example.until('that all is well', async () => expect((await condition('Ready'))?.status).toBe('True'))
  expect(await example.writesAfterRestart()).toEqual([])
})

it('leaves nothing when it is deleted', async () => {
  const { uid } = (await memcached()).metadata
  await example.kubectl('delete', 'mc', 'sample', '--timeout=30s')
  expect(await example.client.find(Memcached, ref)).toBeUndefined()
  // The server of the tests has no garbage collector: the owner reference says what it would take.
  const left = await example.client.list(Deployment, { namespace: ref.namespace })
  for (const { metadata } of left) {
    expect(metadata.ownerReferences?.map(owner => owner.uid)).toEqual([uid])
    expect(metadata.finalizers ?? []).toEqual([])
  }
  await example.until('an Event', async () => {
    const events = await example.client.list(Event, { namespace: ref.namespace })
    expect(events.map(({ reason }) => reason)).toContain('Deleting')
  })
  expect(
    example.log().filter(line => /"level":"error"|forbidden/i.test(line)),
    'what went wrong, or its rules lack',
  ).toEqual([])
})
