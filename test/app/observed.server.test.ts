/**
 * What is seen of an app that changes by itself, what a person reads of it, and what it costs to look.
 */
import { describe, expect, it, onTestFinished } from 'vitest'
import { unreachableGrace } from '../../controller/app/decide/observe.ts'
import { StatefulApp } from '../../controller/app/kinds.ts'
import { StatefulSet } from '../../controller/kube/kinds.ts'
import { writes } from '../fixtures/app/api-requests.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import { sampleApp, sampleStatefulSet } from '../fixtures/app/samples.ts'
import { conditionOf, is, lifecycle, name, setStage } from '../fixtures/app/stage.ts'
import { kubectl, kubectlMissing, needsKubectl } from '../fixtures/kubectl.ts'

const claimedBy = 'shipmate.dev/claimed-by'
const running = { desired: { state: 'Running' } }

describe.skipIf(rigMissing)('an app as it is observed', { timeout: 180_000 }, () => {
  const stage = setStage()

  /** Every state of the app from now on, until the test ends. */
  function follow(namespace: string): string[] {
    const seen: string[] = []
    const ending = new AbortController()
    const watching = (async () => {
      while (!ending.signal.aborted) {
        const { status } = (await stage.rig.client.find(StatefulApp, { namespace, name })) ?? {}
        if (status?.state !== undefined && status.state !== seen.at(-1)) seen.push(status.state)
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    })()
    onTestFinished(async () => {
      ending.abort()
      await watching
    })
    return seen
  }

  it('is not touched without a wish', async () => {
    const since = stage.line.requests.length
    const namespace = await stage.deploy()
    const before = await stage.rig.client.get(StatefulSet, { namespace, name })
    const status = await stage.ready(namespace)
    expect(conditionOf(status, 'AtDesiredState')?.status).toBe('Unknown')
    stage.pod(namespace).accept(false)
    await stage.until(namespace, 'Start', ({ state }) => state === 'Start')
    stage.pod(namespace).accept(true)
    await stage.ready(namespace)
    const written = stage.line.requests
      .slice(since)
      .filter(one => writes.includes(one.verb as never) && one.namespace === namespace)
      .map(({ resource, subresource }) => [resource, subresource].filter(Boolean).join('/'))
    expect(new Set(written)).toEqual(
      new Set(['secrets', 'configmaps', 'lifecycles/status', 'statefulapps', 'statefulapps/status', 'events']),
    )
    const after = await stage.rig.client.get(StatefulSet, { namespace, name })
    expect([after.spec, after.metadata.annotations]).toEqual([before.spec, before.metadata.annotations])
  })

  it('is seen to crash, with a condition and an event, and to be well again', async () => {
    const namespace = await stage.deploy({ spec: running })
    await stage.ready(namespace)
    const pod = stage.pod(namespace)
    pod.hold('application')
    await pod.killContainer('application')
    const down = await stage.until(namespace, 'Start', ({ state }) => state === 'Start')
    expect(is(down, 'Ready')).toBe(false)
    expect(conditionOf(down, 'AtDesiredState')).toMatchObject({ status: 'False', reason: 'Start' })
    expect(down.waitingFor).toMatch(/^Running, when probes\.accepting\.ok holds in its pod, since /)
    await stage.rig.until('an event', async () => (await stage.reasons(namespace)).includes('StateChanged'))
    pod.release('application')
    const well = await stage.ready(namespace)
    expect(conditionOf(well, 'AtDesiredState')).toMatchObject({ status: 'True', reason: 'Running' })
    expect(well.path).toMatch(/Running(<>|>)Start.*Running|\(.*Running.*\)/)
  })

  it('is Unknown when its sidecar cannot be reached, but not before the grace period is over', async () => {
    const namespace = await stage.deploy({ spec: running })
    await stage.ready(namespace)
    const pod = stage.pod(namespace)
    const { network } = pod
    if (!network) throw new Error('there is no network')
    const links = network.accepted
    network.reset()
    await stage.rig.until('another connection', () => network.accepted > links)
    // What comes over it shows that it is in use.
    pod.accept(false)
    await stage.until(namespace, 'Start', ({ state }) => state === 'Start')
    pod.accept(true)
    await stage.ready(namespace)
    const seen = follow(namespace)
    const cutAt = performance.now()
    network.set('cut')
    const lost = await stage.until(namespace, 'Unknown', ({ state }) => state === 'Unknown')
    // Ends are told to the second, and timers may be a bit early.
    expect(performance.now() - cutAt).toBeGreaterThan(unreachableGrace - 1500)
    expect(lost.reason).toBe('Unreachable')
    expect(conditionOf(lost, 'SidecarsReachable')).toMatchObject({ status: 'False', reason: 'Unreachable' })
    expect(is(lost, 'Ready')).toBe(false)
    network.set('open')
    const found = await stage.ready(namespace)
    expect(is(found, 'SidecarsReachable')).toBe(true)
    await stage.rig.until('all of it to be seen', () => seen.at(-1) === 'Running')
    expect(seen).toEqual(['Running', 'Unknown', 'Running'])
  })

  it('has one state for all its pods, also while one is replaced', async () => {
    const namespace = await stage.deploy({ spec: running, workload: { replicas: 3 } })
    await stage.ready(namespace)
    const old = stage.pod(namespace, 1)
    old.accept(false)
    const half = await stage.until(namespace, 'Start', ({ state }) => state === 'Start')
    expect(half.pods).toMatchObject([{ state: 'Running' }, { state: 'Start' }, { state: 'Running' }])
    await stage.change(namespace, { quorum: 2 })
    await stage.ready(namespace)
    await stage.change(namespace, { quorum: null })
    await stage.until(namespace, 'Start again', ({ state }) => state === 'Start')
    await stage.rig.replace(old)
    const replaced = await stage.ready(namespace)
    expect(replaced.pods?.map(({ name }) => name)).toEqual(['orders-0', 'orders-1', 'orders-2'])
    expect(replaced.pods?.[1]?.uid).not.toBe(old.uid)
  })

  it('leaves a workload to the app that has claimed it, and takes it over when that app is no more', async () => {
    const namespace = await stage.deploy({ spec: running })
    await stage.ready(namespace)
    const workload = { apiVersion: 'apps/v1', kind: 'StatefulSet', name }
    const other = { ...sampleApp({ namespace, name: 'second', lifecycle }, { ...running, workload }) }
    await stage.rig.client.create(StatefulApp, other as never)
    const second = await stage.until(namespace, 'Stalled', one => is(one, 'Stalled', 'Claimed'), 'second')
    expect(conditionOf(second, 'Stalled')?.message).toContain(`${namespace}/${name}`)
    await stage.rig.client.delete(StatefulApp, { namespace, name })
    await stage.gone(namespace)
    await stage.rig.until('the second to have it', async () => {
      const { metadata } = await stage.rig.client.get(StatefulSet, { namespace, name })
      return metadata.annotations?.[claimedBy]?.startsWith(`${namespace}/second `)
    })
    await stage.until(namespace, 'not stalled', one => !is(one, 'Stalled'), 'second')
  })

  it('takes over the claim of an app that is dead', async () => {
    const namespace = await stage.place()
    const { rig } = stage
    const set = sampleStatefulSet({ namespace, name, lifecycle, replicas: 1 })
    const annotations = { [claimedBy]: `${namespace}/former 1b4e28ba-2fa1-11d2-883f-0016d3cca427` }
    await rig.client.create(StatefulSet, { ...set, metadata: { ...set.metadata, annotations } })
    await rig.client.create(StatefulApp, sampleApp({ namespace, name, lifecycle }, running) as never)
    await stage.ready(namespace)
    const { metadata } = await rig.client.get(StatefulSet, { namespace, name })
    expect(metadata.annotations?.[claimedBy]).toMatch(new RegExp(`^${namespace}/${name} `))
  })

  it.skipIf(kubectlMissing)(
    `is read by a person as kubectl prints it, and waited for without being early${needsKubectl}`,
    async () => {
      const namespace = await stage.deploy({ spec: running })
      const { kubeconfig } = stage.rig.server
      const wait = () =>
        kubectl(kubeconfig, 'wait', '-n', namespace, `sapp/${name}`, '--for=condition=Ready', '--timeout=60s')
      await wait()
      expect((await stage.app(namespace)).status?.state).toBe('Running')
      stage.pod(namespace).hold('backup')
      await stage.wish(namespace, { state: 'Servicing', action: 'backup' })
      await stage.begun(namespace, 'backup')
      await stage.until(namespace, 'to say what it does', one => one.action === 'backup')
      const [head, row] = (await kubectl(kubeconfig, 'get', 'sapp', '-n', namespace)).trim().split('\n')
      expect(head?.split(/ {2,}/)).toEqual(['NAME', 'DESIRED', 'STATE', 'ACTION', 'READY', 'WAITING FOR', 'AGE'])
      expect(row?.split(/ {2,}/).slice(0, 5)).toEqual([name, 'Servicing (backup)', 'Servicing', 'backup', 'False'])
      expect(row?.split(/ {2,}/)[5]).toMatch(/^orders-0 to finish backup, since \S+ \S+, until \S+ \S+, then Running$/)
      const waited = wait()
      stage.pod(namespace).release('backup')
      await waited
      const { status } = await stage.app(namespace)
      expect(status).toMatchObject({ state: 'Running', wish: { outcome: 'Succeeded' } })
      expect(stage.rig.effects({ action: 'backup', at: 'end', uid: stage.pod(namespace).uid })).toHaveLength(1)
      // Asked anew, it is not the last Ready that counts.
      await stage.wish(namespace, { state: 'Servicing', action: 'backup', request: '2' })
      await wait().then(async () => {
        const { status, metadata } = await stage.app(namespace)
        if (status?.observedGeneration === metadata.generation) expect(status?.wish?.serial).toBeGreaterThan(2)
      })
      await stage.until(namespace, 'the second backup', one => one.wish?.outcome === 'Succeeded' && is(one, 'Ready'))
    },
  )

  it('costs no request while nothing happens', async () => {
    const namespace = await stage.deploy({ spec: running })
    await stage.ready(namespace)
    // Events are told in the background, and a series of them is closed later.
    const quiet = () =>
      stage.line.requests.filter(({ verb, resource }) => verb !== 'watch' && !['leases', 'events'].includes(resource))
    const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
    for (let before = -1; quiet().length !== before; await pause(2000)) before = quiet().length
    const since = quiet().length
    await pause(10_000)
    expect(quiet().slice(since)).toEqual([])
    expect(await stage.ready(namespace)).toMatchObject({ state: 'Running' })
  })
})
