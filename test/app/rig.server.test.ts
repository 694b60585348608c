/**
 * The rig that the app controller is tested on, proved without that controller: the test does its part.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { Agent } from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { Lifecycle, StatefulApp } from '../../controller/app/kinds.ts'
import { authenticated } from '../../controller/kube/auth.ts'
import { Client } from '../../controller/kube/client.ts'
import { createConnection } from '../../controller/kube/connection.ts'
import {
  ConfigMap,
  DaemonSet,
  Deployment,
  Namespace,
  Node,
  Pod,
  PodDisruptionBudget,
  Secret,
  StatefulSet,
} from '../../controller/kube/kinds.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import type { PodState, Run } from '../../shared/protocol/schemas.ts'
import { writes } from '../fixtures/app/api-requests.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { ask, isAgentReady } from '../fixtures/app/hooks.ts'
import type { RigPod } from '../fixtures/app/pod.ts'
import { type Rig, startRig } from '../fixtures/app/rig.ts'
import {
  sampleApp,
  sampleLifecycle,
  sampleStatefulSet,
  verifyOf,
  type WorkloadOptions,
} from '../fixtures/app/samples.ts'
import { createTrust } from '../fixtures/app/trust.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'
import { processesOf } from '../fixtures/process-tree.ts'

/** Pods without a sidecar. */
const plain = {
  selector: { matchLabels: { app: 'plain' } },
  template: {
    metadata: { labels: { app: 'plain' } },
    spec: { containers: [{ name: 'application', image: 'application' }] },
  },
}
const trust = createTrust()
const app = 'orders'
let fence = 65_536

describe.skipIf(rigMissing)('the rig', { timeout: 120_000 }, () => {
  let rig: Rig

  beforeAll(async () => {
    rig = await startRig({ prepare: installOwnKinds })
  }, 120_000)
  afterAll(() => rig?.stop(), 60_000)

  async function newNamespace() {
    const namespace = await rig.namespace()
    onTestFinished(() => rig.clear(namespace))
    return namespace
  }

  /** An app's pods, ready as their agents are, in a namespace of their own. */
  async function deploy(options: Partial<WorkloadOptions> = {}, spec: LifecycleSpec = sampleLifecycle()) {
    const namespace = await newNamespace()
    await rig.client.create(Secret, trust.secretFor(app, namespace))
    await rig.client.create(ConfigMap, trust.configMapFor('sample', namespace, spec))
    const workload = { namespace, name: app, lifecycle: 'sample', replicas: 1, ...options }
    await rig.client.create(StatefulSet, sampleStatefulSet(workload))
    await ready(namespace, workload.replicas)
    return namespace
  }

  const ready = (namespace: string, count: number) =>
    rig.until(`${count} ready pods`, async () => {
      const set = await rig.client.get(StatefulSet, { namespace, name: app })
      const pods = rig.pods(namespace)
      if (set.status?.readyReplicas !== count || pods.length !== count) return false
      return (await Promise.all(pods.map(({ ip }) => isAgentReady(ip)))).every(Boolean)
    })

  function first(namespace: string): RigPod {
    const pod = rig.pod(namespace, `${app}-0`)
    if (!pod) throw new Error('there is no pod')
    return pod
  }

  /** Again until the agent answers: it may be starting. */
  const get = <T>(pod: RigPod, path: string) =>
    rig.until(`an answer to ${path}`, async () => {
      const answer = await trust.call<T>(pod, app, 'GET', path).catch(() => undefined)
      return answer?.status === 200 && answer.body
    }) as Promise<T>

  const stateOf = (pod: RigPod) => get<PodState>(pod, '/v1/state')

  async function put(pod: RigPod, id: string, action: string, params = {}) {
    const { configHash, journalId } = await stateOf(pod)
    const body = { action, params, podUid: pod.uid, configHash, journalId, fence: ++fence }
    return trust.call<Run>(pod, app, 'PUT', `/v1/runs/${id}`, body)
  }

  const ended = (pod: RigPod, id: string) =>
    rig.until(`an end of ${id}`, async () => {
      const run = await get<Run>(pod, `/v1/runs/${id}`)
      return run.phase !== 'Accepted' && run.phase !== 'Running' && run
    })

  const begun = (run: string) => rig.until(`a beginning of ${run}`, () => rig.effects({ run, at: 'begin' }).length > 0)

  it('has three pods of a StatefulSet ready, observed by their sidecars', async () => {
    const namespace = await deploy({ replicas: 3 })
    const pods = rig.pods(namespace)
    expect(new Set(pods.map(({ ip }) => ip)).size).toBe(3)
    for (const pod of pods) {
      await rig.until('Running', async () => (await stateOf(pod)).state === 'Running')
      const { status } = await rig.client.get(Pod, pod)
      expect(status).toMatchObject({ phase: 'Running', podIP: pod.ip })
    }
  })

  it('carries an action out once, though its agent is killed in the middle and asked again', async () => {
    const pod = first(await deploy())
    pod.hold('backup')
    expect((await put(pod, 'run-1', 'backup')).status).toBe(201)
    await begun('run-1')
    await pod.killAgent()
    await rig.until('another agent', () => pod.births === 2)
    expect((await stateOf(pod)).state).toBe('Servicing')
    expect((await put(pod, 'run-1', 'backup')).status).toBe(200)
    pod.release('backup')
    expect(await ended(pod, 'run-1')).toMatchObject({ phase: 'Succeeded', exitCode: 0 })
    expect(rig.effects({ uid: pod.uid }).map(({ run, action, at }) => [run, action, at])).toEqual([
      ['run-1', 'backup', 'begin'],
      ['run-1', 'backup', 'end'],
    ])
  })

  it('does not know the outcome of a run whose container is killed, nor forgets it', async () => {
    const namespace = await deploy()
    const pod = first(namespace)
    pod.hold('backup')
    await put(pod, 'run-2', 'backup')
    await begun('run-2')
    await pod.killContainer()
    expect(await ended(pod, 'run-2')).toMatchObject({ phase: 'Unknown' })
    pod.release('backup')
    await ready(namespace, 1)
    const { status } = await rig.client.get(Pod, pod)
    expect(status?.initContainerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 137 } },
    })
    expect(rig.effects({ run: 'run-2' }).map(({ at }) => at)).toEqual(['begin'])
  })

  it('settles such a run by verify, where there is one', async () => {
    const pod = first(await deploy({}, sampleLifecycle({ backup: { verify: verifyOf('backup') } })))
    pod.hold('backup')
    await put(pod, 'run-3', 'backup')
    await begun('run-3')
    await pod.killContainer()
    const settled = await rig.until('a settled run', async () => {
      const run = await get<Run>(pod, '/v1/runs/run-3')
      return run.phase === 'Failed' && run
    })
    expect(settled).toMatchObject({ error: { code: 'NotApplied' } })
  })

  it.each([
    ['a native sidecar', true],
    ['a sidecar among the containers', false],
  ])(
    'replaces a deleted pod with %s by one with another uid, after its preStop action and the end of its processes',
    async (_, native) => {
      const namespace = await deploy({ native })
      const old = first(namespace)
      const { journalId } = await stateOf(old)
      await rig.client.delete(Pod, old)
      await rig.until(
        'another pod',
        () => rig.pod(namespace, old.name)?.uid !== old.uid && rig.pod(namespace, old.name),
      )
      expect(processesOf(old.folder)).toEqual([])
      expect(rig.effects({ uid: old.uid, action: 'stop' }).map(({ at, fence }) => [at, fence])).toEqual([
        ['begin', undefined],
        ['end', undefined],
      ])
      await ready(namespace, 1)
      expect((await stateOf(first(namespace))).journalId).not.toBe(journalId)
    },
  )

  it('starts a pod whose Secret and ConfigMap come later', async () => {
    const namespace = await newNamespace()
    const workload = { namespace, name: app, lifecycle: 'sample', replicas: 1 }
    await rig.client.create(StatefulSet, sampleStatefulSet(workload))
    const pod = await rig.until('an agent', () => rig.pods(namespace).find(({ births }) => births > 0))
    await expect(trust.call(pod, app, 'GET', '/v1/state')).rejects.toThrow()
    await rig.client.create(Secret, trust.secretFor(app, namespace))
    await rig.client.create(ConfigMap, trust.configMapFor('sample', namespace, sampleLifecycle()))
    await ready(namespace, 1)
    expect((await stateOf(pod)).pod).toEqual({ name: pod.name, namespace, uid: pod.uid })
  })

  it('ends an agent at a named point: what it had written down, and not begun, nobody begins', async () => {
    const pod = first(await deploy())
    pod.arm('journal.accepted.synced')
    await expect(put(pod, 'run-8', 'backup')).rejects.toThrow(/ECONNRESET|hang up/)
    expect(await ended(pod, 'run-8')).toMatchObject({ phase: 'Failed', error: { code: 'NotStarted' } })
    expect(rig.effects({ run: 'run-8' })).toEqual([])
  })

  it('observes what the application is: it stops accepting, and is restarted when it dies', async () => {
    const namespace = await deploy()
    const pod = first(namespace)
    const reaches = (state: string) => rig.until(state, async () => (await stateOf(pod)).state === state)
    await reaches('Running')
    pod.accept(false)
    await reaches('Start')
    await pod.killContainer('application')
    await reaches('Running')
    await rig.until('a restart', async () => {
      const { status } = await rig.client.get(Pod, pod)
      return status?.containerStatuses?.[0]?.restartCount === 1
    })
  })

  it('ends a pod that was terminating when its node went down, once the node is back', async () => {
    const namespace = await deploy()
    const pod = first(namespace)
    const node = rig.nodes.node(pod.node)
    pod.hold('stop')
    await rig.client.delete(Pod, pod)
    await rig.until('a beginning of the stop', () => rig.effects({ uid: pod.uid }).length > 0)
    await node.reboot()
    await rig.until('another pod', () => rig.pods(namespace).some(({ uid }) => uid !== pod.uid))
    expect(rig.effects({ uid: pod.uid }).map(({ at }) => at)).toEqual(['begin'])
  })

  it('kills what does not end within the grace period', async () => {
    const namespace = await deploy({ graceSeconds: 1 })
    const old = first(namespace)
    old.hold('stop')
    await rig.client.delete(Pod, old)
    await rig.until('another pod', () => rig.pod(namespace, old.name)?.uid !== old.uid && rig.pod(namespace, old.name))
    expect(processesOf(old.folder)).toEqual([])
    expect(rig.effects({ uid: old.uid }).map(({ at }) => at)).toEqual(['begin'])
  })

  it('reboots a node: another boot id, the same pod and journal', async () => {
    const namespace = await deploy()
    const pod = first(namespace)
    const before = await stateOf(pod)
    const node = rig.nodes.node(pod.node)
    const { bootId } = node
    await node.reboot()
    await ready(namespace, 1)
    const now = first(namespace)
    expect(now.uid).toBe(pod.uid)
    const after = await stateOf(now)
    expect(after.journalId).toBe(before.journalId)
    expect(after.bootId).not.toBe(before.bootId)
    const { status } = await rig.client.get(Node, { name: node.name })
    expect(status?.nodeInfo?.bootID).toBe(node.bootId)
    expect(node.bootId).not.toBe(bootId)
  })

  it('keeps a pod running whose node is cut off, though its object is removed and another has its name', async () => {
    const namespace = await deploy()
    const old = first(namespace)
    const node = rig.nodes.node(old.node)
    await node.disconnect()
    await rig.client.delete(Pod, old, { gracePeriodSeconds: 0 })
    await rig.until('another pod', () => rig.pods(namespace).some(({ uid }) => uid !== old.uid))
    expect((await stateOf(old)).pod.uid).toBe(old.uid)
    await node.connect()
    await rig.until('an end of the old processes', () => processesOf(old.folder).length === 0)
    await ready(namespace, 1)
  })

  it('loses a journal: another id, and the run is not known', async () => {
    const pod = first(await deploy())
    await put(pod, 'run-4', 'backup')
    await ended(pod, 'run-4')
    const { journalId } = await stateOf(pod)
    await pod.loseJournal()
    await rig.until('another journal', async () => (await stateOf(pod)).journalId !== journalId)
    expect((await trust.call(pod, app, 'GET', '/v1/runs/run-4')).status).toBe(404)
  })

  it('cuts the network: what is sent is refused, swallowed, or arrives without an answer', async () => {
    const pod = first(await deploy())
    pod.network?.set('cut')
    await expect(trust.call(pod, app, 'GET', '/v1/state')).rejects.toThrow(/ECONNRESET|hang up|disconnected/)
    pod.network?.set('blackhole')
    const answer = trust.call(pod, app, 'GET', '/v1/state')
    let isAnswered = false
    answer.finally(() => {
      isAnswered = true
    })
    // The agent itself is there and answers.
    expect(await ask(pod.ip, { port: 7080, path: '/readyz' }, AbortSignal.timeout(10_000))).toBe(200)
    expect(isAnswered).toBe(false)
    pod.network?.set('open')
    expect((await answer).status).toBe(200)

    const kept = new Agent({ keepAlive: true })
    onTestFinished(() => kept.destroy())
    const { body } = await trust.call<PodState>(pod, app, 'GET', '/v1/state', undefined, kept)
    pod.network?.set('deaf')
    const sent = {
      action: 'backup',
      podUid: pod.uid,
      configHash: body.configHash,
      journalId: body.journalId,
      fence: ++fence,
    }
    const lost = trust.call(pod, app, 'PUT', '/v1/runs/run-7', sent, kept)
    await rig.until('an effect', () => rig.effects({ run: 'run-7', at: 'end' }).length === 1)
    pod.network?.reset()
    await expect(lost).rejects.toThrow(/ECONNRESET|hang up/)
    pod.network?.set('open')
    expect((await trust.call(pod, app, 'PUT', '/v1/runs/run-7', sent)).status).toBe(200)
  })

  it('gives an address to another pod, whose agent says that it is not the one that was meant', async () => {
    const namespace = await deploy({ replicas: 2 })
    const [old, other] = rig.pods(namespace)
    if (!old || !other) throw new Error('there are no two pods')
    await rig.client.patch(StatefulSet, { namespace, name: app }, { merge: { spec: { replicas: 1 } } })
    await rig.until('one pod', () => rig.pods(namespace).length === 1)
    rig.reuseAddress(other.ip)
    await rig.replace(old)
    await rig.until('a pod there', () => rig.pod(namespace, old.name)?.ip === other.ip)
    await ready(namespace, 1)
    const refused = await trust.call<{ code: string }>(other, app, 'GET', '/v1/state')
    expect([refused.status, refused.body.code]).toEqual([409, 'WrongPod'])
  })

  it('brings a changed lifecycle to the pods, when it is let', async () => {
    const namespace = await deploy()
    const pod = first(namespace)
    const { configHash } = await stateOf(pod)
    pod.holdMounts()
    const changed = sampleLifecycle({ backup: { timeout: '2m' } })
    await rig.client.update(ConfigMap, trust.configMapFor('sample', namespace, changed))
    const refused = await put(pod, 'run-5', 'reconfigure')
    expect(refused.status).toBe(422)
    expect((await stateOf(pod)).configHash).toBe(configHash)
    pod.releaseMounts()
    await rig.until('another hash', async () => (await stateOf(pod)).configHash !== configHash)
  })

  it('keeps data of a claim over a replacement, and removes a namespace with all that is in it', async () => {
    const namespace = await deploy({ claims: true, graceSeconds: 2 })
    const old = first(namespace)
    await put(old, 'run-6', 'backup')
    await ended(old, 'run-6')
    await rig.replace(old)
    await rig.until('another pod', () => rig.pod(namespace, old.name)?.uid !== old.uid && rig.pod(namespace, old.name))
    await ready(namespace, 1)
    expect(existsSync(`${first(namespace).folder}/data/backup-run-6`)).toBe(true)
    await rig.client.delete(Namespace, { name: namespace })
    await rig.until('an end of the namespace', async () => !(await rig.client.find(Namespace, { name: namespace })))
    expect(rig.pods(namespace)).toEqual([])
  })

  it('cuts the line to the API server at any request, before or after the server has seen it', async () => {
    const namespace = await rig.namespace()
    const line = await rig.line()
    const connection = createConnection()
    onTestFinished(() => connection.close())
    const client = new Client(authenticated(connection, line.credentials), { namespace })
    const make = (name: string) => client.create(ConfigMap, { metadata: { name } })
    const isThere = async (name: string) => (await rig.client.find(ConfigMap, { namespace, name })) !== undefined

    const before = line.cutAt(2, 'before', { verb: writes, resource: 'configmaps' })
    await make('one')
    await client.get(ConfigMap, { name: 'one' })
    await expect(make('two')).rejects.toThrow()
    expect(await before.done).toMatchObject({ verb: 'create', resource: 'configmaps', namespace })
    await expect(client.get(ConfigMap, { name: 'one' })).rejects.toThrow()
    line.mend()
    const after = line.cutAt(1, 'after')
    await expect(make('three')).rejects.toThrow()
    expect(after.isDone).toBe(true)
    line.mend()
    expect([await isThere('one'), await isThere('two'), await isThere('three')]).toEqual([true, false, true])
    expect(line.requests.map(({ verb, status }) => [verb, status])).toEqual([
      ['create', 201],
      ['get', 200],
      ['create', undefined],
      ['create', 201],
    ])
    expect(line.count({ verb: 'create' })).toBe(3)
  })

  it('follows a watch over the line, and ends it with the line', async () => {
    const namespace = await rig.namespace()
    const line = await rig.line()
    const connection = createConnection()
    onTestFinished(() => connection.close())
    const client = new Client(authenticated(connection, line.credentials), { namespace })
    const { resourceVersion } = await client.page(ConfigMap, { namespace })
    const names: string[] = []
    const watching = (async () => {
      for await (const event of client.watch(ConfigMap, { namespace, resourceVersion }))
        if (event.type !== 'BOOKMARK') names.push(event.object.metadata.name)
    })()
    await rig.client.create(ConfigMap, { metadata: { name: 'seen', namespace } })
    await rig.until('an event', () => names.includes('seen'))
    line.cut()
    await expect(watching).rejects.toThrow()
  })

  it('has samples that the server takes', async () => {
    const namespace = await newNamespace()
    const strict = { fieldValidation: 'Strict' } as const
    const spec = sampleLifecycle({ backup: { verify: verifyOf('backup') } })
    await rig.client.create(Lifecycle, { metadata: { name: 'sample', namespace }, spec }, strict)
    const made = sampleApp({ namespace, name: app, lifecycle: 'sample' }, { desired: { state: 'Running' } })
    expect((await rig.client.apply(StatefulApp, made, strict)).spec).toMatchObject(made.spec)
  })

  it('has a pod of a DaemonSet on each node, and one less while a node is gone', async () => {
    const namespace = await newNamespace()
    await rig.client.create(DaemonSet, { metadata: { name: 'plain', namespace }, spec: plain })
    const pods = await rig.until('two pods', () => rig.pods(namespace).length === 2 && rig.pods(namespace))
    expect(new Set(pods.map(({ node }) => node)).size).toBe(2)
    const node = rig.nodes.node('node-2')
    await node.remove({ pods: true })
    await rig.until('one pod', async () => (await rig.client.list(Pod, { namespace })).length === 1)
    expect(rig.pods(namespace).map(one => one.node)).toEqual(['node-1'])
    await node.start()
    await rig.until('two pods again', () => rig.pods(namespace).length === 2)
  })

  it('has the other controllers that apps depend on: Deployments, disruption budgets, garbage collection', async () => {
    const namespace = await newNamespace()
    const { metadata } = await rig.client.create(Deployment, {
      metadata: { name: 'plain', namespace },
      spec: { ...plain, replicas: 2 },
    })
    await rig.client.create(PodDisruptionBudget, {
      metadata: { name: 'plain', namespace },
      spec: { selector: plain.selector, minAvailable: 1 },
    })
    await rig.until('a budget of one', async () => {
      const { status } = await rig.client.get(PodDisruptionBudget, { namespace, name: 'plain' })
      return status?.currentHealthy === 2 && status.disruptionsAllowed === 1
    })
    const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'plain', uid: metadata.uid }
    const owned = { namespace, name: 'owned' }
    await rig.client.create(ConfigMap, { metadata: { ...owned, ownerReferences: [owner] } })
    await rig.client.delete(Deployment, { namespace, name: 'plain' })
    await rig.until('nothing of it', async () => {
      const isLeft = await rig.client.find(ConfigMap, owned)
      return !isLeft && rig.pods(namespace).length === 0
    })
  })
})

describe.skipIf(rigMissing)('a rig whose process is killed', { timeout: 120_000 }, () => {
  it('leaves no process and no folder', async () => {
    const file = (name: string) => JSON.stringify(join(import.meta.dirname, '../fixtures/app', name))
    const script = `
      const { startRig } = await import(${file('rig.ts')})
      const { sampleStatefulSet } = await import(${file('samples.ts')})
      const { StatefulSet } = await import(${JSON.stringify(join(import.meta.dirname, '../../controller/kube/kinds.ts'))})
      const rig = await startRig()
      const namespace = await rig.namespace()
      await rig.client.create(StatefulSet, sampleStatefulSet({ namespace, name: 'orders', lifecycle: 'none', replicas: 1 }))
      const pod = await rig.until('an agent', () => rig.pods(namespace).find(pod => pod.births > 0))
      console.log(JSON.stringify({ pod: pod.folder, server: rig.server.dir }))
    `
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [text] = await Promise.race([once(child.stdout.setEncoding('utf8'), 'data'), once(child, 'exit')])
    const told = JSON.parse(text)
    expect(processesOf(told.pod).length).toBeGreaterThan(0)
    child.kill('SIGKILL')
    await vi.waitFor(
      () => {
        expect(processesOf(told.pod)).toEqual([])
        expect(processesOf(told.server)).toEqual([])
        expect([existsSync(told.pod), existsSync(told.server)]).toEqual([false, false])
      },
      { timeout: 30_000, interval: 50 },
    )
  })
})
