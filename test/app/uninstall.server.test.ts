/**
 * The CRDs are uninstalled while apps are there: nothing of theirs is harmed, and the controller outlives it.
 */
import { describe, expect, it } from 'vitest'
import { Lifecycle, Operation, OperationSchedule, StatefulApp } from '../../controller/app/kinds.ts'
import { CustomResourceDefinition, StatefulSet } from '../../controller/kube/kinds.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { sampleApp, sampleLifecycle } from '../fixtures/app/samples.ts'
import { lifecycle, name, setStage } from '../fixtures/app/stage.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'

const kinds = [StatefulApp, Lifecycle, Operation, OperationSchedule]
const running = { desired: { state: 'Running' } }

describe.skipIf(rigMissing)('CRDs that are uninstalled', { timeout: 240_000 }, () => {
  const stage = setStage()

  it('leave the workloads as they are; installed again, apps are looked after again', async () => {
    const { rig } = stage
    const existing = await stage.deploy({ spec: running })
    const own = await stage.deployOwn({ spec: { ...running, onEnd: 'DeleteWithVolumes' } })
    await stage.ready(existing)
    await stage.ready(own)
    stage.pod(existing).hold('backup')
    await stage.operate(existing, 'held', { action: 'backup' })
    await stage.begun(existing, 'backup')
    const before = await Promise.all([existing, own].map(namespace => rig.client.get(StatefulSet, { namespace, name })))

    // The apps' own first: their lifecycles are still there, and would tell how to end them.
    for (const { plural, group } of kinds) {
      const crd = { name: `${plural}.${group}` }
      await rig.client.delete(CustomResourceDefinition, crd)
      await rig.until(`${crd.name} to be gone`, async () => !(await rig.client.find(CustomResourceDefinition, crd)))
    }
    const uids = [existing, own].map(namespace => stage.pod(namespace).uid)
    for (const [i, namespace] of [existing, own].entries()) {
      const { spec, metadata } = await rig.client.get(StatefulSet, { namespace, name })
      expect(spec).toEqual(before[i]?.spec)
      expect(metadata.deletionTimestamp).toBeUndefined()
    }
    expect(stage.count(existing, 'stop') + stage.count(own, 'stop')).toBe(0)

    stage.pod(existing).release('backup')
    await installOwnKinds(rig.client)
    await rig.client.create(Lifecycle, {
      metadata: { name: lifecycle, namespace: existing },
      spec: sampleLifecycle() as never,
    })
    await rig.client.create(StatefulApp, sampleApp({ namespace: existing, name, lifecycle }, running) as never)
    await stage.ready(existing)
    await stage.operate(existing, 'after', { action: 'backup' })
    await stage.ended(existing, 'after')
    expect([existing, own].map(namespace => stage.pod(namespace).uid)).toEqual(uids)
  })
})
