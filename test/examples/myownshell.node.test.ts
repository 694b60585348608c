/**
 * examples/myownshell on a cluster with a node, as one story: its shells are pods that run, and what is deleted is collected.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import type { Live } from '../../controller/kube/kind.ts'
import { ConfigMap, Deployment, Pod } from '../../controller/kube/kinds.ts'
import { MyOwnShell } from '../../examples/myownshell/operator.ts'
import { type Example, useExample } from '../fixtures/example.ts'

/** An image with a shell that the node has already. */
const image = process.env.SHIPMATE_TEST_IMAGE ?? 'localhost/node:24'

let example: Example
let ref: { name: string; namespace: string }
beforeAll(async () => {
  example = await useExample('myownshell', inject('kubeconfig'))
  ref = { name: 'sample', namespace: example.namespace }
  await example.start()
}, 60_000)
afterAll(() => example?.end())

const pods = () => example.client.list(Pod, { namespace: ref.namespace })

function isOpen(size: number): Promise<void> {
  return example.until(`${size} open shells`, async () => {
    expect((await example.client.get(MyOwnShell, ref)).status?.size).toBe(size)
    expect(await example.condition(MyOwnShell, 'sample', 'Ready')).toMatchObject({ status: 'True' })
    expect(await pods()).toHaveLength(size)
  })
}

it('opens shells that run, with their profile', async () => {
  await example.client.create(MyOwnShell, { metadata: ref, spec: { size: 2, image } })
  await isOpen(2)
  const prompt = await example.kubectl('exec', 'deploy/sample', '--', 'sh', '-c', '. $ENV; echo "$PS1"')
  expect(prompt).toBe('sample $ \n')
})

it('writes nothing in a minute in which nothing happens', { timeout: 120_000 }, async () => {
  const versions = async () => {
    const [shell, deployment, profile] = await Promise.all([
      example.client.get(MyOwnShell, ref),
      example.client.get(Deployment, ref),
      example.client.get(ConfigMap, { ...ref, name: 'sample-profile' }),
    ])
    return [shell, deployment, profile].map((object: Live) => object.metadata.resourceVersion)
  }
  const before = await versions()
  const reconciliations = await example.reconciliations()
  await sleep(60_000)
  expect(await versions()).toEqual(before)
  expect(await example.reconciliations(), 'reconciliations').toBe(reconciliations)
})

it('opens and closes shells as its size says', async () => {
  await example.kubectl('scale', 'mos/sample', '--replicas=3')
  await isOpen(3)
  await example.kubectl('scale', 'mos/sample', '--replicas=1')
  await isOpen(1)
})

it('opens a shell anew whose Deployment was deleted', async () => {
  const [before] = await pods()
  await example.kubectl('delete', 'deployment', 'sample', '--timeout=30s')
  await example.until('another pod', async () => {
    const [pod, ...others] = await pods()
    expect(others).toEqual([])
    expect(pod?.metadata.uid).not.toBe(before?.metadata.uid)
  })
  await isOpen(1)
})

it.each(['background', 'foreground'])('leaves nothing after a %s deletion', async cascade => {
  await example.client.apply(MyOwnShell, { metadata: ref, spec: { size: 1, image } })
  await isOpen(1)
  await example.kubectl('delete', 'mos', 'sample', `--cascade=${cascade}`, '--timeout=60s')
  await example.until('nothing', async () => {
    const { namespace } = ref
    expect(await pods()).toEqual([])
    expect(await example.client.list(Deployment, { namespace })).toEqual([])
    const maps = await example.client.list(ConfigMap, { namespace })
    expect(maps.map(({ metadata }) => metadata.name)).toEqual(['kube-root-ca.crt'])
  })
})
