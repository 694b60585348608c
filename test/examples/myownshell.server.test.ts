/**
 * examples/myownshell against a real API server, as one story: each test goes on where the one before it ended.
 */
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { ClusterRole, ConfigMap, Deployment, Lease } from '../../controller/kube/kinds.ts'
import { MyOwnShell } from '../../examples/myownshell/operator.ts'
import { available } from '../fixtures/controllers.ts'
import { type Example, useExample } from '../fixtures/example.ts'

let example: Example
let ref: { name: string; namespace: string }
let profileRef: { name: string; namespace: string }
beforeAll(async () => {
  example = await useExample('myownshell', inject('kubeconfig'))
  ref = { name: 'sample', namespace: example.namespace }
  profileRef = { ...ref, name: 'sample-profile' }
  await example.start()
}, 60_000)
afterAll(() => example?.end())

const shell = () => example.client.get(MyOwnShell, ref)
const deployment = () => example.client.get(Deployment, ref)
const profile = () => example.client.get(ConfigMap, profileRef)
const condition = (type: string) => example.condition(MyOwnShell, 'sample', type)

/** As the Deployment's controller would: all pods are available. */
async function open(): Promise<void> {
  const count = await available(example.client, ref)
  await example.until('a ready MyOwnShell', async () => {
    expect((await condition('Ready'))?.status).toBe('True')
    expect((await shell()).status?.size).toBe(count)
  })
}

async function forbidToDelete(resource: string): Promise<() => Promise<void>> {
  const { rules = [] } = await example.client.get(ClusterRole, { name: 'myownshell' })
  const set = async (now: typeof rules) =>
    void (await example.client.patch(ClusterRole, { name: 'myownshell' }, { merge: { rules: now } }))
  await set(
    rules.map(rule =>
      rule.resources?.includes(resource) ? { ...rule, verbs: rule.verbs.filter(verb => verb !== 'delete') } : rule,
    ),
  )
  return () => set([...rules])
}

it('makes shells and their profile from the sample', async () => {
  await example.apply('sample.yaml')
  await example.until('a Deployment of three shells', async () => {
    const { metadata, spec } = await deployment()
    const labels = { 'app.kubernetes.io/name': 'myownshell', 'app.kubernetes.io/instance': 'sample' }
    expect(spec?.replicas).toBe(3)
    expect(metadata.labels).toEqual(labels)
    expect(spec?.selector.matchLabels).toEqual(labels)
    const { uid } = (await shell()).metadata
    expect(metadata.ownerReferences).toMatchObject([{ kind: 'MyOwnShell', uid, controller: true }])
    expect(metadata.finalizers).toEqual(['shells.example.com/child'])
  })
  const { metadata, data } = await profile()
  expect(data?.profile).toContain('sample')
  expect(metadata.ownerReferences).toBeUndefined()
  await open()
})

it('serves health and metrics, and holds a lease', async () => {
  expect(await example.get('/healthz')).toContain('ok')
  expect(await example.get('/metrics')).toMatch(
    /^controller_runtime_reconcile_total\{controller="myownshell",result="success"\} [1-9]/m,
  )
  const lease = await example.client.get(Lease, { name: 'myownshell', namespace: 'default' })
  expect(lease.spec?.holderIdentity).toBeTruthy()
})

it('asks nothing of the server when nothing changed', async () => {
  expect(await example.requestsDuring(() => example.touch(MyOwnShell, 'sample'))).toEqual([])
})

it('follows its size', async () => {
  await example.kubectl('patch', 'mos', 'sample', '--type=merge', '--patch', '{"spec":{"size":1}}')
  await example.until('one replica', async () => expect((await deployment()).spec?.replicas).toBe(1))
  await example.kubectl('scale', 'mos/sample', '--replicas=2')
  await example.until('two replicas', async () => expect((await deployment()).spec?.replicas).toBe(2))
  await open()
})

it('puts back what somebody has changed or deleted', async () => {
  await example.client.patch(Deployment, ref, { merge: { spec: { replicas: 7 } } })
  await example.until('two replicas again', async () => expect((await deployment()).spec?.replicas).toBe(2))
  const { data, metadata } = await profile()
  await example.client.patch(ConfigMap, profileRef, { merge: { data: { profile: 'PS1="theirs"' } } })
  await example.until('the profile again', async () => expect((await profile()).data).toEqual(data))
  await example.client.delete(ConfigMap, profileRef)
  await example.until('another profile', async () => expect((await profile()).metadata.uid).not.toBe(metadata.uid))
  await open()
})

it('finalizes a deleted Deployment, lets it go, and makes another', async () => {
  const { uid } = (await deployment()).metadata
  await example.client.delete(Deployment, ref)
  await example.until('another Deployment', async () => expect((await deployment()).metadata.uid).not.toBe(uid))
  expect(example.log().filter(line => line.includes('the shells of sample are closed'))).toHaveLength(1)
  await open()
})

it('names a Deployment that is held by a finalizer which nobody handles', async () => {
  const { finalizers = [], uid } = (await deployment()).metadata
  const hold = (names: readonly string[]) =>
    example.client.patch(Deployment, ref, { merge: { metadata: { finalizers: names } } })
  await hold([...finalizers, 'theirs.example.com/hold'])
  await example.client.delete(Deployment, ref)
  await example.until('its name and who holds it', async () =>
    expect(await condition('Ready')).toMatchObject({
      status: 'False',
      reason: 'ChildHeld',
      message: 'Deployment sample is being deleted, and held by the finalizer theirs.example.com/hold',
    }),
  )
  expect((await deployment()).metadata.finalizers, 'ours has gone').toEqual(['theirs.example.com/hold'])
  await hold([])
  await example.until('another Deployment', async () => expect((await deployment()).metadata.uid).not.toBe(uid))
  await open()
})

it('writes nothing when it is started again', async () => {
  expect(await example.writesAfterRestart()).toEqual([])
  expect(example.denied(), 'what its rules lack').toEqual([])
})

it('stays until it could be finalized, makes nothing meanwhile, and leaves nothing', async () => {
  const { uid } = (await shell()).metadata
  const allow = await forbidToDelete('configmaps')
  try {
    await example.until('that it may not delete ConfigMaps', async () => {
      const answer = await example
        .kubectl('auth', 'can-i', 'delete', 'configmaps', '--as=system:serviceaccount:default:myownshell')
        .catch(error => String(error.stdout))
      expect(answer.trim()).toBe('no')
    })
    await example.kubectl('delete', 'mos', 'sample', '--wait=false')
    await example.until('that it is told', async () =>
      expect(await condition('Deleting')).toMatchObject({ status: 'True', reason: 'FinalizationFailed' }),
    )
    expect((await condition('Deleting'))?.message).toContain('ConfigMap sample-profile')
    expect((await profile()).metadata.deletionTimestamp).toBeUndefined()

    await example.client.delete(Deployment, ref)
    await example.until('that the Deployment is gone', async () =>
      expect(await example.client.find(Deployment, ref)).toBeUndefined(),
    )
    await example.touch(MyOwnShell, 'sample')
    expect(await example.client.find(Deployment, ref), 'made anew while it is being deleted').toBeUndefined()
  } finally {
    await allow()
  }
  await example.until('that it is gone', async () =>
    expect((await example.client.find(MyOwnShell, ref))?.metadata.uid).not.toBe(uid),
  )
  expect(await example.client.find(ConfigMap, profileRef)).toBeUndefined()
  expect(await example.client.list(Deployment, { namespace: ref.namespace })).toEqual([])
})

it('lets go of all that it holds when it is deleted', async () => {
  await example.apply('sample.yaml')
  await example.until('a Deployment', async () => void (await deployment()))
  await open()
  const { uid } = (await shell()).metadata
  const said = example.log().length
  await example.kubectl('delete', 'mos', 'sample', '--timeout=30s')
  expect(await example.client.find(ConfigMap, profileRef)).toBeUndefined()
  // The server of the tests has no garbage collector: the owner reference says what it would take.
  const { ownerReferences, finalizers = [] } = (await deployment()).metadata
  expect(ownerReferences?.map(owner => owner.uid)).toEqual([uid])
  expect(finalizers).toEqual([])
  const words = example.log().slice(said)
  expect(words.filter(line => line.includes('the shells of sample are closed'))).not.toEqual([])
  expect(words.filter(line => line.includes('"level":"error"'))).toEqual([])
})
