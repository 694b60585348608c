/**
 * Apps without a sidecar, driven over their own HTTP server, on the rig: pods as they are, and an application at the pods' addresses.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Lifecycle, Operation, StatefulApp } from '../../../controller/app/kinds.ts'
import { StatefulSet } from '../../../controller/kube/kinds.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { rigMissing } from '../../fixtures/app/control-plane.ts'
import { type RunningController, startController } from '../../fixtures/app/controller.ts'
import { type Rig, startRig } from '../../fixtures/app/rig.ts'
import { installOwnKinds } from '../../fixtures/own-kinds.ts'

const name = 'orders'
// As a sidecar would ask it: the host and the port are replaced by the pod's own.
const http = (method: 'GET' | 'POST', path: string) => ({ method, url: `http://127.0.0.1:1${path}` })
const lifecycle: LifecycleSpec = {
  states: [
    { name: 'Start', verb: 'Create', next: ['Running', 'Stopping'] },
    { name: 'Running', when: 'probes.ready.ok', next: ['Servicing', 'Stopping'] },
    { name: 'Servicing', actions: ['backup'], next: ['Running'] },
    { name: 'Stopping', actions: ['stop'], next: ['End'] },
    { name: 'End', verb: 'Delete', next: ['Start'] },
  ],
  probes: [{ name: 'ready', http: http('GET', '/ready'), every: '100ms', failureThreshold: 1 }],
  actions: [
    {
      name: 'backup',
      http: http('POST', '/backup?to=$(params.to)'),
      params: { to: { type: 'string' } },
      cancel: { grace: '0s' },
      timeout: '1m',
    },
    { name: 'stop', http: http('POST', '/stop'), timeout: '1m' },
    { name: 'hang', http: http('POST', '/hang'), cancel: { grace: '0s' }, timeout: '3s' },
    { name: 'reload', signal: { process: 'app', signal: 'SIGHUP' } },
  ],
}

describe.skipIf(rigMissing)('an app without a sidecar', { timeout: 120_000 }, () => {
  let rig: Rig
  let controller: RunningController
  let server: Server
  let port: number
  let isReady = true
  const asked: string[] = []

  beforeAll(async () => {
    server = createServer((request, response) => {
      const path = request.url?.replace(/^\/api/, '') ?? ''
      if (path === '/ready') return response.writeHead(isReady ? 200 : 503).end()
      asked.push(`${request.method} ${request.url} of ${request.socket.localAddress}`)
      // Whoever asks for that learns nothing.
      if (path !== '/hang') response.end('{"files":3}')
      return undefined
    })
    // Every pod's address is one of this machine's.
    server.listen(0)
    await new Promise(resolve => server.once('listening', resolve))
    port = (server.address() as AddressInfo).port
    rig = await startRig({ prepare: client => installOwnKinds(client) })
    controller = await startController(await rig.line())
  }, 120_000)
  afterAll(async () => {
    await controller?.stop()
    await rig?.stop()
    server?.closeAllConnections()
    server?.close()
  }, 60_000)

  async function deploy(replicas: number): Promise<string> {
    const namespace = await rig.namespace()
    onTestFinished(() => rig.clear(namespace))
    asked.length = 0
    isReady = true
    await rig.client.create(Lifecycle, { metadata: { name, namespace }, spec: lifecycle as never })
    await rig.client.create(StatefulSet, {
      metadata: { name, namespace },
      spec: {
        ...{ serviceName: name, replicas, podManagementPolicy: 'Parallel', selector: { matchLabels: { app: name } } },
        template: {
          metadata: { labels: { app: name } },
          spec: { containers: [{ name: 'application', image: 'application' }] },
        },
      },
    })
    await rig.client.create(StatefulApp, {
      metadata: { name, namespace },
      spec: {
        lifecycle: name,
        workload: { apiVersion: 'apps/v1', kind: 'StatefulSet', name },
        via: { http: { port, path: '/api' } },
        desired: { state: 'Running' },
      },
    } as never)
    return namespace
  }

  async function until(
    namespace: string,
    expected: string,
    holds: (status: StatefulApp['status'] & object) => unknown,
  ) {
    let last: unknown
    try {
      return await rig.until(expected, async () => {
        const { status = {}, metadata } = await rig.client.get(StatefulApp, { namespace, name })
        last = status
        return status.observedGeneration === metadata.generation && holds(status as never) ? status : undefined
      })
    } catch (error) {
      const said = controller.lines.slice(-20).join('')
      throw new Error(`${(error as Error).message}\n${JSON.stringify(last, null, 1)}\n${said}`)
    }
  }
  type Status = NonNullable<StatefulApp['status']>
  const condition = ({ conditions = [] }: Status, type: string) => conditions.find(one => one.type === type)
  const ready = (status: Status, state: string) =>
    status.state === state && condition(status, 'Ready')?.status === 'True'
  const wish = (namespace: string, desired: object) =>
    rig.client.patch(
      StatefulApp,
      { namespace, name },
      { merge: { spec: { desired: { action: null, params: null, ...desired } } } },
    )

  it('walks the same graph, asked at its pods, and says which promise is lost', async () => {
    const namespace = await deploy(2)
    const status = await until(namespace, 'Running', one => ready(one, 'Running'))
    expect(condition(status, 'ExactlyOnce')).toMatchObject({ status: 'False', reason: 'NoSidecar' })
    expect(condition(status, 'SidecarsReachable')).toMatchObject({ status: 'Unknown', reason: 'NoSidecar' })

    await wish(namespace, { state: 'Servicing', params: { to: 'a&b' } })
    const served = await until(namespace, 'a backup', one => one.wish?.outcome === 'Succeeded' && ready(one, 'Running'))
    const [first = '', second = ''] = rig.pods(namespace).map(({ ip }) => ip)
    const said = asked.map(line => line.replace('::ffff:', ''))
    expect(said).toEqual([`POST /api/backup?to=a%26b of ${first}`, `POST /api/backup?to=a%26b of ${second}`])
    expect(served.path).toMatch(/Running.*Servicing/)

    isReady = false
    await until(
      namespace,
      'Start again, as the guard is lost',
      one => one.state === 'Start' && one.reason === 'GuardLost',
    )
    isReady = true
    await until(namespace, 'Running', one => ready(one, 'Running'))

    await wish(namespace, { state: 'End' })
    const ended = await until(namespace, 'End', one => ready(one, 'End'))
    expect(ended.path).toMatch(/>Stopping.*>End$/)
    expect(asked.filter(line => line.includes('/stop'))).toHaveLength(2)
    expect((await rig.client.get(StatefulSet, { namespace, name })).spec?.replicas).toBe(0)
  })

  async function operate(namespace: string, action: string) {
    await rig.client.create(Operation, { metadata: { name: action, namespace }, spec: { app: name, action } } as never)
    return async () => (await rig.client.get(Operation, { namespace, name: action })).status
  }

  it('is refused what only a sidecar can do', async () => {
    const namespace = await deploy(1)
    await until(namespace, 'Running', one => ready(one, 'Running'))
    const look = await operate(namespace, 'reload')
    const status = await rig.until('an end', async () => {
      const status = await look()
      return status?.finishedAt ? status : undefined
    })
    expect(status).toMatchObject({ phase: 'Failed', reason: 'UnknownAction' })
    expect(status.message).toContain('`signal` cannot be asked via http')
  })

  it('whose controller is started anew in the middle of an action does not know how it ended, and asks nobody twice', async () => {
    const namespace = await deploy(1)
    await until(namespace, 'Running', one => ready(one, 'Running'))
    const look = await operate(namespace, 'hang')
    await rig.until('that it is asked', () => asked.length === 1)
    await rig.until('that this is written', async () => (await look())?.runs?.[0]?.phase === 'Running')
    await controller.stop()
    controller = await startController(await rig.line())
    const status = await rig.until('Unknown', async () => {
      const status = await look()
      return status?.phase === 'Unknown' ? status : undefined
    })
    expect(status).toMatchObject({ reason: 'OutcomeUnknown', runs: [{ error: { code: 'JournalLost' } }] })
    expect(asked).toHaveLength(1)
    await until(namespace, 'that a person is asked', one => condition(one, 'Stalled')?.reason === 'OutcomeUnknown')
  })
})
