/**
 * Authorities, certificates and signing keys, each replaced several times under an app that works all the while: real sidecars, with files that come to them as late as
 * a kubelet brings them. Lifetimes of seconds stand for those of months.
 */
import { request } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { controllerName, serverNameOf } from '../../controller/app/agents/address.ts'
import { Lifecycle, Operation, StatefulApp } from '../../controller/app/kinds.ts'
import { configNameOf } from '../../controller/app/trust/lifecycle-config.ts'
import { parseRoot, type RootDocument, signingKey } from '../../controller/app/trust/root.ts'
import { type SigningKey, signedConfig } from '../../controller/app/trust/signing.ts'
import { ConfigMap, Pod, Secret, StatefulSet } from '../../controller/kube/kinds.ts'
import { issue } from '../../shared/authority.ts'
import type { Pair } from '../../shared/certificate.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { controllerUser, grantController, type RunningController, startController } from '../fixtures/app/controller.ts'
import type { RigPod } from '../fixtures/app/pod.ts'
import { type Rig, startRig } from '../fixtures/app/rig.ts'
import { sampleApp, sampleLifecycle, sampleStatefulSet } from '../fixtures/app/samples.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'

const name = 'orders'
const lifecycle = 'sample'
const idle = 'idle'
/** A Secret takes `late` to reach a pod, whose sidecar looks every 5 s: `propagation` is more than both. */
const lifetimes = { authority: 90_000, certificate: 40_000, signingKey: 90_000, propagation: 8000, skew: 1000 }
const late = 500
/** How many authorities, and how many keys, are dropped at least: each takes a minute and a half. (Years of it are played in trust/rotation.test.ts.) */
const rotations = 1
type Status = NonNullable<StatefulApp['status']>

describe.skipIf(rigMissing)('what sidecars and controller believe each other by', { timeout: 420_000 }, () => {
  let rig: Rig
  let controller: RunningController
  let namespace: string

  beforeAll(async () => {
    rig = await startRig({
      async prepare(client) {
        await installOwnKinds(client)
        await grantController(client)
      },
    })
    rig.mounts.delay(late)
    namespace = await rig.namespace()
    await rig.client.create(Lifecycle, { metadata: { name: lifecycle, namespace }, spec: sampleLifecycle() as never })
    await rig.client.create(StatefulSet, sampleStatefulSet({ namespace, name, lifecycle, replicas: 2 }))
    const app = sampleApp({ namespace, name, lifecycle }, { desired: { state: 'Running' } })
    await rig.client.create(StatefulApp, app as never)
    // One that nothing happens to, with a lifecycle of its own.
    const quiet = { namespace, name: idle, lifecycle: idle, replicas: 1 }
    await rig.client.create(Lifecycle, { metadata: { name: idle, namespace }, spec: sampleLifecycle() as never })
    await rig.client.create(StatefulSet, sampleStatefulSet(quiet))
    await rig.client.create(StatefulApp, sampleApp(quiet) as never)
    controller = await startController(await rig.line(controllerUser), { lifetimes })
  }, 180_000)
  afterAll(async () => {
    await controller?.stop()
    await rig?.stop()
  }, 60_000)

  const status = async (of = name) =>
    ((await rig.client.get(StatefulApp, { namespace, name: of })).status ?? {}) as Status
  const isReady = ({ state, conditions = [] }: Status) =>
    state === 'Running' && conditions.some(one => one.type === 'Ready' && one.status === 'True')
  async function root(): Promise<RootDocument> {
    const { data } = await rig.client.get(Secret, { namespace: 'default', name: 'shipmate-root' })
    return parseRoot(Buffer.from(data?.['root.json'] ?? '', 'base64').toString())
  }
  /** What a sidecar answers to somebody with that certificate, or why it does not. */
  async function stateFor(pod: RigPod, client: Pair): Promise<{ configHash?: string; refused?: string }> {
    const ca = (await root()).authorities.map(({ cert }) => cert)
    return new Promise((resolve, reject) => {
      const asked = request(
        {
          ...{ host: pod.ip, port: pod.apiPort, path: '/v1/state', servername: serverNameOf({ namespace, name }) },
          ...{ ca, cert: client.cert, key: client.key, agent: false, minVersion: 'TLSv1.3' },
          headers: { 'shipmate-pod-uid': pod.uid },
        },
        async response => {
          let text = ''
          for await (const piece of response.setEncoding('utf8')) text += piece
          const answer = JSON.parse(text)
          resolve(response.statusCode === 401 ? { refused: answer.detail } : answer)
        },
      )
      asked.on('error', reject)
      asked.end()
    })
  }
  async function metric(pattern: RegExp): Promise<string[]> {
    const text = await controller.manager.metrics.registry.metrics()
    return text.split('\n').filter(line => pattern.test(line))
  }

  it('is exchanged while the app works: nothing fails, nothing restarts, what is dropped is refused', async () => {
    await rig.until('Running', async () => isReady(await status()) && isReady(await status(idle)))
    const pod = rig.pods(namespace).find(one => one.name === `${name}-0`)
    if (!pod) throw new Error('there is no pod')
    const lostBefore = controller.lines.filter(line => line.includes('a connection to a sidecar was lost')).length
    const seen = { keys: new Set<string>(), leaves: new Set<string>() }
    /** Of authorities that have issued: a certificate in the controller's name, by somebody who has their key, as good as long as they are. */
    const forged = new Map<string, Pair>()
    const oldKeys = new Map<string, SigningKey>()
    const refused: string[] = []
    const unreachable: unknown[] = []
    let requests = 0
    let isDone = false

    /** One backup after the other. */
    const work = async () => {
      while (!isDone) {
        const desired = { state: 'Servicing', action: 'backup', request: String(++requests) }
        const { metadata } = await rig.client.patch(StatefulApp, { namespace, name }, { merge: { spec: { desired } } })
        await rig.until(`backup ${requests}`, async () => {
          const now = await status()
          const reachable = now.conditions?.find(({ type }) => type === 'SidecarsReachable')
          if (reachable?.status !== 'True') unreachable.push(reachable)
          const isSeen = now.observedGeneration === metadata.generation
          if (isSeen && now.wish?.outcome !== undefined && now.wish.outcome !== 'Succeeded')
            throw new Error(JSON.stringify(now))
          return isSeen && now.wish?.outcome === 'Succeeded' && isReady(now)
        })
      }
    }
    const watch = async () => {
      for (; refused.length < rotations || seen.keys.size <= rotations; await pause(200)) {
        const { authorities, keys, client } = await root()
        for (const { id, cert, key, until } of authorities) {
          if (!key || forged.has(id)) continue
          const forgery = issue({ cert, key }, 'client', { dns: [controllerName] }, { from: Date.now() - 1000, until })
          forged.set(id, forgery)
        }
        for (const { id, public: open, private: secret } of keys) {
          seen.keys.add(id)
          if (secret) oldKeys.set(id, { public: open, private: secret })
        }
        if (client) seen.leaves.add(client.serial)
        const { data } = await rig.client.get(Secret, { namespace, name: `shipmate-tls-${name}` })
        seen.leaves.add(data?.['tls.crt'] ?? '')
        for (const [id, client] of forged) {
          const isBelieved = authorities.some(one => one.id === id)
          // Announced ones are believed when everybody has them.
          if (authorities.find(one => one.id === id)?.phase === 'issuing') {
            const answer = await stateFor(pod, client)
            expect(answer, `${id} issues`).not.toHaveProperty('refused')
          }
          if (isBelieved) continue
          forged.delete(id)
          const gone = `${id} to be refused, now that it is dropped`
          refused.push(await rig.until(gone, async () => (await stateFor(pod, client)).refused))
        }
      }
      isDone = true
    }
    await Promise.all([
      work(),
      watch().finally(() => {
        isDone = true
      }),
    ])

    expect(unreachable).toEqual([])
    // Not for its age.
    for (const why of refused) expect(why).toMatch(/is not accepted: (?!.*EXPIRED)/)
    const lost = controller.lines.filter(line => line.includes('a connection to a sidecar was lost'))
    expect(lost.slice(lostBefore)).toEqual([])
    const codes = (await metric(/^shipmate_agent_call_seconds_count/)).filter(line => !/code="2\d\d"/.test(line))
    expect(codes).toEqual([])
    // Each exchange of whom the controller believes, or of its own certificate, is a new connection beside the old one.
    const [reconnects = ''] = await metric(/^shipmate_agent_reconnects_total/)
    expect(Number(reconnects.split(' ').at(-1))).toBeGreaterThan(rotations)
    for (const one of rig.pods(namespace))
      expect({ pod: one.name, births: one.births }).toEqual({ pod: one.name, births: 1 })
    for (const { status } of await rig.client.list(Pod, { namespace })) {
      const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
      expect(all.map(({ restartCount }) => restartCount)).toEqual([0, 0])
    }
    const operations = await rig.client.list(Operation, { namespace })
    expect(operations).toHaveLength(requests)
    for (const { status } of operations)
      expect(status).toMatchObject({ phase: 'Succeeded', runs: [{ attempt: 1 }, { attempt: 1 }] })
    expect(rig.effects({ action: 'backup', at: 'begin' })).toHaveLength(2 * requests)
    expect(seen.leaves.size).toBeGreaterThan(2 * rotations)

    // It reached who had no other reason to look.
    await rig.until('the idle app, and its lifecycle, to have what is believed now', async () => {
      const { authorities, keys } = await root()
      const { data } = await rig.client.get(Secret, { namespace, name: `shipmate-tls-${idle}` })
      const config = await rig.client.get(ConfigMap, { namespace, name: configNameOf(idle) })
      const believed = Buffer.from(data?.['ca.crt'] ?? '', 'base64').toString()
      const key = keys.find(({ phase }) => phase === 'issuing')?.id
      const isListed = believed === authorities.map(({ cert }) => cert).join('')
      return isListed && config.metadata.annotations?.['shipmate.dev/signed-by'] === key
    })
    const quiet = (await status(idle)).conditions?.find(({ type }) => type === 'SidecarsReachable')
    expect(quiet).toMatchObject({ status: 'True' })

    // A key that was dropped signs nothing any more.
    const { keys, client } = await root()
    await controller.stop()
    const good = signingKey(await root())
    const before = await stateFor(pod, client as Pair)
    const [, stale] = [...oldKeys].find(([id]) => !keys.some(one => one.id === id)) ?? []
    if (!stale) throw new Error('there is no old key')
    const spec = sampleLifecycle({ backup: { timeout: '2m' } })
    const publish = (key: SigningKey) =>
      rig.client.patch(
        ConfigMap,
        { namespace, name: configNameOf(lifecycle) },
        { merge: { data: signedConfig({ namespace, name: lifecycle, spec }, key) } },
      )
    // At its start there may be none yet.
    const refusals = () =>
      pod.said.filter(line => line.includes('configuration refused') && !line.includes('is missing'))
    expect(refusals()).toEqual([])
    await publish(stale)
    await rig.until('the sidecar to refuse it', () => refusals().length > 0)
    expect(await stateFor(pod, client as Pair)).toMatchObject({ configHash: before.configHash })
    await publish(good)
    await rig.until('the sidecar to take what a good key signs', async () => {
      const { configHash } = await stateFor(pod, client as Pair)
      return configHash !== undefined && configHash !== before.configHash
    })
  })
})
