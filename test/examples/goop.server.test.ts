/**
 * examples/goop against a real API server, as one story: each test goes on where the one before it ended. Nobody runs Jobs there, nor collects garbage, so the test
 * plays the parts of these controllers.
 */
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import type { Live, ShapeOf } from '../../controller/kube/kind.ts'
import { DaemonSet, Job, Namespace, Pod } from '../../controller/kube/kinds.ts'
import { Goop } from '../../examples/goop/operator.ts'
import { isEmbedded, notEmbedded } from '../fixtures/apiserver.ts'
import { ended, now, onNodes } from '../fixtures/controllers.ts'
import { type Example, useExample } from '../fixtures/example.ts'

let example: Example
let namespace: string
let ref: { name: string; namespace: string }
beforeAll(async () => {
  example = await useExample('goop', inject('kubeconfig'))
  namespace = example.namespace
  ref = { name: 'sample', namespace }
  await example.start()
}, 60_000)
afterAll(() => example?.end())

const goop = () => example.client.get(Goop, ref)
const condition = (type: string) => example.condition(Goop, 'sample', type)
const change = (spec: object) => example.client.patch(Goop, ref, { merge: { spec } })
const jobs = () => example.client.list(Job, { namespace })
const names = async () => (await jobs()).map(({ metadata }) => metadata.name).sort()
const done = (text: string) => example.until(`${text} done`, async () => expect((await goop()).status?.done).toBe(text))
const completed = (status: string, reason: string) =>
  example.until(`Completed is ${status}: ${reason}`, async () =>
    expect(await condition('Completed')).toMatchObject({ status, reason }),
  )

/** As the controller of Jobs would, once the only pod of each has ended. */
const end = (name: string, { exitCode }: { exitCode: number }) =>
  ended(example.client, { name, namespace }, { exitCode })

/** As the node would: the Job's pod, ended. */
async function podOf(job: Live<ShapeOf<typeof Job>>, exitCode: number): Promise<void> {
  const { apiVersion, kind, metadata, spec } = job
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true }
  const name = `${metadata.name}-x`
  await example.client.create(Pod, {
    metadata: { name, namespace, ownerReferences: [owner], labels: spec?.template.metadata?.labels },
    spec: spec?.template.spec,
  })
  const terminated = { exitCode, startedAt: now(), finishedAt: now(), reason: 'Error' }
  const containerStatuses = [
    { name: 'worker', image: 'busybox', imageID: '', ready: false, restartCount: 0, state: { terminated } },
  ]
  const merge = { status: { phase: 'Failed', containerStatuses } }
  await example.client.patch(Pod, { name, namespace }, { merge }, { subresource: 'status' })
}

it('makes the Jobs of the sample, and says how far they are', async () => {
  await example.apply('sample.yaml')
  await done('0/3')
  const { metadata } = await goop()
  expect(metadata.finalizers).toEqual(['goop.example.com/finalizer'])
  expect(await names()).toEqual(['sample-0', 'sample-1', 'sample-2'])
  for (const job of await jobs()) {
    expect(job.metadata.ownerReferences).toMatchObject([{ kind: 'Goop', uid: metadata.uid, controller: true }])
    expect(job.spec?.template.spec?.containers[0]).toMatchObject({
      image: 'busybox:1.37',
      command: ['sh', '-c', 'echo "hello from $(hostname)"'],
    })
  }
  expect(await condition('Initialized')).toMatchObject({ status: 'True' })
  expect(await condition('Deployed')).toMatchObject({ status: 'True', message: '3 of 3 are there' })
  expect(await condition('Completed')).toMatchObject({ status: 'False', reason: 'Running' })
  expect(await condition('Finalized')).toMatchObject({ status: 'False' })
  expect(await condition('Ready')).toMatchObject({ status: 'False', reason: 'JobRunning' })
})

it('is complete when all have ended with exit code 0, and not before', async () => {
  await end('sample-0', { exitCode: 0 })
  await end('sample-2', { exitCode: 0 })
  await done('2/3')
  expect(await condition('Completed')).toMatchObject({ status: 'False', reason: 'Running' })
  await end('sample-1', { exitCode: 0 })
  await completed('True', 'AllSucceeded')
  expect(await condition('Ready')).toMatchObject({ status: 'True' })
  expect(await example.kubectl('get', 'goop')).toMatch(
    /NAME\s+MODE\s+DONE\s+COMPLETED\s+AGE\nsample\s+Jobs\s+3\/3\s+True/,
  )
})

it('asks nothing of the server when nothing changed', async () => {
  expect(await example.requestsDuring(() => example.touch(Goop, 'sample'))).toEqual([])
})

it('puts back what somebody has changed or deleted', async () => {
  const worker = { name: 'sample-1', namespace }
  const job = () => example.client.get(Job, worker)
  const label = 'app.kubernetes.io/instance'
  await example.client.patch(Job, worker, { merge: { metadata: { labels: { [label]: 'theirs' } } } })
  await example.until('its label', async () => expect((await job()).metadata.labels?.[label]).toBe('sample'))
  const { uid } = (await job()).metadata
  await example.client.delete(Job, worker, { propagation: 'Background' })
  await example.until('another Job', async () => expect((await job()).metadata.uid).not.toBe(uid))
  await completed('False', 'Running')
  await end('sample-1', { exitCode: 0 })
  await completed('True', 'AllSucceeded')
})

it('writes nothing when it is started again', async () => {
  expect(await example.writesAfterRestart()).toEqual([])
})

it('runs another command in other Jobs', async () => {
  const before = (await jobs()).map(({ metadata }) => metadata.uid)
  const told = new AbortController()
  const seen: (string | undefined)[] = []
  const watching = (async () => {
    for await (const event of example.client.watch(Goop, { namespace, signal: told.signal })) {
      if (event.type === 'BOOKMARK') continue
      const { metadata, spec, status } = event.object
      if (spec.cmd === 'exit 3' && status?.observedGeneration === metadata.generation) seen.push(status?.done)
    }
  })().catch(() => undefined)
  await change({ cmd: 'exit 3' })
  await example.until('three other Jobs', async () => {
    const all = await jobs()
    expect(all.map(({ spec }) => spec?.template.spec?.containers[0]?.command?.[2])).toEqual(Array(3).fill('exit 3'))
    expect(all.filter(({ metadata }) => before.includes(metadata.uid))).toEqual([])
  })
  await done('0/3')
  await example.until('that this was told', () => expect(seen).toContain('0/3'))
  told.abort()
  await watching
  expect(new Set(seen), 'what the old Jobs had done is told of the new ones').toEqual(new Set(['0/3']))
})

it('says which worker failed, and how', async () => {
  await change({ job_count: 1 })
  await example.until('one Job', async () => expect(await names()).toEqual(['sample-0']))
  await podOf(await example.client.get(Job, { name: 'sample-0', namespace }), 3)
  await end('sample-0', { exitCode: 3 })
  await completed('False', 'WorkerFailed')
  expect((await condition('Completed'))?.message).toBe('Job sample-0 ended with exit code 3')
  expect(await condition('Stalled')).toMatchObject({ status: 'True', reason: 'JobFailed' })
})

it('is not complete when there is nothing to run', async () => {
  await change({ job_count: 0 })
  await done('0/0')
  expect(await names()).toEqual([])
  expect(await condition('Deployed')).toMatchObject({ status: 'False', reason: 'NothingToDo' })
  expect(await condition('Completed')).toMatchObject({ status: 'False', reason: 'NothingToDo' })
})

it('runs once on every node, if that is wished', async () => {
  await change({ mode: 'Nodes', job_count: 5, cmd: 'true' })
  await example.until('a DaemonSet', async () => void (await example.client.get(DaemonSet, ref)))
  expect(await names(), 'Jobs beside it').toEqual([])
  const { spec } = await example.client.get(DaemonSet, ref)
  expect(spec?.template.spec?.initContainers).toMatchObject([{ name: 'worker', command: ['sh', '-c', 'true'] }])
  expect(spec?.template.spec?.containers).toMatchObject([{ name: 'pause', image: 'registry.k8s.io/pause:3.10' }])
  await completed('False', 'NothingToDo')
  await onNodes(example.client, ref, 2, 1)
  await done('1/2')
  expect(await condition('Completed')).toMatchObject({ status: 'False', reason: 'Running' })
  await onNodes(example.client, ref, 2, 2)
  await completed('True', 'AllSucceeded')
  await onNodes(example.client, ref, 0, 0)
  await completed('False', 'NothingToDo')
})

it('runs where only restricted pods may', async () => {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  await example.client.patch(Namespace, { name: namespace }, { merge: { metadata: { labels } } })
  const tryPod = (spec: object | undefined) =>
    example.client.create(Pod, { metadata: { generateName: 'try-', namespace }, spec: spec as never }, { dryRun: true })
  const { spec } = await example.client.get(DaemonSet, ref)
  await tryPod(spec?.template.spec)
  await change({ mode: 'Jobs', job_count: 1 })
  await example.until('one Job', async () => expect(await names()).toEqual(['sample-0']))
  const [job] = await jobs()
  await tryPod(job?.spec?.template.spec)
})

it.skipIf(isEmbedded)(`and where others may not${notEmbedded('nobody checks the security of pods')}`, async () => {
  const spec = { containers: [{ name: 'a', image: 'b' }] }
  const made = example.client.create(Pod, { metadata: { generateName: 'try-', namespace }, spec }, { dryRun: true })
  await expect(made).rejects.toThrow('violates PodSecurity')
})

it('refuses what it could not carry out', async () => {
  await expect(change({ job_count: 101 })).rejects.toThrow('spec.job_count')
  await expect(change({ cmd: '' })).rejects.toThrow('spec.cmd')
})

it('goes only when nothing of it runs any more', async () => {
  await example.kubectl('delete', 'goop', 'sample', '--wait=false')
  await example.until('that it waits', async () => {
    expect(await condition('Finalized')).toMatchObject({ status: 'False', reason: 'Stopping' })
    expect(await condition('Deleting')).toMatchObject({ status: 'True', reason: 'Stopping' })
  })
  // As the garbage collector would, once the pods are gone.
  const [job] = await jobs()
  expect(job?.metadata).toMatchObject({ finalizers: ['foregroundDeletion'], deletionTimestamp: expect.anything() })
  const before = await example.requests()
  await example.client.patch(Job, { name: 'sample-0', namespace }, { merge: { metadata: { finalizers: null } } })
  await example.until('that it is gone', async () => expect(await example.client.find(Goop, ref)).toBeUndefined())
  await example.until('that Finalized was told, and then the finalizer taken away', async () =>
    expect((await example.requests()).slice(before.length)).toEqual([
      'patch goops/status sample',
      'patch goops sample',
    ]),
  )
  expect(await names()).toEqual([])
  expect(await example.client.list(DaemonSet, { namespace })).toEqual([])
  expect(example.denied(), 'what its rules lack').toEqual([])
})
