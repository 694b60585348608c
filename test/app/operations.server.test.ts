/**
 * Operations that people make: whose turn it is, how they are ended, whom they are asked of, and what they may be told.
 */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Operation, StatefulApp } from '../../controller/app/kinds.ts'
import { Secret, StatefulSet } from '../../controller/kube/kinds.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import { rigMissing } from '../fixtures/app/control-plane.ts'
import type { RigPod } from '../fixtures/app/pod.ts'
import { sampleLifecycle } from '../fixtures/app/samples.ts'
import { conditionOf, is, name, setStage } from '../fixtures/app/stage.ts'
import { kubectl, kubectlMissing, needsKubectl } from '../fixtures/kubectl.ts'

/** With actions that no state lists, and pods that have a role. */
function lifecycle(): LifecycleSpec {
  const { probes = [], actions = [], ...rest } = sampleLifecycle({ backup: { retries: 1 } })
  const plain = { exec: { command: ['appctl', 'check'] }, timeout: '1m' as const }
  const proof = `printf '{"result":"%s"}\\n' "$(sha256sum <"$SHIPMATE_PARAM_FILE_PASSWORD" | cut -c1-64)"`
  return {
    ...rest,
    probes: [...probes, { name: 'role', exec: { command: ['role'] }, every: '100ms' }],
    actions: [
      ...actions,
      { ...plain, name: 'check' },
      { ...plain, name: 'in-turn', order: 'serial' },
      { ...plain, name: 'with-care', order: 'primaryLast' },
      {
        name: 'unlock',
        exec: { command: ['sh', '-c', proof] },
        params: { password: { type: 'string', writeOnly: true } },
      },
    ],
  }
}

function become(pod: RigPod, role: string): void {
  writeFileSync(join(pod.folder, 'bin/role'), `#!/bin/sh\necho ${role}\n`, { mode: 0o755 })
}

describe.skipIf(rigMissing)('operations', { timeout: 180_000 }, () => {
  const stage = setStage()
  const deploy = async (options: Parameters<typeof stage.deploy>[0] = {}) => {
    const namespace = await stage.deploy({ lifecycle: lifecycle(), ...options })
    await stage.ready(namespace)
    return namespace
  }
  const fenceOf = async (namespace: string, operation: string) =>
    (await stage.operation(namespace, operation)).status?.runs?.[0]?.fence ?? 0
  const order = async (namespace: string, names: readonly string[]) => {
    const fences = await Promise.all(names.map(async one => ({ one, fence: await fenceOf(namespace, one) })))
    return fences.sort((a, b) => a.fence - b.fence).map(({ one }) => one)
  }

  it('are carried out one at a time: by priority, then by age', async () => {
    const namespace = await deploy()
    stage.pod(namespace).hold('backup')
    await stage.operate(namespace, 'first', { action: 'backup' })
    await stage.begun(namespace, 'backup')
    await stage.operate(namespace, 'z-older', { action: 'backup' })
    // Ages are told by the second.
    const after = Date.now() + 1001
    await stage.rig.until('the next second', () => Date.now() > after)
    await stage.operate(namespace, 'a-newer', { action: 'backup' })
    await stage.operate(namespace, 'urgent', { action: 'backup', priority: 5 })
    await stage.operated(namespace, 'urgent', 'Queued', ({ phase }) => phase === 'Queued')
    expect(stage.count(namespace, 'backup')).toBe(1)
    stage.pod(namespace).release('backup')
    const all = ['first', 'urgent', 'z-older', 'a-newer']
    for (const one of all) await stage.ended(namespace, one)
    expect(await order(namespace, all)).toEqual(all)
    expect(stage.count(namespace, 'backup')).toBe(4)
  })

  it('that wait for a state, or are suspended, hold nobody up', async () => {
    const namespace = await deploy()
    stage.pod(namespace).accept(false)
    await stage.until(namespace, 'Start', ({ state }) => state === 'Start')
    await stage.operate(namespace, 'needs-running', { action: 'backup', priority: 9 })
    await stage.operate(namespace, 'suspended', { action: 'check', priority: 9, suspend: true })
    await stage.operate(namespace, 'any-state', { action: 'check' })
    await stage.ended(namespace, 'any-state')
    for (const one of ['needs-running', 'suspended']) {
      const { status } = await stage.operation(namespace, one)
      expect([status?.phase, status?.targets]).toEqual(['Queued', undefined])
    }
    stage.pod(namespace).accept(true)
    await stage.ended(namespace, 'needs-running')
    await stage.changeOperation(namespace, 'suspended', { suspend: false })
    await stage.ended(namespace, 'suspended')
  })

  it('are cancelled while they run, and before they have begun', async () => {
    const namespace = await deploy()
    stage.pod(namespace).hold('backup')
    await stage.operate(namespace, 'runs', { action: 'backup' })
    await stage.begun(namespace, 'backup')
    await stage.operate(namespace, 'waits', { action: 'reconfigure', params: { value: 'x' } })
    await stage.changeOperation(namespace, 'waits', { cancel: true })
    const never = await stage.ended(namespace, 'waits', 'Cancelled')
    expect(never.runs).toBeUndefined()
    await stage.changeOperation(namespace, 'runs', { cancel: true })
    const stopped = await stage.ended(namespace, 'runs', 'Cancelled')
    expect(stopped.runs).toMatchObject([{ phase: 'Cancelled' }])
    await stage.ready(namespace)
    expect(stage.count(namespace, 'reconfigure')).toBe(0)
    expect(stage.rig.effects({ action: 'backup', at: 'end', uid: stage.pod(namespace).uid })).toEqual([])
  })

  it('fail when their deadline passes, begun or not', async () => {
    const namespace = await deploy()
    stage.pod(namespace).hold('backup')
    await stage.operate(namespace, 'runs', { action: 'backup', deadline: '3s' })
    await stage.begun(namespace, 'backup')
    await stage.operate(namespace, 'waits', { action: 'check', suspend: true, deadline: '1s' })
    expect(await stage.ended(namespace, 'waits', 'Failed')).toMatchObject({ reason: 'DeadlineExceeded' })
    const late = await stage.ended(namespace, 'runs', 'Failed')
    expect(late).toMatchObject({ reason: 'DeadlineExceeded', runs: [{ phase: 'Cancelled' }] })
    expect(stage.count(namespace, 'check')).toBe(0)
  })

  it('go when their time is over', async () => {
    const namespace = await deploy()
    await stage.operate(namespace, 'brief', { action: 'check', ttlSecondsAfterFinished: 1 })
    await stage.rig.until(
      'it to be gone',
      async () => !(await stage.rig.client.find(Operation, { namespace, name: 'brief' })),
    )
    expect(stage.count(namespace, 'check')).toBe(1)
  })

  it('that failed are tried again as often as the action permits', async () => {
    const namespace = await deploy()
    stage.pod(namespace).fail('backup', 3)
    await stage.operate(namespace, 'mended', { action: 'backup' })
    await stage.operated(namespace, 'mended', 'a failure', ({ runs }) => runs?.[0]?.phase === 'Failed')
    stage.pod(namespace).fail('backup', 0)
    const mended = await stage.ended(namespace, 'mended')
    expect(mended.runs).toMatchObject([
      { attempt: 1, phase: 'Failed', exitCode: 3 },
      { attempt: 2, phase: 'Succeeded' },
    ])
    stage.pod(namespace).fail('backup', 3)
    await stage.operate(namespace, 'hopeless', { action: 'backup' })
    const hopeless = await stage.ended(namespace, 'hopeless', 'Failed')
    expect(hopeless.runs?.map(({ attempt, exitCode }) => [attempt, exitCode])).toEqual([
      [1, 3],
      [2, 3],
    ])
    expect(await stage.told(namespace, 'OperationFailed')).toContain('hopeless')
  })

  it('whose outcome nobody saw wait for a person, whose word is recorded', async () => {
    const namespace = await deploy()
    const pod = stage.pod(namespace)
    pod.hold('backup')
    await stage.operate(namespace, 'lost', { action: 'backup', ttlSecondsAfterFinished: 0 })
    await stage.begun(namespace, 'backup')
    await pod.killContainer()
    const stalled = await stage.until(namespace, 'Stalled', one => is(one, 'Stalled', 'OutcomeUnknown'))
    expect(conditionOf(stalled, 'Stalled')?.message).toContain('spec.settle')
    const { status } = await stage.operation(namespace, 'lost')
    expect(status).toMatchObject({ phase: 'Unknown', runs: [{ phase: 'Unknown' }] })
    await stage.change(namespace, { paused: true })
    await stage.changeOperation(namespace, 'lost', {
      ttlSecondsAfterFinished: 600,
      settle: [{ run: status?.runs?.[0]?.id, outcome: 'Succeeded', reason: 'the file is there, says Ada' }],
    })
    expect((await stage.ended(namespace, 'lost')).runs).toMatchObject([{ phase: 'Succeeded' }])
    expect(await stage.told(namespace, 'RunSettled')).toContain('says Ada')
    await stage.change(namespace, { paused: false })
    await stage.ready(namespace)
    expect(stage.count(namespace, 'backup')).toBe(1)
  })

  it('give way to a wish that preempts them', async () => {
    const namespace = await deploy()
    stage.pod(namespace).hold('backup')
    await stage.operate(namespace, 'long', { action: 'backup' })
    await stage.begun(namespace, 'backup')
    await stage.wish(namespace, { state: 'Servicing', action: 'reconfigure', params: { value: 'x' }, preempt: true })
    await stage.ended(namespace, 'long', 'Cancelled')
    await stage.until(namespace, 'reconfigured', one => one.wish?.outcome === 'Succeeded' && is(one, 'Ready'))
    expect(await stage.told(namespace, 'Preempted')).toContain('long')
    expect(stage.count(namespace, 'reconfigure')).toBe(1)
  })

  it('are not begun while the app is paused; what runs goes on, and cancel is heeded', async () => {
    const namespace = await deploy({ spec: { desired: { state: 'Running' } } })
    stage.pod(namespace).hold('backup')
    await stage.operate(namespace, 'runs', { action: 'backup' })
    await stage.begun(namespace, 'backup')
    await stage.change(namespace, { paused: true, desired: { state: 'End' } })
    await stage.operate(namespace, 'next', { action: 'check' })
    stage.pod(namespace).release('backup')
    await stage.ended(namespace, 'runs')
    await stage.operate(namespace, 'cancelled', { action: 'check', cancel: true })
    await stage.ended(namespace, 'cancelled', 'Cancelled')
    const paused = await stage.until(namespace, 'to say so', one => one.waitingFor?.startsWith('paused'))
    expect(is(paused, 'Ready')).toBe(false)
    expect(stage.count(namespace, 'check') + stage.count(namespace, 'stop')).toBe(0)
    expect((await stage.rig.client.get(StatefulSet, { namespace, name })).spec?.replicas).toBe(1)
    await stage.change(namespace, { paused: false, desired: { state: 'Running' } })
    await stage.ended(namespace, 'next')
  })

  it('are asked of those who are meant, in their order', async () => {
    const namespace = await deploy({ workload: { replicas: 3 } })
    const pods = [0, 1, 2].map(one => stage.pod(namespace, one))
    for (const pod of pods) become(pod, pod.name === 'orders-1' ? 'primary' : 'replica')
    await stage.until(namespace, 'roles', one => one.pods?.every(({ role }) => role !== undefined))
    const asked = async (operation: string, spec: object) => {
      await stage.operate(namespace, operation, spec)
      const { runs = [] } = await stage.ended(namespace, operation)
      return runs.toSorted((a, b) => a.fence - b.fence).map(({ pod }) => pod)
    }
    expect(await asked('all', { action: 'check' })).toEqual(['orders-0', 'orders-1', 'orders-2'])
    expect(await asked('one', { action: 'check', target: 'one' })).toEqual(['orders-0'])
    expect(await asked('primary', { action: 'check', target: 'primary' })).toEqual(['orders-1'])
    expect(await asked('replicas', { action: 'check', target: 'replicas' })).toEqual(['orders-0', 'orders-2'])
    expect(await asked('named', { action: 'check', target: 'orders-2' })).toEqual(['orders-2'])
    expect(await asked('serial', { action: 'in-turn' })).toEqual(['orders-0', 'orders-1', 'orders-2'])
    expect(await asked('careful', { action: 'with-care' })).toEqual(['orders-0', 'orders-2', 'orders-1'])
    for (const operation of ['serial', 'careful']) {
      const { runs = [] } = (await stage.operation(namespace, operation)).status ?? {}
      for (const [i, run] of runs.entries())
        expect(Date.parse(run.writtenAt)).toBeGreaterThanOrEqual(
          Date.parse(runs[i - 1]?.finishedAt?.slice(0, 19) ?? '1970') || 0,
        )
    }
    become(pods[2] as RigPod, 'primary')
    await stage.until(
      namespace,
      'two primaries',
      one => one.pods?.filter(({ role }) => role === 'primary').length === 2,
    )
    await stage.operate(namespace, 'torn', { action: 'check', target: 'primary' })
    const torn = await stage.until(namespace, 'Stalled', one => is(one, 'Stalled', 'SeveralPrimaries'))
    expect(conditionOf(torn, 'Stalled')?.message).toContain('orders-1 and orders-2')
    become(pods[1] as RigPod, 'replica')
    expect((await stage.ended(namespace, 'torn')).runs).toMatchObject([{ pod: 'orders-2' }])
    await stage.ready(namespace)
  })

  it.skipIf(kubectlMissing)(
    `get secrets from Secrets that are marked for it, and leave them nowhere${needsKubectl}`,
    async () => {
      const namespace = await deploy()
      const word = 'correct-horse-battery-staple'
      const password = { data: { password: Buffer.from(word).toString('base64') } }
      await stage.rig.client.create(Secret, { metadata: { name: 'vault', namespace }, ...password })
      const paramsFrom = [{ name: 'password', secretKeyRef: { name: 'vault', key: 'password' } }]
      await stage.operate(namespace, 'unlock', { action: 'unlock', paramsFrom })
      await stage.until(namespace, 'to say what is missing', one => one.waitingFor?.includes('shipmate.dev/params'))
      const labels = { 'shipmate.dev/params': 'true' }
      await stage.rig.client.patch(Secret, { namespace, name: 'vault' }, { merge: { metadata: { labels } } })
      const { runs } = await stage.ended(namespace, 'unlock')
      expect(runs).toMatchObject([{ phase: 'Succeeded', result: createHash('sha256').update(word).digest('hex') }])

      await stage.operate(namespace, 'openly', { action: 'unlock', params: { password: word } })
      const refused = await stage.ended(namespace, 'openly', 'Failed')
      expect(refused).toMatchObject({ reason: 'InvalidParams', message: expect.stringContaining('paramsFrom') })
      await stage.rig.client.delete(Operation, { namespace, name: 'openly' })
      await stage.rig.until(
        'it to be gone',
        async () => !(await stage.rig.client.find(Operation, { namespace, name: 'openly' })),
      )

      const { kubeconfig } = stage.rig.server
      const kinds = (await kubectl(kubeconfig, 'api-resources', '--verbs=list', '-o', 'name')).trim().split('\n')
      const lists = await Promise.all(
        kinds.map(kind => kubectl(kubeconfig, 'get', kind, '-A', '-o', 'json', '--show-managed-fields=false')),
      )
      type Item = { kind: string; metadata: { name: string } }
      const items = lists.flatMap(text => (JSON.parse(text) as { items: Item[] }).items)
      expect(items.length).toBeGreaterThan(20)
      const holds = (text: string) => text.includes(word) || text.includes(Buffer.from(word).toString('base64'))
      const holders = items.filter(one => holds(JSON.stringify(one))).map(one => `${one.kind} ${one.metadata.name}`)
      expect(holders).toEqual(['Secret vault'])
      expect(stage.controller.lines.filter(holds)).toEqual([])
      expect(stage.pod(namespace).said.filter(holds)).toEqual([])
    },
  )

  const wished = { state: 'Servicing', action: 'backup', request: 'counted' }
  it.each([
    ['a person', (namespace: string) => stage.operate(namespace, 'counted', { action: 'backup' })],
    ['a wish', (namespace: string) => stage.wish(namespace, wished)],
  ])('of %s cost at most eight writes on one pod, beside the gate, events and progress', async (_, ask) => {
    const namespace = await deploy()
    // With its first wish it claims its workload, once.
    await stage.wish(namespace, { state: 'Running' })
    await stage.rig.until('the workload to be claimed', async () => {
      const [workload] = await stage.rig.client.list(StatefulSet, { namespace })
      return workload?.metadata.annotations?.['shipmate.dev/claimed-by'] !== undefined
    })
    const since = stage.line.requests.length
    stage.pod(namespace).hold('backup')
    await ask(namespace)
    const { operation } = await stage.until(namespace, 'the run to be shown', one => one.pods?.[0]?.run !== undefined)
    const counted = operation?.name ?? ''
    stage.pod(namespace).release('backup')
    await stage.ended(namespace, counted)
    await stage.ready(namespace)
    await stage.rig.until(
      'it to be let go',
      async () => !(await stage.operation(namespace, counted)).metadata.finalizers?.length,
    )
    const writes = stage.line.requests
      .slice(since)
      .filter(one => ['create', 'update', 'patch', 'apply', 'delete'].includes(one.verb) && one.namespace === namespace)
      .filter(({ resource }) => resource !== 'poddisruptionbudgets' && resource !== 'events')
      .map(one => `${one.verb} ${one.resource} ${one.subresource}`)
    expect(writes.length, writes.join('\n')).toBeLessThanOrEqual(8)
  })

  it('of an app that is not there are told so', async () => {
    const namespace = await stage.place()
    await stage.operate(namespace, 'astray', { action: 'backup' })
    await stage.operated(namespace, 'astray', 'Stalled', one => is(one, 'Stalled', 'UnknownApp'))
    expect(await stage.rig.client.list(StatefulApp, { namespace })).toEqual([])
  })
})
