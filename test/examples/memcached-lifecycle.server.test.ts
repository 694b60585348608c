/**
 * examples/memcached-lifecycle as one story: each test goes on where the one before it ended. Shipmate's controller, the sidecars and the example's operator are the
 * real ones; of memcached there is its port, and what it answers.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Operation, StatefulApp } from '../../controller/app/kinds.ts'
import { Deployment } from '../../controller/kube/kinds.ts'
import { Memcached } from '../../examples/memcached-lifecycle/operator.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { type RunningController, startController } from '../fixtures/app/controller.ts'
import { type Rig, startRig } from '../fixtures/app/rig.ts'
import { type Example, useExample } from '../fixtures/example.ts'
import { installKinds, installOwnKinds } from '../fixtures/own-kinds.ts'
import { type MemcachedDaemon, memcachedPort, startMemcached } from './memcached-daemon.ts'

describe.skipIf(rigMissing)('memcached with a lifecycle', { timeout: 120_000 }, () => {
  let rig: Rig
  let controller: RunningController
  let example: Example
  let daemon: MemcachedDaemon | undefined
  let ref: { name: string; namespace: string }

  beforeAll(async () => {
    rig = await startRig({
      async prepare(client) {
        await installOwnKinds(client)
        await installKinds(client, [Memcached])
      },
    })
    controller = await startController(await rig.line())
    example = await useExample('memcached-lifecycle', rig.server.kubeconfig)
    ref = { name: 'sample', namespace: example.namespace }
    await example.start()
  }, 120_000)
  afterAll(async () => {
    if (example) await rig.clear(example.namespace)
    await example?.end()
    await controller?.stop()
    await rig?.stop()
    await daemon?.stop()
  }, 60_000)

  const memcached = () => rig.client.get(Memcached, ref)
  const condition = (type: string) => example.condition(Memcached, 'sample', type)
  const wish = (desired: object) =>
    rig.client.patch(Memcached, ref, {
      merge: { spec: { desired: { action: null, params: null, request: null, ...desired } } },
    })
  /** Where it is as wished, and nothing is left to do. */
  const isIn = (state: string) =>
    example.until(`${state}, and ready`, async () => {
      const { metadata, status } = await memcached()
      expect(status?.observedGeneration).toBe(metadata.generation)
      expect(await condition('AppState')).toMatchObject({
        status: 'True',
        reason: state,
        observedGeneration: metadata.generation,
      })
      expect(await condition('Ready')).toMatchObject({ status: 'True' })
    })

  it('is in Start until its servers accept', async () => {
    await example.apply('sample.yaml')
    await example.until('Start', async () => {
      expect(rig.pods(ref.namespace)).toHaveLength(2)
      expect(await condition('AppState')).toMatchObject({ status: 'False', reason: 'Start' })
      expect((await memcached()).status?.app).toMatchObject({ name: 'sample', state: 'Start', path: '>Start' })
    })
    expect((await rig.client.get(StatefulApp, ref)).spec).toMatchObject({
      lifecycle: 'sample',
      workload: { kind: 'Deployment', name: 'sample' },
      desired: { state: 'Running' },
      onEnd: 'Orphan',
      deletion: { policy: 'WalkToEnd' },
    })
    daemon = await startMemcached()
    await isIn('Running')
    expect(await example.kubectl('get', 'mc')).toMatch(/sample\s.*Running\s/)
  })

  it('flushes every server once, and no more however often it is looked at', async () => {
    await wish({ state: 'Servicing', action: 'flush', request: 'monday' })
    await example.until('that all are flushed', async () => {
      const { status } = await rig.client.get(StatefulApp, ref)
      expect(status?.wish).toMatchObject({ state: 'Servicing', outcome: 'Succeeded' })
    })
    await isIn('Running')
    await example.touch(Memcached, 'sample')
    expect(daemon?.said).toEqual(['flush_all', 'flush_all'])
    expect((await memcached()).status?.app?.path).toMatch(/Servicing/)
    const operations = await rig.client.list(Operation, { namespace: ref.namespace })
    expect(operations.map(({ spec, status }) => [spec.action, status?.phase])).toEqual([['flush', 'Succeeded']])
  })

  it('is reconfigured with parameters, and refuses what the lifecycle does not know', async () => {
    await wish({ state: 'Servicing', action: 'resize', params: { megabytes: 128 } })
    await example.until('that all are resized', () => {
      expect(daemon?.said.slice(2)).toEqual(['cache_memlimit 128', 'cache_memlimit 128'])
    })
    await isIn('Running')
    await expect(wish({ state: 'Servicing', action: 'flsh' })).rejects.toThrow('Unsupported value: "flsh"')
    await expect(wish({ state: 'Servicing', action: 'drain' })).rejects.toThrow('Servicing has flush, resize')
    await expect(wish({ state: 'Servicing', action: 'resize' })).rejects.toThrow(
      'resize needs the parameters megabytes',
    )
    await expect(wish({ state: 'Paused' })).rejects.toThrow('Unsupported value: "Paused"')
  })

  it('asks nothing of the server when nothing changed, nor when it is started again', async () => {
    expect(await example.requestsDuring(() => example.touch(Memcached, 'sample'))).toEqual([])
    expect(await example.writesAfterRestart()).toEqual([])
  })

  it('waits for its clients before it ends, and its servers go', async () => {
    const client = connect(memcachedPort, '127.0.0.1')
    onTestFinished(() => void client.destroy())
    await once(client, 'connect')
    await wish({ state: 'End' })
    await example.until('Stopping', async () => {
      expect(await condition('AppState')).toMatchObject({ status: 'False', reason: 'Stopping' })
    })
    expect((await rig.client.get(Deployment, ref)).spec?.replicas).toBe(2)
    client.destroy()
    await isIn('End')
    await example.until('that the servers are gone', async () => {
      expect(await rig.client.find(Deployment, ref)).toBeUndefined()
      expect((await memcached()).status).toMatchObject({ size: 0, nodes: [] })
    })
  })

  it('starts again', async () => {
    await wish({ state: 'Running' })
    await isIn('Running')
    expect((await rig.client.get(Deployment, ref)).status?.availableReplicas).toBe(2)
  })

  it('walks to its end when it is deleted, and is gone only then', async () => {
    const client = connect(memcachedPort, '127.0.0.1')
    onTestFinished(() => void client.destroy())
    await once(client, 'connect')
    await example.kubectl('delete', 'mc', 'sample', '--wait=false')
    await example.until('Stopping', async () => {
      expect(await condition('AppState')).toMatchObject({ reason: 'Stopping' })
      expect(await condition('Deleting')).toMatchObject({ status: 'True' })
    })
    expect(await rig.client.find(Deployment, ref)).toBeDefined()
    client.destroy()
    await example.kubectl('wait', '--for=delete', 'mc/sample', '--timeout=40s')
    expect(await rig.client.find(StatefulApp, ref)).toBeUndefined()
    await example.until('that nothing is left', async () => {
      expect(await rig.client.find(Deployment, ref)).toBeUndefined()
      expect(rig.pods(ref.namespace)).toEqual([])
    })
    expect(
      example.log().filter(line => /"level":"error"|forbidden/i.test(line)),
      'what went wrong, or its rules lack',
    ).toEqual([])
  })
})
