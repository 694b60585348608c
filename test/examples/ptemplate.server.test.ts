/**
 * examples/ptemplate against a real API server, as one story: each test goes on where the one before it ended. It begins without KMM; later its CRD comes, and goes
 * again. Neither KMM itself nor the controller of DaemonSets is there, so the test plays their parts.
 */
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { CustomResourceDefinition, DaemonSet, Pod } from '../../controller/kube/kinds.ts'
import { Module, Ptemplate } from '../../examples/ptemplate/operator.ts'
import { onNodes } from '../fixtures/controllers.ts'
import { type Example, useExample } from '../fixtures/example.ts'
import { kmm, offer } from '../fixtures/kmm.ts'

let example: Example
let namespace: string
beforeAll(async () => {
  example = await useExample('ptemplate', inject('kubeconfig'))
  namespace = example.namespace
  await example.start()
}, 60_000)
afterAll(async () => {
  await example?.client.delete(CustomResourceDefinition, { name: kmm.metadata.name }).catch(() => undefined)
  await example?.end()
})

const called = (name: string) => ({ name, namespace })
const ptemplate = () => example.client.get(Ptemplate, called('sample'))
const module = (name = 'sample') => example.client.get(Module, called(name))
const consumers = () => example.client.get(DaemonSet, called('sample-consumer'))
const condition = (type: string) => example.condition(Ptemplate, 'sample', type)
const change = (spec: object) => example.client.patch(Ptemplate, called('sample'), { merge: { spec } })
const loaded = (status: string, reason: string) =>
  example.until(`ModuleLoaded is ${status}: ${reason}`, async () =>
    expect(await condition('ModuleLoaded')).toMatchObject({ status, reason }),
  )
const metric = async (line: string) => (await example.get('/metrics')).split('\n').find(one => one.startsWith(line))

/** As the DaemonSet's controller would: a pod on each of these nodes. */
async function consume(nodes: string[]): Promise<void> {
  const { apiVersion, kind, metadata, spec } = await consumers()
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true }
  const labels = spec?.template.metadata?.labels
  for (const node of nodes) {
    await example.client.create(Pod, {
      metadata: { name: `sample-consumer-${node}`, namespace, labels, ownerReferences: [owner] },
      spec: spec?.template.spec,
    })
  }
  await onNodes(example.client, called('sample-consumer'), nodes.length)
}

it('does without KMM what can be done without it, and says so', async () => {
  await example.apply('sample.yaml')
  await loaded('Unknown', 'KmmAbsent')
  const { spec, metadata } = await consumers()
  const { uid } = (await ptemplate()).metadata
  expect(metadata.ownerReferences).toMatchObject([{ kind: 'Ptemplate', uid, controller: true }])
  expect(spec?.template.spec).toMatchObject({
    nodeSelector: { 'node-role.kubernetes.io/worker': 'worker' },
    imagePullSecrets: [{ name: 'ptemplate-pull' }],
    containers: [
      {
        image: 'registry.example.com/ptemplate/consumer:1',
        resources: { limits: { 'pt.example.com/device': '2' } },
      },
    ],
  })
  expect(await example.get('/readyz')).toContain('ok')
})

it('says which pods use the devices', async () => {
  await consume(['node-b', 'node-a'])
  await example.until('two consumers', async () => {
    expect((await ptemplate()).status?.consumers).toEqual(['sample-consumer-node-a', 'sample-consumer-node-b'])
    expect(await condition('Ready')).toMatchObject({ status: 'True' })
  })
  expect(await metric('ptemplate_consumers')).toBe(`ptemplate_consumers{namespace="${namespace}",name="sample"} 2`)
  expect(await metric('ptemplate_writes_total{operation="create"}')).toMatch(/ 1$/)
})

it('asks nothing of the server when nothing changed, KMM being absent', async () => {
  expect(await example.requestsDuring(() => example.touch(Ptemplate, 'sample'))).toEqual([])
})

it('goes on when KMM appears', async () => {
  await example.client.create(CustomResourceDefinition, kmm)
  await loaded('False', 'Loading')
  const { spec, metadata } = await module()
  const { uid } = (await ptemplate()).metadata
  expect(metadata.ownerReferences).toMatchObject([{ kind: 'Ptemplate', uid, controller: true }])
  expect(spec).toEqual({
    moduleLoader: {
      container: {
        modprobe: { moduleName: 'ptemplate', parameters: ['max_dev=5', 'default_msg=hello'], dirName: '/opt' },
        kernelMappings: [
          { regexp: '^.+$', containerImage: expect.stringMatching(/\/ptemplate\/module:\$\{KERNEL_FULL_VERSION\}$/) },
        ],
      },
    },
    devicePlugin: { container: { image: 'registry.example.com/ptemplate/device-plugin:1' } },
    imageRepoSecret: { name: 'ptemplate-pull' },
    selector: { 'node-role.kubernetes.io/worker': 'worker' },
  })
  expect(await condition('Ready')).toMatchObject({ status: 'False', reason: 'Loading' })
  await offer(example.client, called('sample'), 1)
  await offer(example.client, called('sample'), 2)
  await loaded('True', 'Loaded')
  expect(await condition('Ready')).toMatchObject({ status: 'True' })
  expect(await example.kubectl('get', 'ptemplate')).toMatch(
    /NAME\s+DEVICES\s+LOADED\s+READY\s+AGE\nsample\s+2\s+True\s+True/,
  )
})

it('asks nothing of the server when nothing changed', async () => {
  expect(await example.requestsDuring(() => example.touch(Ptemplate, 'sample'))).toEqual([])
})

it('puts back what somebody has changed or deleted, of both', async () => {
  const theirs = { spec: { selector: { 'node-role.kubernetes.io/worker': 'theirs' } } }
  await example.client.patch(Module, called('sample'), { merge: theirs })
  await example.until('our selector', async () =>
    expect((await module()).spec).toMatchObject({ selector: { 'node-role.kubernetes.io/worker': 'worker' } }),
  )
  const template = { spec: { template: { spec: { nodeSelector: { 'node-role.kubernetes.io/worker': 'theirs' } } } } }
  await example.client.patch(DaemonSet, called('sample-consumer'), { merge: template })
  await example.until('our node selector', async () =>
    expect((await consumers()).spec?.template.spec?.nodeSelector).toEqual({
      'node-role.kubernetes.io/worker': 'worker',
    }),
  )
  const before = [(await module()).metadata.uid, (await consumers()).metadata.uid]
  await example.client.delete(Module, called('sample'))
  await example.until('another Module', async () => expect(before).not.toContain((await module()).metadata.uid))
  await offer(example.client, called('sample'), 2)
  await example.client.delete(DaemonSet, called('sample-consumer'))
  await example.until('another DaemonSet', async () => expect(before).not.toContain((await consumers()).metadata.uid))
})

it('follows its spec, and refuses what cannot be', async () => {
  await change({ maxdev: 7, defaultmsg: 'bye', requiredDevices: 3, imageRepoSecret: null })
  await example.until('both as wished', async () => {
    const { spec } = (await module()) as { spec: Record<string, unknown> }
    expect(spec).toMatchObject({
      moduleLoader: { container: { modprobe: { parameters: ['max_dev=7', 'default_msg=bye'] } } },
    })
    expect(spec).not.toHaveProperty('imageRepoSecret')
    const { template } = (await consumers()).spec ?? {}
    expect(template?.spec?.containers[0]?.resources?.limits).toEqual({ 'pt.example.com/device': '3' })
    expect(template?.spec?.imagePullSecrets).toBeUndefined()
  })
  await expect(change({ requiredDevices: 8 })).rejects.toThrow('requiredDevices is more than a node has')
  await expect(change({ defaultmsg: 'two words' })).rejects.toThrow('spec.defaultmsg')
})

it('makes the consumers once the module is loaded', async () => {
  const { spec } = await ptemplate()
  await example.client.create(Ptemplate, Ptemplate.draft({ metadata: called('second'), spec }))
  await example.until('its Module', async () => void (await module('second')))
  await example.until('that it waits for it', async () =>
    expect(await example.condition(Ptemplate, 'second', 'Ready')).toMatchObject({ status: 'False', reason: 'Loading' }),
  )
  expect(await example.client.find(DaemonSet, called('second-consumer'))).toBeUndefined()
  await offer(example.client, called('second'), 2)
  await example.until(
    'its DaemonSet',
    async () => void (await example.client.get(DaemonSet, called('second-consumer'))),
  )
  await example.kubectl('delete', 'ptemplate', 'second', '--timeout=30s')
})

it('writes nothing when it is started again', async () => {
  await loaded('True', 'Loaded')
  expect(await example.writesAfterRestart()).toEqual([])
})

it('goes on when KMM is removed', async () => {
  await example.client.delete(CustomResourceDefinition, { name: kmm.metadata.name })
  await loaded('Unknown', 'KmmAbsent')
  await change({ requiredDevices: 4 })
  await example.until('the consumers as wished', async () => {
    const { template } = (await consumers()).spec ?? {}
    expect(template?.spec?.containers[0]?.resources?.limits).toEqual({ 'pt.example.com/device': '4' })
  })
})

it('leaves nothing when it is deleted', async () => {
  const { uid } = (await ptemplate()).metadata
  await example.kubectl('delete', 'ptemplate', 'sample', '--timeout=30s')
  // The server of the tests has no garbage collector: the owner reference says what it would take.
  const { metadata } = await consumers()
  expect(metadata.ownerReferences?.map(owner => owner.uid)).toEqual([uid])
  expect(metadata.finalizers ?? []).toEqual([])
  await example.until('that its gauge is gone', async () =>
    expect(await metric(`ptemplate_consumers{namespace="${namespace}",name="sample"}`)).toBeUndefined(),
  )
  expect(example.denied(), 'what its rules lack').toEqual([])
})
