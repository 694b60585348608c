/**
 * `kubectl wait --for=condition=Ready`, begun right after each wish: it returns when that wish is reached, never before, and not at all for one that fails.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Lifecycle, StatefulApp } from '../../controller/app/kinds.ts'
import { StatefulSet } from '../../controller/kube/kinds.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { controllerUser, grantController, type RunningController, startController } from '../fixtures/app/controller.ts'
import { type Rig, startRig } from '../fixtures/app/rig.ts'
import { sampleApp, sampleLifecycle, sampleStatefulSet } from '../fixtures/app/samples.ts'
import { kubectlMissing, kubectlPath } from '../fixtures/kubectl.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'
import { skipFile } from '../fixtures/skip-file.ts'

const name = 'orders'
const lifecycle = 'sample'
type App = Awaited<ReturnType<Rig['client']['get']>> & StatefulApp

interface Waiting {
  readonly isOver: boolean
  /** The exit code and what it said; the app as it was then. */
  readonly done: Promise<{ code: number; said: string; app: App }>
}

skipFile(kubectlMissing)

describe.skipIf(rigMissing)('kubectl wait', { timeout: 240_000 }, () => {
  let rig: Rig
  let controller: RunningController
  const children = new Set<ChildProcess>()

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
    for (const child of children) child.kill('SIGKILL')
    await controller?.stop()
    await rig?.stop()
  }, 60_000)

  async function deploy(spec: object): Promise<string> {
    const namespace = await rig.namespace()
    onTestFinished(() => rig.clear(namespace))
    await rig.client.create(Lifecycle, { metadata: { name: lifecycle, namespace }, spec: sampleLifecycle() as never })
    await rig.client.create(StatefulSet, sampleStatefulSet({ namespace, name, lifecycle, replicas: 2 }))
    await rig.client.create(StatefulApp, sampleApp({ namespace, name, lifecycle }, spec) as never)
    return namespace
  }
  const get = (namespace: string) => rig.client.get(StatefulApp, { namespace, name }) as unknown as Promise<App>
  const wish = (namespace: string, desired: object) =>
    rig.client.patch(
      StatefulApp,
      { namespace, name },
      { merge: { spec: { desired: { action: null, params: null, request: null, ...desired } } } },
    )
  function wait(namespace: string, timeout = '90s', condition = 'Ready'): Waiting {
    const flags = [`--kubeconfig=${rig.server.kubeconfig}`, `--namespace=${namespace}`]
    const child = spawn(kubectlPath, [
      ...flags,
      'wait',
      `sapp/${name}`,
      `--for=condition=${condition}`,
      `--timeout=${timeout}`,
    ])
    children.add(child)
    let said = ''
    let isOver = false
    for (const stream of [child.stdout, child.stderr]) stream.on('data', piece => (said += piece))
    const done = once(child, 'close').then(async ([code]) => {
      isOver = true
      children.delete(child)
      return { code: Number(code), said, app: await get(namespace) }
    })
    return {
      done,
      get isOver() {
        return isOver
      },
    }
  }
  async function reached(
    waiting: Waiting,
    expected: { state: string; serial: number; outcome?: string },
  ): Promise<void> {
    const { code, said, app } = await waiting.done
    const { generation } = app.metadata as { generation?: number }
    expect({ code, said }).toEqual({ code: 0, said: `statefulapp.shipmate.dev/${name} condition met\n` })
    const { state, wish, observedGeneration } = app.status ?? {}
    expect({ state, serial: wish?.serial, outcome: wish?.outcome, observedGeneration }).toEqual({
      outcome: undefined,
      ...expected,
      observedGeneration: generation,
    })
  }
  const held = (namespace: string, action: string) =>
    rig.until(`${action} to have begun in a pod`, () =>
      rig.pods(namespace).some(({ uid }) => rig.effects({ action, at: 'begin' }).some(one => one.uid === uid)),
    )

  it('through a whole life returns when the wish of the moment is reached', async () => {
    const namespace = await deploy({ desired: { state: 'Running' } })
    await reached(wait(namespace), { state: 'Running', serial: 1 })
    let serial = 1
    const steps: { desired: object; state: string; outcome?: string }[] = [
      { desired: { state: 'Servicing', action: 'backup', request: '1' }, state: 'Running', outcome: 'Succeeded' },
      {
        desired: { state: 'Servicing', action: 'reconfigure', params: { value: 'new' } },
        state: 'Running',
        outcome: 'Succeeded',
      },
      // The same as before the last one: another wish all the same.
      { desired: { state: 'Servicing', action: 'backup', request: '1' }, state: 'Running', outcome: 'Succeeded' },
      { desired: { state: 'End' }, state: 'End', outcome: 'Succeeded' },
      { desired: { state: 'Running' }, state: 'Running' },
    ]
    for (const { desired, ...expected } of steps) {
      await wish(namespace, desired)
      await reached(wait(namespace), { ...expected, serial: ++serial })
      if (expected.state === 'End')
        expect((await rig.client.get(StatefulSet, { namespace, name })).status?.replicas ?? 0).toBe(0)
    }
  })

  it('goes on through the wish that is under way when another is made, and returns for the last', async () => {
    const namespace = await deploy({ desired: { state: 'Running' } })
    await reached(wait(namespace), { state: 'Running', serial: 1 })
    for (const pod of rig.pods(namespace)) pod.hold('backup')
    await wish(namespace, { state: 'Servicing', action: 'backup', request: '1' })
    const first = wait(namespace)
    await held(namespace, 'backup')
    await wish(namespace, { state: 'Servicing', action: 'reconfigure', params: { value: 'x' } })
    const second = wait(namespace)
    for (const pod of rig.pods(namespace)) pod.hold('reconfigure')
    for (const pod of rig.pods(namespace)) pod.release('backup')
    await held(namespace, 'reconfigure')
    expect([first.isOver, second.isOver]).toEqual([false, false])
    for (const pod of rig.pods(namespace)) pod.release('reconfigure')
    for (const waiting of [first, second]) await reached(waiting, { state: 'Running', serial: 3, outcome: 'Succeeded' })
  })

  it('is not taken in by what was ready before the wish, while nobody has looked at it', async () => {
    const namespace = await deploy({ desired: { state: 'Running' } })
    await reached(wait(namespace), { state: 'Running', serial: 1 })
    await controller.stop()
    await wish(namespace, { state: 'Servicing', action: 'backup', request: '1' })
    const { code, app } = await wait(namespace, '3s').done
    expect(app.status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }))
    expect(code).toBe(1)
    const waiting = wait(namespace)
    controller = await startController(await rig.line(controllerUser))
    await reached(waiting, { state: 'Running', serial: 2, outcome: 'Succeeded' })
  })

  it('does not return for a wish that fails, while `Stalled` does; and returns for the next', async () => {
    const namespace = await deploy({ desired: { state: 'Running' } })
    await reached(wait(namespace), { state: 'Running', serial: 1 })
    for (const pod of rig.pods(namespace)) pod.fail('backup', 3)
    await wish(namespace, { state: 'Servicing', action: 'backup', request: '1' })
    const waiting = wait(namespace, '15s')
    const stalled = await wait(namespace, '90s', 'Stalled').done
    expect(stalled.code).toBe(0)
    expect(stalled.app.status).toMatchObject({ state: 'Running', wish: { serial: 2, outcome: 'Failed' } })
    const { code, said } = await waiting.done
    expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('timed out waiting for the condition') })
    for (const pod of rig.pods(namespace)) pod.fail('backup', 0)
    await wish(namespace, { state: 'Servicing', action: 'backup', request: '2' })
    await reached(wait(namespace), { state: 'Running', serial: 3, outcome: 'Succeeded' })
  })
})
