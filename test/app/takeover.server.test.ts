/**
 * Whom a controller connects to first when it takes over: apps with a wish, an operation or a deletion, then the rest. Hundreds of apps on a real API server; at their
 * pods' addresses somebody only notes down who is called.
 */
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Lifecycle, Operation, StatefulApp } from '../../controller/app/kinds.ts'
import { type Access, connect } from '../../controller/kube/access.ts'
import { Namespace, Node, Pod, Secret, StatefulSet } from '../../controller/kube/kinds.ts'
import { type ApiServer, startApiServer } from '../fixtures/apiserver.ts'
import { type ApiLine, openApiLine } from '../fixtures/app/api-line.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { type RunningController, startController } from '../fixtures/app/controller.ts'
import { sampleApp, sampleLifecycle, sampleStatefulSet } from '../fixtures/app/samples.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'

const count = 300
const lifecycle = 'sample'
const namespace = 'fleet'
const nameOf = (n: number) => `app-${String(n).padStart(3, '0')}`
const addressOf = (n: number) => `127.77.${Math.floor(n / 200)}.${(n % 200) + 1}`
/** Why it is urgent; every tenth is, the first ones of the list not sooner than the last. */
const urgencies = ['wish', 'operation', 'deletion'] as const
const urgencyOf = (n: number) => (n % 10 === 9 ? urgencies[Math.floor(n / 10) % 3] : undefined)
const all = [...Array(count).keys()]
const urgent = all.filter(n => urgencyOf(n) !== undefined)

describe.skipIf(rigMissing)('a takeover', { timeout: 240_000 }, () => {
  let server: ApiServer
  let access: Access
  let sidecars: Server
  let called: string[] = []
  const lines: ApiLine[] = []
  const controllers: RunningController[] = []

  beforeAll(async () => {
    sidecars = createServer(socket => {
      called.push(socket.localAddress ?? '')
      socket.on('error', () => undefined)
      socket.destroy()
    })
    await new Promise<void>(resolve => sidecars.listen(0, '0.0.0.0', resolve))
    server = await startApiServer()
    access = connect({ kubeconfig: { file: server.kubeconfig } })
    await installOwnKinds(access.client)
    await populate()
  }, 180_000)
  afterAll(async () => {
    await Promise.all(controllers.map(one => one.stop()))
    await Promise.all(lines.map(line => line.close()))
    await access?.close()
    await server?.[Symbol.asyncDispose]()
    sidecars?.close()
  }, 60_000)

  async function populate(): Promise<void> {
    const { client } = access
    await client.create(Namespace, { metadata: { name: namespace } })
    await client.create(Node, { metadata: { name: 'node' } })
    await client.create(Lifecycle, { metadata: { name: lifecycle, namespace }, spec: sampleLifecycle() as never })
    const { port } = sidecars.address() as AddressInfo
    const left = [...all]
    const makeAll = async () => {
      for (let n = left.shift(); n !== undefined; n = left.shift()) await make(n, port)
    }
    await Promise.all(Array.from({ length: 8 }, makeAll))
  }

  async function make(n: number, port: number): Promise<void> {
    const { client } = access
    const place = { namespace, name: nameOf(n), lifecycle, replicas: 1 }
    const set = await client.create(StatefulSet, sampleStatefulSet(place))
    const urgency = urgencyOf(n)
    await client.create(
      StatefulApp,
      sampleApp(place, {
        ...(urgency === 'wish' && { desired: { state: 'Running' } }),
        ...(urgency === 'deletion' && { deletion: { policy: 'WalkToEnd', deadline: '1h' } }),
      }) as never,
    )
    if (urgency === 'operation')
      await client.create(Operation, {
        metadata: { name: place.name, namespace },
        spec: { app: place.name, action: 'backup' },
      } as never)
    const { metadata, spec } = set.spec?.template ?? {}
    const owner = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      name: place.name,
      uid: set.metadata.uid,
      controller: true,
    }
    const pod = await client.create(Pod, {
      metadata: {
        ...{ name: `${place.name}-0`, namespace, ownerReferences: [owner] },
        labels: { ...metadata?.labels, 'statefulset.kubernetes.io/pod-name': `${place.name}-0` },
        annotations: { 'shipmate.dev/api-port': String(port) },
      },
      spec: { ...spec, nodeName: 'node' },
    } as never)
    const ip = addressOf(n)
    const conditions = [{ type: 'Ready', status: 'True' }]
    const merge = { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions } }
    await client.patch(Pod, pod.metadata, { merge }, { subresource: 'status' })
  }

  async function start(): Promise<RunningController> {
    const line = await openApiLine(server)
    lines.push(line)
    const controller = await startController(line, {
      manager: { leaderElection: { name: 'shipmate', namespace: 'default' } },
      // Each is called once, as a sidecar that answers is. Where there are ten thousand, the pace holds few back while the others are looked at: so here.
      limits: { firstRetry: 600_000, longestRetry: 600_000, perSecond: 20_000 },
    })
    controllers.push(controller)
    return controller
  }
  const everybodyIsCalled = () =>
    vi.waitFor(() => expect(new Set(called).size).toBe(count), { timeout: 120_000, interval: 50 })

  it('connects to those that have something to do, before it connects to the rest', async () => {
    const first = await start()
    await everybodyIsCalled()
    await vi.waitFor(
      async () => {
        const apps = await access.client.list(StatefulApp, { namespace })
        expect(apps.filter(({ status }) => status?.observedGeneration !== undefined)).toHaveLength(count)
        expect(await access.client.list(Secret, { namespace })).toHaveLength(count)
      },
      { timeout: 60_000, interval: 200 },
    )
    for (const n of urgent.filter(n => urgencyOf(n) === 'deletion'))
      await access.client.delete(StatefulApp, { namespace, name: nameOf(n) })
    await start()

    await first.kill()
    // As a leader leaves it that dies with a run in progress.
    for (const n of urgent.filter(n => urgencyOf(n) === 'operation')) {
      const { uid } = (await access.client.get(Operation, { namespace, name: nameOf(n) })).metadata
      const merge = { status: { fence: 1, operation: { name: nameOf(n), uid, action: 'backup', fence: 1 } } }
      await access.client.patch(StatefulApp, { namespace, name: nameOf(n) }, { merge }, { subresource: 'status' })
    }
    called = []
    await everybodyIsCalled()
    const order = [...new Set(called)]
    const last = Math.max(...urgent.map(n => order.indexOf(addressOf(n))))
    // No line of the queue is starved, and a few are worked on at once: some of the rest slip in between. By chance it would be nearly all of them.
    expect(last + 1 - urgent.length).toBeLessThanOrEqual(urgent.length)
  })
})
