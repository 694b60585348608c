/**
 * Apps on each sort of workload: their own, a StatefulSet that is rolled out, a DaemonSet, a Deployment.
 */
import { describe, expect, it, onTestFinished } from 'vitest'
import { Lifecycle, StatefulApp } from '../../controller/app/kinds.ts'
import { DaemonSet, Deployment, StatefulSet } from '../../controller/kube/kinds.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { sampleApp, sampleLifecycle, sampleStatefulSet } from '../fixtures/app/samples.ts'
import { lifecycle as lifecycleName, name, setStage } from '../fixtures/app/stage.ts'

const running = { desired: { state: 'Running' } }

function lifecycle(): LifecycleSpec {
  const { actions = [], ...rest } = sampleLifecycle({ backup: { order: 'serial' } })
  const host = { exec: { command: ['sh', '-c', `echo '{"result":"done"}'`] } }
  return {
    ...rest,
    actions: [...actions, { ...host, name: 'each' }, { ...host, name: 'bold', duringRollout: true }],
  }
}

describe.skipIf(rigMissing)('an app on a workload', { timeout: 180_000 }, () => {
  const stage = setStage({ nodes: 3 })
  const set = (namespace: string) => stage.rig.client.get(StatefulSet, { namespace, name })
  const annotated = (note: string) => ({ template: { metadata: { annotations: { note } } } })
  /** Of one that has no names of its own. */
  async function deployOther(kind: typeof DaemonSet | typeof Deployment, spec: object = {}) {
    const namespace = await stage.place(lifecycle())
    const { selector, template } = sampleStatefulSet({ namespace, name, lifecycle: lifecycleName }).spec ?? {}
    await stage.rig.client.create<object>(kind, {
      metadata: { name, namespace },
      spec: { selector, template, ...spec },
    } as never)
    const workload = { apiVersion: 'apps/v1', kind: kind.kind, name }
    await stage.rig.client.create(
      StatefulApp,
      sampleApp({ namespace, name, lifecycle: lifecycleName }, { workload }) as never,
    )
    return namespace
  }

  it('is made only when its certificate and its lifecycle are there for the pods', async () => {
    const namespace = await stage.rig.namespace()
    onTestFinished(() => stage.rig.clear(namespace))
    const since = stage.line.requests.length
    const { serviceName: _, ...template } = sampleStatefulSet({
      namespace,
      name,
      lifecycle: lifecycleName,
      replicas: 1,
    }).spec as unknown as Record<string, unknown>
    await stage.rig.client.create(StatefulApp, {
      metadata: { name, namespace },
      spec: { lifecycle: lifecycleName, template: { spec: template }, ...running },
    } as never)
    await stage.until(namespace, 'no lifecycle', ({ reason }) => reason === 'NoLifecycle')
    await stage.rig.client.create(Lifecycle, {
      metadata: { name: lifecycleName, namespace },
      spec: sampleLifecycle() as never,
    })
    await stage.ready(namespace)
    const asked = stage.line.requests.slice(since).filter(one => one.namespace === namespace && one.verb !== 'get')
    const first = (resource: string) => asked.findIndex(one => one.resource === resource)
    expect(first('secrets')).toBeGreaterThanOrEqual(0)
    expect(first('configmaps')).toBeGreaterThanOrEqual(0)
    expect(Math.max(first('secrets'), first('configmaps'))).toBeLessThan(first('statefulsets'))
  })

  it('is changed by its template when no run is in progress, and is ready when its pods are those of the template', async () => {
    const namespace = await stage.deployOwn({ spec: running })
    await stage.ready(namespace)
    const pod = stage.pod(namespace)
    pod.hold('backup')
    await stage.operate(namespace, 'held', { action: 'backup' })
    await stage.begun(namespace, 'backup')
    const before = await set(namespace)
    await stage.change(namespace, { template: { spec: annotated('new') } })
    await stage.until(namespace, 'the change to be seen', ({ operation }) => operation !== undefined)
    expect((await set(namespace)).metadata.generation).toBe(before.metadata.generation)
    pod.release('backup')
    await stage.ended(namespace, 'held')
    await stage.ready(namespace)
    const { status, spec } = await set(namespace)
    expect(spec?.template.metadata?.annotations?.['note']).toBe('new')
    expect([status?.updatedReplicas, status?.currentRevision]).toEqual([1, status?.updateRevision])
    expect(stage.pod(namespace).uid).not.toBe(pod.uid)
  })

  it('is not asked for anything while somebody rolls it out, unless the action permits it', async () => {
    const namespace = await stage.deploy({ lifecycle: lifecycle() })
    await stage.ready(namespace)
    const pod = stage.pod(namespace)
    // Nobody replaces a pod for now: the rollout is there, and does not go on.
    const { controllerManager } = stage.rig.controlPlane
    process.kill(controllerManager, 'SIGSTOP')
    onTestFinished(() => void process.kill(controllerManager, 'SIGCONT'))
    await stage.rig.client.patch(StatefulSet, { namespace, name }, { merge: { spec: annotated('rolled') } })
    await stage.operate(namespace, 'careful', { action: 'each', priority: 9 })
    await stage.operate(namespace, 'bold', { action: 'bold' })
    await stage.ended(namespace, 'bold')
    expect((await stage.operation(namespace, 'careful')).status).toMatchObject({ phase: 'Queued' })
    process.kill(controllerManager, 'SIGCONT')
    const { runs } = await stage.ended(namespace, 'careful')
    expect(runs).toMatchObject([{ pod: 'orders-0' }])
    expect(runs?.[0]?.uid).not.toBe(pod.uid)
  })

  it('that is a DaemonSet is asked once on each node, whichever join and leave', async () => {
    const [, , third] = stage.rig.nodes.all
    if (!third) throw new Error('there are too few nodes')
    await third.remove()
    onTestFinished(() => third.start().catch(() => undefined))
    const namespace = await deployOther(DaemonSet)
    const asked = async (operation: string, nodes: number) => {
      await stage.until(namespace, `${nodes} pods, ready`, one => one.pods?.length === nodes && one.state === 'Running')
      await stage.operate(namespace, operation, { action: 'each' })
      const { runs = [] } = await stage.ended(namespace, operation)
      expect(runs.every(({ result }) => result === 'done')).toBe(true)
      return runs.map(({ node }) => node).sort()
    }
    const all = stage.rig.nodes.all.map(one => one.name).sort()
    const two = all.filter(one => one !== third.name)
    expect(await asked('two', 2)).toEqual(two)
    await third.start()
    expect(await asked('three', 3)).toEqual(all)
    await third.remove({ pods: true })
    expect(await asked('again', 2)).toEqual(two)
  })

  it('that is a Deployment fails an operation whose pod is gone before its turn', async () => {
    const namespace = await deployOther(Deployment, { replicas: 2 })
    await stage.ready(namespace)
    const pods = stage.rig.pods(namespace)
    for (const pod of pods) pod.hold('backup')
    await stage.operate(namespace, 'torn', { action: 'backup' })
    await stage.begun(namespace, 'backup')
    const { targets = [] } = (await stage.operation(namespace, 'torn')).status ?? {}
    const [first, second] = targets.map(({ uid }) => pods.find(one => one.uid === uid))
    if (!first || !second) throw new Error('there are too few targets')
    await stage.rig.replace(second)
    await stage.until(
      namespace,
      'another pod',
      one => one.pods?.length === 2 && !one.pods.some(({ uid }) => uid === second.uid),
    )
    first.release('backup')
    const torn = await stage.ended(namespace, 'torn', 'Failed')
    expect(torn).toMatchObject({ reason: 'TargetGone', message: expect.stringContaining(second.name) })
    expect(torn.runs).toMatchObject([{ pod: first.name, phase: 'Succeeded' }])
  })
})
