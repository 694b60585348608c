// What stands on the server before the controller looks at it: a Lifecycle, and for each app a StatefulApp, its StatefulSet and its
// pod. Nothing runs the pods: their status is written here, as a kubelet would, and simulated sidecars answer at their addresses.

import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import { type Api, eachOf, type Meta } from '../api.ts'
import type { SimulatedPod } from './sidecar.ts'

export const namespace = 'bench'
export const ownNamespace = 'shipmate-system'
const lifecycle = 'sample'
/** How many of the bench's own requests go at once. */
const atOnce = 16
const nodes = 10

const apps = '/apis/apps/v1/namespaces/bench/statefulsets'
const pods = '/api/v1/namespaces/bench/pods'
const own = '/apis/shipmate.dev/v1alpha1/namespaces/bench'
export const appsPath = `${own}/statefulapps`
export const nameOf = (i: number) => `app-${String(i).padStart(5, '0')}`
/** Away from 127.0, which machines use for themselves. */
const addressOf = (i: number) => `127.${64 + Math.floor(i / 62_500)}.${Math.floor(i / 250) % 250}.${(i % 250) + 1}`

const spec: LifecycleSpec = {
  states: [
    { name: 'Start', verb: 'Create', next: ['Running', 'Stopping'] },
    { name: 'Running', when: 'probes.accepting.ok', next: ['Servicing', 'Stopping'] },
    { name: 'Servicing', actions: ['backup', 'reload'], next: ['Running'] },
    { name: 'Stopping', actions: ['stop'], next: ['End'] },
    { name: 'End', verb: 'Delete', next: ['Start'] },
  ],
  preStop: 'stop',
  probes: [{ name: 'accepting', exec: { command: ['true'] }, every: '2s' }],
  actions: ['backup', 'reload', 'stop'].map(name => ({ name, exec: { command: ['true'] }, timeout: '1m' })),
}

/** All but the pods. */
export async function createApps(api: Api, n: number): Promise<void> {
  for (const name of [namespace, ownNamespace]) await api.request('POST', '/api/v1/namespaces', { metadata: { name } })
  for (let i = 0; i < nodes; i++) {
    await api.request('POST', '/api/v1/nodes', { metadata: { name: `node-${i}` } })
    const nodeInfo = { bootID: `boot-${i}`, machineID: '', systemUUID: '', kernelVersion: '', osImage: '' }
    const more = { containerRuntimeVersion: '', kubeletVersion: '', kubeProxyVersion: '', operatingSystem: '' }
    const status = { nodeInfo: { ...nodeInfo, ...more, architecture: '' } }
    await api.request('PATCH', `/api/v1/nodes/node-${i}/status`, { status })
  }
  const kind = { apiVersion: 'shipmate.dev/v1alpha1' }
  await api.request('POST', `${own}/lifecycles`, { ...kind, kind: 'Lifecycle', metadata: { name: lifecycle }, spec })
  await eachOf(Array(n).keys(), atOnce, async i => {
    const name = nameOf(i)
    const workload = { apiVersion: 'apps/v1', kind: 'StatefulSet', name }
    await api.request('POST', apps, statefulSet(name))
    const status = { observedGeneration: 1, replicas: 1, updatedReplicas: 1, currentRevision: '1', updateRevision: '1' }
    await api.request('PATCH', `${apps}/${name}/status`, { status })
    await api.request('POST', appsPath, {
      ...{ ...kind, kind: 'StatefulApp', metadata: { name } },
      spec: { lifecycle, workload },
    })
  })
}

/** Pods that no node has given an address yet. */
export async function createPods(api: Api, n: number, port: number): Promise<SimulatedPod[]> {
  const { items } = await api.request<{ items: { metadata: Meta }[] }>('GET', apps)
  const owners = new Map(items.map(({ metadata }) => [metadata.name, metadata.uid ?? '']))
  const made: SimulatedPod[] = []
  await eachOf(Array(n).keys(), atOnce, async i => {
    const app = nameOf(i)
    const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: app, uid: owners.get(app), controller: true }
    const { metadata } = await api.request<{ metadata: Meta }>('POST', pods, {
      metadata: {
        name: `${app}-0`,
        labels: { app, 'statefulset.kubernetes.io/pod-name': `${app}-0` },
        annotations: { 'shipmate.dev/api-port': String(port) },
        ownerReferences: [owner],
      },
      spec: { nodeName: `node-${i % nodes}`, ...podSpec(app) },
    })
    made.push({ namespace, app, name: metadata.name, uid: metadata.uid ?? '', ip: addressOf(i) })
  })
  return made
}

/** Every pod has its address, runs and is ready. */
export async function startPods(api: Api, all: SimulatedPod[]): Promise<void> {
  const startedAt = new Date().toISOString()
  const container = (name: string) => ({
    ...{ name, image: name, imageID: '', ready: true, restartCount: 0, started: true },
    state: { running: { startedAt } },
  })
  const conditions = ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(type => ({ type, status: 'True' }))
  await eachOf(all, atOnce, ({ name, ip }) =>
    api.request('PATCH', `${pods}/${name}/status`, {
      status: {
        ...{ phase: 'Running', podIP: ip, conditions, startTime: startedAt },
        initContainerStatuses: [container('shipmate-sidecar')],
        containerStatuses: [container('application')],
      },
    }),
  )
}

/** What the pods' sidecars say of their configuration; undefined until the controller has published it. */
export async function publishedHash(api: Api): Promise<string | undefined> {
  const { status } = await api.request<{ status?: { hash?: string } }>('GET', `${own}/lifecycles/${lifecycle}`)
  return status?.hash
}

export async function countSecrets(api: Api): Promise<number> {
  const path = `/api/v1/namespaces/${namespace}/secrets?labelSelector=app.kubernetes.io/managed-by=shipmate&limit=1`
  const { items, metadata } = await api.request<{ items: []; metadata: { remainingItemCount?: number } }>('GET', path)
  // The server does not count what is left where there is a selector: then all are read.
  if (metadata.remainingItemCount !== undefined || items.length === 0)
    return items.length + (metadata.remainingItemCount ?? 0)
  return (await api.request<{ items: [] }>('GET', path.replace('&limit=1', ''))).items.length
}

function statefulSet(name: string) {
  return {
    metadata: { name },
    spec: {
      ...{ serviceName: name, replicas: 1, selector: { matchLabels: { app: name } } },
      template: { metadata: { labels: { app: name } }, spec: podSpec(name) },
    },
  }
}

function podSpec(app: string) {
  const optional = true
  return {
    initContainers: [
      {
        name: 'shipmate-sidecar',
        image: 'example.com/sidecar:1',
        restartPolicy: 'Always',
        args: ['--config', '/etc/shipmate/lifecycle/lifecycle.yaml', '--state-dir', '/var/lib/shipmate/state'],
        volumeMounts: [
          { name: 'state', mountPath: '/var/lib/shipmate' },
          { name: 'lifecycle', mountPath: '/etc/shipmate/lifecycle', readOnly: true },
          { name: 'tls', mountPath: '/etc/shipmate/tls', readOnly: true },
        ],
      },
    ],
    containers: [
      {
        name: 'application',
        image: 'example.com/application:1',
        resources: { requests: { cpu: '100m', memory: '64Mi' } },
        lifecycle: { preStop: { httpGet: { port: 7080, path: '/prestop' } } },
      },
    ],
    volumes: [
      { name: 'state', emptyDir: {} },
      { name: 'lifecycle', configMap: { name: `shipmate-lifecycle-${lifecycle}`, optional } },
      { name: 'tls', secret: { secretName: `shipmate-tls-${app}`, optional } },
    ],
  }
}
