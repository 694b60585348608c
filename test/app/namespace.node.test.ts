/**
 * A namespace that is deleted in the middle of a run that would take minutes, on a cluster with a node: real pods, real sidecars in them. It is compared with one that has
 * the same pods and no app, and is deleted at the same moment.
 */
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { Lifecycle, Operation, StatefulApp } from '../../controller/app/kinds.ts'
import { type Access, connect } from '../../controller/kube/access.ts'
import { NotFound } from '../../controller/kube/errors.ts'
import { Namespace, Pod, StatefulSet } from '../../controller/kube/kinds.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import type { ApiLine } from '../fixtures/app/api-line.ts'
import { type RunningController, startController } from '../fixtures/app/controller.ts'
import { agentName } from '../fixtures/app/pod-spec.ts'
import { installOwnKinds } from '../fixtures/own-kinds.ts'
import { bundleOf, initWithFaults } from '../fixtures/sidecar-bundle.ts'

const kubeconfig = inject('kubeconfig')
const image = process.env['SHIPMATE_TEST_IMAGE'] ?? 'localhost/node:24'
const name = 'orders'
/** Of the pods, in seconds. */
const grace = 20
const state = '/var/lib/shipmate/state'

const lifecycle: LifecycleSpec = {
  states: [
    { name: 'Start', verb: 'Create', next: ['Running', 'Stopping'] },
    { name: 'Running', when: 'probes.accepting.ok', next: ['Servicing', 'Stopping'] },
    { name: 'Servicing', actions: ['backup'], next: ['Running'] },
    { name: 'Stopping', actions: ['stop'], next: ['End'] },
    { name: 'End', verb: 'Delete', next: ['Start'] },
  ],
  preStop: 'stop',
  probes: [{ name: 'accepting', exec: { command: ['true'] }, every: '1s' }],
  actions: [
    { name: 'backup', exec: { command: ['sleep', '600'] }, timeout: '1h', cancel: { signal: 'SIGTERM', grace: '1s' } },
    { name: 'stop', exec: { command: ['true'] }, timeout: '10s' },
  ],
}

/** With the agent of this tree, which the node has as it is this machine. */
function podSpec(agent: string, init: string) {
  const programs = dirname(dirname(agent))
  const own = (path: string) => path.replace(programs, '/opt/shipmate')
  const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
  const flags = [
    '--config',
    '/etc/shipmate/lifecycle/lifecycle.yaml',
    '--state-dir',
    state,
    '--tls-dir',
    '/etc/shipmate/tls',
  ]
  return {
    terminationGracePeriodSeconds: grace,
    initContainers: [
      {
        ...{ name: agentName, image, imagePullPolicy: 'Never', restartPolicy: 'Always' },
        command: [own(init), 'supervise', '--', 'node', own(agent), ...flags],
        env: [
          field('POD_NAME', 'metadata.name'),
          field('POD_NAMESPACE', 'metadata.namespace'),
          field('POD_UID', 'metadata.uid'),
          { name: 'SHIPMATE_LIFECYCLE', value: name },
          { name: 'SHIPMATE_INIT', value: own(init) },
        ],
        lifecycle: { preStop: { exec: { command: [own(init), 'prestop', '--state-dir', state] } } },
        volumeMounts: [
          { name: 'programs', mountPath: '/opt/shipmate', readOnly: true },
          { name: 'shipmate-state', mountPath: '/var/lib/shipmate' },
          { name: 'shipmate-lifecycle', mountPath: '/etc/shipmate/lifecycle', readOnly: true },
          { name: 'shipmate-tls', mountPath: '/etc/shipmate/tls', readOnly: true },
        ],
      },
    ],
    containers: [
      {
        ...{ name: 'application', image, imagePullPolicy: 'Never' },
        command: ['sh', '-c', 'trap exit TERM; sleep infinity & wait'],
        lifecycle: { preStop: { httpGet: { port: 7080, path: '/prestop' } } },
      },
    ],
    volumes: [
      { name: 'programs', hostPath: { path: programs, type: 'Directory' } },
      { name: 'shipmate-state', emptyDir: {} },
      { name: 'shipmate-lifecycle', configMap: { name: `shipmate-lifecycle-${name}`, optional: true } },
      { name: 'shipmate-tls', secret: { secretName: `shipmate-tls-${name}`, optional: true } },
    ],
  }
}

describe.skipIf(!kubeconfig)('a namespace that is deleted in the middle of a run', { timeout: 300_000 }, () => {
  let access: Access
  let controller: RunningController
  let spec: ReturnType<typeof podSpec>
  let ours: string
  let plain: string

  beforeAll(async () => {
    access = connect({ kubeconfig: { file: kubeconfig } })
    await installOwnKinds(access.client)
    const [agent, init] = await Promise.all([bundleOf(), initWithFaults()])
    if (init === undefined) throw new Error('shipmate-init cannot be compiled')
    spec = podSpec(agent, join(init))
    ours = await newNamespace('ours-')
    plain = await newNamespace('plain-')
    controller = await startController({ kubeconfig } as ApiLine, { namespaces: [ours], namespace: 'default' })
  }, 120_000)
  afterAll(async () => {
    for (const name of [ours, plain]) await access?.client.delete(Namespace, { name }).catch(unlessGone)
    await controller?.stop()
    await access?.close()
  }, 60_000)

  const newNamespace = async (generateName: string) =>
    (await access.client.create(Namespace, { metadata: { generateName } })).metadata.name
  const unlessGone = (error: unknown) => {
    if (!(error instanceof NotFound)) throw error
  }
  const deploy = (namespace: string) =>
    access.client.create(StatefulSet, {
      metadata: { name, namespace },
      spec: {
        ...{
          serviceName: name,
          replicas: 2,
          podManagementPolicy: 'Parallel',
          selector: { matchLabels: { app: name } },
        },
        template: { metadata: { labels: { app: name } }, spec },
      },
    } as never)
  const until = (look: () => Promise<void>) => vi.waitFor(look, { timeout: 120_000, interval: 200 })
  async function goneAfter(namespace: string, began: number): Promise<number> {
    await until(async () => expect(await access.client.find(Namespace, { name: namespace })).toBeUndefined())
    return (performance.now() - began) / 1000
  }

  it('is gone within the grace period of its pods, by the time of one without an app', async () => {
    const { client } = access
    await client.create(Lifecycle, { metadata: { name, namespace: ours }, spec: lifecycle as never })
    await client.create(StatefulApp, {
      metadata: { name, namespace: ours },
      spec: {
        lifecycle: name,
        workload: { apiVersion: 'apps/v1', kind: 'StatefulSet', name },
        desired: { state: 'Servicing', action: 'backup' },
        // What would keep it for longest, outside of a namespace that goes.
        deletion: { policy: 'WalkToEnd', deadline: '1h' },
      },
    } as never)
    await Promise.all([ours, plain].map(deploy))
    await until(async () => {
      const { status } = await client.get(StatefulApp, { namespace: ours, name })
      const [operation] = await client.list(Operation, { namespace: ours })
      expect({ state: status?.state, run: operation?.status?.runs?.[0]?.phase }, JSON.stringify(status)).toEqual({
        state: 'Servicing',
        run: 'Running',
      })
      const pods = await client.list(Pod, { namespace: plain })
      expect(pods.filter(({ status }) => status?.phase === 'Running')).toHaveLength(2)
    })

    const began = performance.now()
    await Promise.all([ours, plain].map(name => client.delete(Namespace, { name })))
    const [withApp, without] = await Promise.all([goneAfter(ours, began), goneAfter(plain, began)])
    // Whatever else the cluster has to do, it has to do for both; and where pods are left it looks again after half of their grace period and a second.
    expect(withApp - without).toBeLessThanOrEqual(grace + grace / 2 + 1)
  })
})
