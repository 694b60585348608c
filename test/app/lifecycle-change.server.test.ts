/**
 * A Lifecycle that changes while operations wait and run.
 */
import { describe, expect, it } from 'vitest'
import { Lifecycle } from '../../controller/app/kinds.ts'
import type { Action, LifecycleSpec } from '../../shared/lifecycle/model.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { sampleLifecycle } from '../fixtures/app/samples.ts'
import { lifecycle as name, setStage } from '../fixtures/app/stage.ts'

function lifecycle(more: Readonly<Record<string, Partial<Action>>> = {}): LifecycleSpec {
  return sampleLifecycle({ ...more, backup: { order: 'serial', ...more['backup'] } })
}

describe.skipIf(rigMissing)('a lifecycle that changes', { timeout: 180_000 }, () => {
  const stage = setStage()
  const deploy = async () => {
    const namespace = await stage.deploy({ lifecycle: lifecycle(), workload: { replicas: 2 } })
    await stage.ready(namespace)
    return namespace
  }
  const change = async (namespace: string, spec: LifecycleSpec) => {
    const before = await stage.rig.client.get(Lifecycle, { namespace, name })
    await stage.rig.client.patch(Lifecycle, { namespace, name }, { merge: { spec } })
    await stage.rig.until('it to be published', async () => {
      const { status } = await stage.rig.client.get(Lifecycle, { namespace, name })
      return status?.hash !== undefined && status.hash !== before.status?.hash
    })
  }

  it('is waited for in the pods that do not have it yet, by name', async () => {
    const namespace = await deploy()
    stage.pod(namespace, 1).holdMounts()
    await change(namespace, lifecycle({ reconfigure: { timeout: '2m' } }))
    await stage.operate(namespace, 'waits', { action: 'reconfigure', params: { value: 'x' } })
    const waiting = await stage.until(namespace, 'a word on it', one =>
      one.waitingFor?.includes('to have the lifecycle'),
    )
    expect(waiting.waitingFor).toMatch(/^orders-1 to have the lifecycle sample as it is now/)
    expect(stage.rig.effects({ action: 'reconfigure', uid: stage.pod(namespace, 1).uid })).toEqual([])
    stage.pod(namespace, 1).releaseMounts()
    const { runs = [] } = await stage.ended(namespace, 'waits')
    expect(new Set(runs.map(({ configHash }) => configHash)).size).toBe(1)
    expect(runs).toHaveLength(2)
  })

  it('does not stop an operation whose action is as it was: it goes on with the new one', async () => {
    const namespace = await deploy()
    stage.pod(namespace, 0).hold('backup')
    await stage.operate(namespace, 'both', { action: 'backup' })
    await stage.begun(namespace, 'backup')
    await change(namespace, lifecycle({ reconfigure: { timeout: '2m' } }))
    stage.pod(namespace, 0).release('backup')
    const { runs = [] } = await stage.ended(namespace, 'both')
    const { status } = await stage.rig.client.get(Lifecycle, { namespace, name })
    expect(runs).toMatchObject([{ pod: 'orders-0' }, { pod: 'orders-1', configHash: status?.hash }])
    expect(runs[0]?.configHash).not.toBe(status?.hash)
  })

  it('fails an operation whose action was changed before all of it was begun', async () => {
    const namespace = await deploy()
    stage.pod(namespace, 0).hold('backup')
    await stage.operate(namespace, 'half', { action: 'backup' })
    await stage.begun(namespace, 'backup')
    await change(namespace, lifecycle({ backup: { timeout: '3m' } }))
    stage.pod(namespace, 0).release('backup')
    const half = await stage.ended(namespace, 'half', 'Failed')
    expect(half).toMatchObject({ reason: 'LifecycleChanged', runs: [{ pod: 'orders-0', phase: 'Succeeded' }] })
    expect(stage.count(namespace, 'backup')).toBe(1)
  })
})
