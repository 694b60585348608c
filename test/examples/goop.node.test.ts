/**
 * examples/goop on a cluster with a node: its Jobs run, end with whatever exit code they end with, and are gone before their Goop is.
 */
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { Job, Pod } from '../../controller/kube/kinds.ts'
import { Goop } from '../../examples/goop/operator.ts'
import { type Example, useExample } from '../fixtures/example.ts'

let example: Example
beforeAll(async () => {
  // Images that the node has already: one with a shell, one that waits.
  process.env.GOOP_IMAGE = process.env.SHIPMATE_TEST_IMAGE ?? 'localhost/node:24'
  process.env.GOOP_PAUSE_IMAGE = process.env.SHIPMATE_TEST_PAUSE_IMAGE ?? 'localhost/pause:1'
  example = await useExample('goop', inject('kubeconfig'))
  await example.start()
}, 60_000)
afterAll(async () => {
  // While somebody is there to finalize them.
  await example?.kubectl('delete', 'goop', '--all', '--timeout=60s')
  await example?.end()
}, 90_000)

const make = (name: string, spec: { job_count?: number; cmd: string; mode?: 'Jobs' | 'Nodes' }) =>
  example.client.create(Goop, Goop.draft({ metadata: { name, namespace: example.namespace }, spec }))
const completed = (name: string, status: string, reason: string) =>
  example.until(`Completed of ${name} is ${status}: ${reason}`, async () =>
    expect(await example.condition(Goop, name, 'Completed')).toMatchObject({ status, reason }),
  )
const done = async (name: string) =>
  (await example.client.get(Goop, { name, namespace: example.namespace })).status?.done

it('completes when every Job has ended with exit code 0', async () => {
  await make('fine', { job_count: 3, cmd: 'echo "it runs"' })
  await completed('fine', 'True', 'AllSucceeded')
  expect(await done('fine')).toBe('3/3')
  for (const index of [0, 1, 2]) expect(await example.kubectl('logs', `job/fine-${index}`)).toBe('it runs\n')
})

it('does not complete when one ends with another exit code, and says with which', async () => {
  await make('broken', { job_count: 2, cmd: 'exit 7' })
  await completed('broken', 'False', 'WorkerFailed')
  expect((await example.condition(Goop, 'broken', 'Completed'))?.message).toMatch(
    /^Job broken-[01] ended with exit code 7$/,
  )
})

it('does not complete when there is nothing to run', async () => {
  await make('nothing', { job_count: 0, cmd: 'true' })
  await completed('nothing', 'False', 'NothingToDo')
  expect(await done('nothing')).toBe('0/0')
})

it('runs another command in other Jobs', async () => {
  const ref = { name: 'broken', namespace: example.namespace }
  await example.client.patch(Goop, ref, { merge: { spec: { cmd: 'true' } } })
  await completed('broken', 'True', 'AllSucceeded')
})

it('runs on every node', async () => {
  await make('everywhere', { mode: 'Nodes', cmd: 'echo "it runs here"' })
  await completed('everywhere', 'True', 'AllSucceeded')
  expect(await example.kubectl('logs', 'daemonset/everywhere', '--container=worker')).toBe('it runs here\n')
})

it('is gone only after everything of it', async () => {
  const { namespace } = example
  await make('long', { job_count: 2, cmd: 'trap exit TERM; sleep 1000 & wait' })
  const labels = { 'app.kubernetes.io/instance': 'long' }
  const pods = () => example.client.list(Pod, { namespace, labels })
  await example.until('two running pods', async () =>
    expect((await pods()).map(({ status }) => status?.phase)).toEqual(['Running', 'Running']),
  )
  await example.kubectl('delete', 'goop', 'long', '--timeout=100s')
  expect(await pods()).toEqual([])
  expect(await example.client.list(Job, { namespace, labels })).toEqual([])
})
