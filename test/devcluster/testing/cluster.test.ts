/**
 * `startCluster` of `shipmate/testing`: what a user's test does with it, and what it says when that fails.
 */
import { join } from 'node:path'
import { ConfigMap, Deployment, Forbidden, Namespace } from 'shipmate/kube'
import { startCluster } from 'shipmate/testing'
import { expect, it } from 'vitest'
import { connect } from '../../../controller/kube/access.ts'
import { Memcached, operator } from '../../../examples/memcached/operator.ts'
import { Note, note, sound, withoutRule, writesAlways } from './faulty-operators.ts'

const sample = join(import.meta.dirname, '../../../examples/memcached/sample.yaml')
const real = false

it('puts a deleted deployment back', async () => {
  await using cluster = await startCluster({ operator, real })
  await cluster.apply(sample)
  await cluster.until(Deployment, 'sample', d => d.spec?.replicas === 2)
  await cluster.delete(Deployment, 'sample')
  await cluster.until(Deployment, 'sample', d => d.spec?.replicas === 2)
  expect(await cluster.writesWhileIdle()).toEqual([])
})

it('collects what has lost its owner', async () => {
  await using cluster = await startCluster({ operator, real })
  await cluster.apply(sample)
  await cluster.until(Deployment, 'default/sample')
  await cluster.delete(Memcached, { name: 'sample', namespace: 'default' })
  await cluster.untilGone(Deployment, 'sample')
  expect(await cluster.list(Memcached)).toEqual([])
})

it('takes objects and lists of them, and answers them as they are', async () => {
  await using cluster = await startCluster({ real })
  const [namespace, map] = await cluster.apply([
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'other' } },
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } },
  ])
  expect(namespace?.metadata.uid).toBeDefined()
  expect(map?.kind).toBe('ConfigMap')
  expect(await cluster.find(ConfigMap, 'other/a')).toBeDefined()
  expect(await cluster.find(ConfigMap, 'a')).toBeUndefined()
  await cluster.delete(Namespace, 'other')
  await cluster.untilGone(ConfigMap, 'other/a')
})

it('says what was waited for, how the object looks, and what the operator said', async () => {
  await using cluster = await startCluster({ operator, real })
  await cluster.apply(sample)
  await cluster.until(Memcached, 'sample', ({ status }) => status?.conditions?.length)
  const failure = await cluster
    .until(Memcached, 'sample', cr => cr.status?.size === 9, { timeout: 50 })
    .catch((error: Error) => error.message)
  expect(failure).toMatch(/^Memcached default\/sample: waited 0.05 s for\n.*cr.status\?.size === 9/)
  expect(failure).toContain('spec: {"size":2,"memory":64}')
  expect(failure).toContain('Available is False (NoServer): 0 of 2 servers are available')
  expect(failure).toContain('the operator has logged no warning and no error')
  await expect(cluster.until(ConfigMap, 'x', undefined, { timeout: 1 })).rejects.toThrow('it is not there')
})

it('a rule that is missing fails the test, with what to declare', async () => {
  const cluster = await startCluster({ operator: withoutRule, real })
  await cluster.apply(note)
  const failure = await cluster.until(ConfigMap, 'sample').catch((error: Error) => error.message)
  expect(failure).toContain('system:serviceaccount:default:notes may not patch configmaps sample in namespace default')
  expect(failure).toContain("permissions: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['patch'] }]")
  await cluster.stop()
})

it('also where nobody waited for what needs it', async () => {
  const cluster = await startCluster({ operator: withoutRule, real })
  await cluster.apply(note)
  await cluster.settled()
  await expect(cluster.stop()).rejects.toThrow("resources: ['configmaps']")
})

it('names what is written while nothing changes', async () => {
  await using cluster = await startCluster({ operator: writesAlways, real })
  await cluster.apply(note)
  await cluster.until(Note, 'sample', ({ status }) => status?.seen)
  expect(await cluster.writesWhileIdle()).toEqual(['patch notes.test.example.com/status sample in namespace default'])
})

it('has clients for others, and a kubeconfig for programs', async () => {
  await using cluster = await startCluster({ operator: sound, real })
  await expect(cluster.clientFor('jane').list(ConfigMap)).rejects.toThrow(Forbidden)
  const { mkdtemp, rm, writeFile } = await import('node:fs/promises')
  const { tmpdir } = await import('node:os')
  const folder = await mkdtemp(join(tmpdir(), 'shipmate-testing-'))
  const file = join(folder, 'kubeconfig')
  await writeFile(file, await cluster.kubeconfig())
  const access = connect({ kubeconfig: { file } })
  expect((await access.client.list(Namespace)).map(({ metadata }) => metadata.name)).toContain('default')
  await access.close()
  await rm(folder, { recursive: true })
})

it('a restarted operator is a new one', async () => {
  let starts = 0
  const make = () => {
    starts++
    return sound
  }
  await using cluster = await startCluster({ operator: make, real })
  const before = starts
  await cluster.restart()
  expect(starts).toBeGreaterThan(before)
  await cluster.apply(note)
  await cluster.until(ConfigMap, 'sample', ({ data }) => data?.['text'] === 'hello')
})
