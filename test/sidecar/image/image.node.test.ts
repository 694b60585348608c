/**
 * The sidecar's image on a real node, as a native sidecar under restricted pod security: it runs actions, survives deaths, and a pod ends only after its preStop.
 */
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { exec } from '../../../controller/kube/exec.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { type Cluster, useCluster } from '../../fixtures/pods.ts'
import { actions, endsAfterPreStop, goesOnWithoutAgent, shell } from './deaths.ts'
import { describeOnNode, longest, restricted, restrictedNamespace, type SidecarPod, type SidecarPods } from './pod.ts'

const forEver = 'while :; do sleep 1; done'
const lifecycle: LifecycleSpec = {
  states: [
    { name: 'Running', when: 'probes.up.ok', next: ['End'] },
    { name: 'End', verb: 'Delete' },
  ],
  probes: [{ name: 'up', exec: { command: ['true'] }, every: '1s' }],
  preStop: 'stop',
  actions: [
    { name: 'greet', ...shell('echo "{\\"result\\":{\\"uid\\":$(id -u)}}"') },
    ...actions,
    { name: 'unverified', shared: true, ...shell(forEver) },
    {
      name: 'applied',
      shared: true,
      ...shell(`touch /work/applied; ${forEver}`),
      verify: shell('test -e /work/applied'),
    },
    { name: 'unapplied', shared: true, ...shell(forEver), verify: shell('test -e /work/never') },
  ],
}

describeOnNode("the sidecar's image", kubeconfig => {
  let pods: SidecarPods
  let pod: SidecarPod
  beforeAll(async () => {
    pods = await restrictedNamespace(kubeconfig, lifecycle)
    pod = await pods.start('app')
  }, longest)
  afterAll(() => pods?.[Symbol.asyncDispose]())

  it('runs as a native sidecar, not as root, with a read-only root and without capabilities', async () => {
    expect(await pod.exec('sidecar', ['id', '-u'])).toBe('65532\n')
    const status = await pod.exec('sidecar', ['cat', '/proc/1/status'])
    expect(status).toMatch(/^Name:\tshipmate-init$/m)
    for (const set of ['CapEff', 'CapPrm', 'CapBnd']) expect(status).toMatch(new RegExp(`^${set}:\\t0+$`, 'm'))
    expect(status).toMatch(/^NoNewPrivs:\t1$/m)
    expect(status).toMatch(/^Seccomp:\t2$/m)
    await expect(pod.exec('sidecar', ['touch', '/opt/shipmate/x'])).rejects.toThrow('Read-only file system')
  })

  it('observes the pod that it is in', async () => {
    await vi.waitUntil(async () => (await pod.state()).state === 'Running', { timeout: 30_000 })
    expect(await pod.state()).toMatchObject({ pod: { name: 'app', namespace: pods.cluster.namespace } })
  })

  it('runs an action, and its result is seen', async () => {
    await pod.ask('PUT', '/v1/runs/greet', { action: 'greet' })
    expect(await pod.ended('greet')).toMatchObject({ phase: 'Succeeded', exitCode: 0, result: { uid: 65532 } })
  })

  it('goes on with a run when its agent is killed, and the run ends once', () => goesOnWithoutAgent(pod))

  it('does not know how a run ended when its container is killed, but what verify says', async () => {
    for (const action of ['unverified', 'applied', 'unapplied']) await pod.begin(action, action)
    await vi.waitFor(() => pod.exec('app', ['test', '-e', '/work/applied']), { timeout: 30_000 })
    await killFirst(kubeconfig, await pod.containerId())
    await vi.waitUntil(async () => (await pod.restarts()) === 1, { timeout: 60_000 })

    expect(await pod.ended('unverified')).toMatchObject({ phase: 'Unknown' })
    // Unknown at first: verify may take its time.
    const settled = (id: string, as: object) =>
      vi.waitFor(async () => expect(await pod.run(id)).toMatchObject(as), { timeout: 30_000 })
    await settled('applied', { phase: 'Succeeded' })
    await settled('unapplied', { phase: 'Failed', error: { code: 'NotApplied' } })
    expect(await pod.run('unverified')).toMatchObject({ phase: 'Unknown' })
    expect(await pod.run('wait')).toMatchObject({ phase: 'Succeeded' })
  })

  it('holds the application back from its end until the preStop action is done', async () => {
    const sidecar = pod.printed('sidecar')
    await endsAfterPreStop(pod)
    const said = (await sidecar).map(line => JSON.parse(line))
    expect(said).toContainEqual(expect.objectContaining({ msg: 'preStop: its run has ended', phase: 'Succeeded' }))
    expect(said.at(-1)).toMatchObject({ msg: 'drained' })
  })

  it('runs under a uid that nobody has heard of', async () => {
    const other = await pods.start('other', {
      sidecar: { securityContext: { ...restricted, runAsUser: 1000720000 } },
    })
    await other.ask('PUT', '/v1/runs/greet', { action: 'greet' })
    expect(await other.ended('greet')).toMatchObject({ phase: 'Succeeded', result: { uid: 1000720000 } })
  })
})

/** SIGKILL to a container's PID 1, which nobody inside can send. */
async function killFirst(kubeconfig: string, containerId: string): Promise<void> {
  await using cluster: Cluster = await useCluster(kubeconfig)
  const pod = await cluster.run('killer', { main: { securityContext: { privileged: true } } }, { hostPID: true })
  const script =
    'for p in /proc/[0-9]*; do grep -qs "$1" $p/cgroup && grep -qsE "^NSpid:.*[[:space:]]1$" $p/status && kill -9 $(basename $p); done; true'
  await exec(cluster.source, pod, { command: ['sh', '-c', script, 'sh', containerId] })
}
