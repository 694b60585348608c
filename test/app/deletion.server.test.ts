/**
 * The end of an app's object: what is walked, what is left, what goes with it.
 */
import { describe, expect, it } from 'vitest'
import { Lifecycle, Operation, StatefulApp } from '../../controller/app/kinds.ts'
import {
  ConfigMap,
  Namespace,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  Secret,
  Service,
  StatefulSet,
} from '../../controller/kube/kinds.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { lifecycle, name, setStage } from '../fixtures/app/stage.ts'

const claimedBy = 'shipmate.dev/claimed-by'
const running = { desired: { state: 'Running' } }

describe.skipIf(rigMissing)('deleting an app', { timeout: 180_000 }, () => {
  const stage = setStage()
  const remove = (namespace: string, propagation?: 'Foreground') =>
    stage.rig.client.delete(StatefulApp, { namespace, name }, { ...(propagation && { propagation }) })
  const set = (namespace: string) => stage.rig.client.find(StatefulSet, { namespace, name })
  /** What was made for the app and is still there, by kind. */
  async function leftOf(namespace: string): Promise<string[]> {
    const labels = { 'app.kubernetes.io/managed-by': 'shipmate' }
    const all = await Promise.all(
      [Secret, ConfigMap, Service, StatefulSet, PodDisruptionBudget].map(async kind =>
        (await stage.rig.client.list<object>(kind, { namespace, labels })).map(
          ({ metadata }) => `${kind.kind} ${metadata.name}`,
        ),
      ),
    )
    return all.flat().filter(one => one !== `ConfigMap shipmate-lifecycle-${lifecycle}`)
  }

  it('leaves an existing workload as it is, asks nobody anything and gives the claim back', async () => {
    const namespace = await stage.deploy({ spec: running })
    await stage.ready(namespace)
    const before = await set(namespace)
    expect(before?.metadata.annotations?.[claimedBy]).toMatch(new RegExp(`^${namespace}/${name} `))
    await remove(namespace)
    await stage.gone(namespace)
    const after = await set(namespace)
    expect(after?.metadata.annotations?.[claimedBy]).toBeUndefined()
    expect(after?.spec).toEqual(before?.spec)
    expect(await stage.rig.client.list(Operation, { namespace })).toEqual([])
    expect(stage.count(namespace, 'stop')).toBe(0)
    expect(await leftOf(namespace)).toEqual([])
  })

  it.each([
    ['ScaleToZero', ['ConfigMap orders-settings', 'Service orders', 'StatefulSet orders'], 1],
    ['Delete', [], 1],
    ['DeleteWithVolumes', [], 0],
    ['Orphan', ['ConfigMap orders-settings', 'Service orders', 'StatefulSet orders'], 1],
  ] as const)('walks an app of its own to its end and carries out onEnd: %s', async (onEnd, left, claims) => {
    const namespace = await stage.deployOwn({ spec: { ...running, onEnd }, workload: { claims: true } })
    await stage.ready(namespace)
    const { uid } = stage.pod(namespace)
    // The rig makes no claims' volumes; the set makes the claims.
    expect(await stage.rig.client.list(PersistentVolumeClaim, { namespace })).toHaveLength(1)
    await remove(namespace)
    await stage.gone(namespace)
    expect(stage.rig.effects({ action: 'stop', at: 'end', uid })).toHaveLength(1)
    expect(await leftOf(namespace)).toEqual(left)
    expect(await stage.rig.client.list(PersistentVolumeClaim, { namespace })).toHaveLength(claims)
    const workload = await set(namespace)
    if (onEnd === 'ScaleToZero') expect(workload?.spec?.replicas).toBe(0)
    if (onEnd === 'Orphan') expect(workload?.spec?.replicas).toBe(1)
    expect(workload?.metadata.annotations?.[claimedBy]).toBeUndefined()
    const operations = await stage.rig.client.list(Operation, { namespace })
    expect(operations.flatMap(({ metadata }) => metadata.finalizers ?? [])).toEqual([])
  })

  it('carries out what onEnd says now, though it was at its end before', async () => {
    const namespace = await stage.deployOwn({ spec: { ...running } })
    await stage.ready(namespace)
    await stage.wish(namespace, { state: 'End' })
    await stage.ready(namespace, 'End')
    await stage.change(namespace, { onEnd: 'Delete' })
    await remove(namespace)
    await stage.gone(namespace)
    expect(await leftOf(namespace)).toEqual([])
  })

  it('keeps what the stop needs until it has ended, also when it is deleted in the foreground', async () => {
    const namespace = await stage.deployOwn({ spec: { ...running, onEnd: 'Delete' } })
    await stage.ready(namespace)
    const pod = stage.pod(namespace)
    pod.hold('stop')
    await remove(namespace, 'Foreground')
    await stage.begun(namespace, 'stop')
    expect(await leftOf(namespace)).toEqual(
      expect.arrayContaining(['Secret shipmate-tls-orders', 'ConfigMap orders-settings', 'Service orders']),
    )
    expect((await set(namespace))?.metadata.deletionTimestamp).toBeUndefined()
    pod.release('stop')
    await stage.gone(namespace)
    expect(stage.rig.effects({ action: 'stop', at: 'end', uid: pod.uid })).toHaveLength(1)
    expect(await leftOf(namespace)).toEqual([])
  })

  it('lets it go when its deadline passes, and says so', async () => {
    const namespace = await stage.deployOwn({
      spec: { ...running, onEnd: 'Delete', deletion: { deadline: '4s' } },
    })
    await stage.ready(namespace)
    stage.pod(namespace).hold('stop')
    await remove(namespace)
    await stage.begun(namespace, 'stop')
    await stage.gone(namespace)
    expect(await stage.told(namespace, 'DeletionOverdue')).toContain('deadline')
    expect((await set(namespace))?.spec?.replicas).toBe(1)
  })

  it('lets it go when the annotation says so, and tells that', async () => {
    const namespace = await stage.deployOwn({ spec: { ...running, onEnd: 'Delete' } })
    await stage.ready(namespace)
    stage.pod(namespace).hold('stop')
    await remove(namespace)
    await stage.begun(namespace, 'stop')
    const annotations = { 'shipmate.dev/skip-lifecycle': 'true' }
    await stage.rig.client.patch(StatefulApp, { namespace, name }, { merge: { metadata: { annotations } } })
    await stage.gone(namespace)
    expect(await stage.told(namespace, 'LifecycleSkipped')).toContain('skip-lifecycle')
    expect((await set(namespace))?.spec?.replicas).toBe(1)
  })

  it('lets go of an app whose lifecycle is gone, and says that it was not stopped', async () => {
    const namespace = await stage.deployOwn({ spec: { ...running, onEnd: 'Delete' } })
    await stage.ready(namespace)
    await stage.rig.client.delete(Lifecycle, { namespace, name: lifecycle })
    await stage.until(namespace, 'no lifecycle', one => one.reason === 'NoLifecycle')
    await remove(namespace)
    await stage.gone(namespace)
    expect(await stage.told(namespace, 'LifecycleGone')).toContain(lifecycle)
    expect((await set(namespace))?.spec?.replicas).toBe(1)
  })

  it('ends with its namespace in the middle of a run, as soon as its pods have', async () => {
    const namespace = await stage.deployOwn({ spec: running, workload: { graceSeconds: 5 } })
    await stage.ready(namespace)
    stage.pod(namespace).hold('backup')
    await stage.wish(namespace, { state: 'Servicing', action: 'backup' })
    await stage.begun(namespace, 'backup')
    await stage.rig.client.delete(Namespace, { name: namespace })
    await stage.rig.until('the namespace to be gone', async () => {
      const there = await stage.rig.client.find(Namespace, { name: namespace })
      const pods = await stage.rig.client.list(Pod, { namespace })
      // Nothing is left to wait for but the pods.
      if (pods.length === 0) return there === undefined
      return false
    })
  })
})
