/**
 * An app's whole life, with real sidecars on a real API server.
 */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Lifecycle, Operation, StatefulApp } from '../../controller/app/kinds.ts'
import { PodDisruptionBudget, StatefulSet } from '../../controller/kube/kinds.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { controllerUser, grantController, type RunningController, startController } from '../fixtures/app/controller.ts'
import { type Rig, startRig } from '../fixtures/app/rig.ts'
import { sampleApp, sampleLifecycle, sampleStatefulSet } from '../fixtures/app/samples.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'

const name = 'orders'
const lifecycle = 'sample'

describe.skipIf(rigMissing)('an app', { timeout: 180_000 }, () => {
  let rig: Rig
  let controller: RunningController

  beforeAll(async () => {
    rig = await startRig({
      async prepare(client) {
        await installOwnKinds(client)
        await grantController(client)
      },
    })
    controller = await startController(await rig.line(controllerUser))
  }, 120_000)
  afterAll(async () => {
    await controller?.stop()
    await rig?.stop()
  }, 60_000)

  async function deploy({ replicas = 2, spec = {} }: { replicas?: number; spec?: object } = {}) {
    const namespace = await rig.namespace()
    onTestFinished(() => rig.clear(namespace))
    await rig.client.create(Lifecycle, { metadata: { name: lifecycle, namespace }, spec: sampleLifecycle() as never })
    await rig.client.create(StatefulSet, sampleStatefulSet({ namespace, name, lifecycle, replicas }))
    await rig.client.create(StatefulApp, sampleApp({ namespace, name, lifecycle }, spec) as never)
    return namespace
  }

  const app = (namespace: string) => rig.client.get(StatefulApp, { namespace, name })
  async function until(
    namespace: string,
    expected: string,
    holds: (status: NonNullable<StatefulApp['status']>) => unknown,
  ) {
    let last: unknown
    try {
      return await rig.until(
        expected,
        async () => {
          const { status = {}, metadata } = await app(namespace)
          last = { status, generation: metadata.generation }
          const isSeen = status.observedGeneration === metadata.generation
          return isSeen && holds(status as never) ? status : undefined
        },
        60_000,
      )
    } catch (error) {
      throw new Error(
        `${(error as Error).message}\n${JSON.stringify(last, null, 1)}\n${controller.lines.slice(-30).join('')}`,
      )
    }
  }
  const ready = ({ conditions = [] }: NonNullable<StatefulApp['status']>) =>
    conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
  const wish = (namespace: string, desired: object) =>
    rig.client.patch(
      StatefulApp,
      { namespace, name },
      { merge: { spec: { desired: { action: null, params: null, request: null, ...desired } } } },
    )

  it('is only observed without a wish', async () => {
    const namespace = await deploy()
    const status = await until(namespace, 'Running, ready', one => one.state === 'Running' && ready(one))
    expect(status).toMatchObject({
      path: expect.stringContaining('Running'),
      pods: [{ name: 'orders-0', state: 'Running' }, { name: 'orders-1' }],
    })
    expect(await rig.client.list(Operation, { namespace })).toEqual([])
  })

  it('goes from Start to Running, is serviced twice, stops, ends, and starts again', async () => {
    const namespace = await deploy({ spec: { desired: { state: 'Running' } } })
    await until(namespace, 'Running', one => one.state === 'Running' && ready(one))
    await wish(namespace, { state: 'Servicing', action: 'backup', request: '1' })
    await until(
      namespace,
      'a backup',
      one => one.wish?.outcome === 'Succeeded' && one.state === 'Running' && ready(one),
    )
    await wish(namespace, { state: 'Servicing', action: 'reconfigure', params: { value: 'new' }, request: '2' })
    await until(
      namespace,
      'reconfigured',
      one => one.wish?.serial === 3 && one.wish.outcome === 'Succeeded' && ready(one),
    )
    await wish(namespace, { state: 'End' })
    const ended = await until(namespace, 'End', one => one.state === 'End' && ready(one))
    expect(ended.path).toMatch(/>Stopping>End$/)
    expect((await rig.client.get(StatefulSet, { namespace, name })).spec?.replicas).toBe(0)
    await wish(namespace, { state: 'Running' })
    await until(namespace, 'Running again', one => one.state === 'Running' && ready(one))
    const counts = (action: string) => rig.effects({ action, at: 'begin' }).length
    expect([counts('backup'), counts('reconfigure')]).toEqual([2, 2])
    const operations = await rig.client.list(Operation, { namespace })
    expect(operations.map(({ status }) => status?.phase)).toEqual(operations.map(() => 'Succeeded'))
    expect(operations.every(({ metadata }) => (metadata.finalizers ?? []).length === 0)).toBe(true)
    expect(await rig.client.list(PodDisruptionBudget, { namespace })).toEqual([])
  })
})
