/**
 * Pods with a sidecar as a cluster has them: a native sidecar beside an application, both under restricted pod security, the lifecycle from a ConfigMap, the
 * state in an emptyDir; and how a test asks such a sidecar.
 */
import { describe, inject, vi } from 'vitest'
import { exec } from '../../../controller/kube/exec.ts'
import { ConfigMap, Namespace, Pod } from '../../../controller/kube/kinds.ts'
import { logLines } from '../../../controller/kube/logs.ts'
import { forwardPort } from '../../../controller/kube/portforward.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import type { PodState, Run } from '../../../shared/protocol/schemas.ts'
import { type Cluster, useCluster } from '../../fixtures/pods.ts'

type Spec = NonNullable<Parameters<Cluster['create']>[2]>
type Container = NonNullable<Spec['initContainers']>[number]

/** The image of Dockerfile.sidecar, and one that has nothing but busybox, if the node has them. */
const { SHIPMATE_TEST_SIDECAR_IMAGE: sidecarImage, SHIPMATE_TEST_BUSYBOX_IMAGE: busyboxImage } = process.env

/** Why there is nothing to test, if so. */
const noImages =
  sidecarImage && busyboxImage
    ? undefined
    : 'set SHIPMATE_TEST_SIDECAR_IMAGE and SHIPMATE_TEST_BUSYBOX_IMAGE to images that the node has'
export const images = { sidecar: sidecarImage ?? '', busybox: busyboxImage ?? '' }

/** The image of Dockerfile.controller, if the node has it. */
export const controllerImage: string = process.env['SHIPMATE_TEST_CONTROLLER_IMAGE'] ?? ''
export const noControllerImage: string | undefined =
  noImages ?? (controllerImage === '' ? 'set SHIPMATE_TEST_CONTROLLER_IMAGE to an image that the node has' : undefined)

/** How long a step on a node may take, ms. */
export const longest = 180_000

/** Tests that need the images. Without them, or without a node, they are skipped, and the title says why. */
export function describeOnNode(
  title: string,
  tests: (kubeconfig: string) => void,
  missing: string | undefined = noImages,
): void {
  const kubeconfig = inject('kubeconfig')
  const skipped = missing ? ` (skipped: ${missing})` : ''
  describe.skipIf(!kubeconfig || missing)(`${title}${skipped}`, { timeout: longest }, () => tests(kubeconfig))
}

/** All that restricted pod security asks for, and a read-only root. */
export const restricted = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}

export const stateDir = '/var/lib/shipmate/state'
const patience = { timeout: 60_000, interval: 50 }

export interface SidecarPod {
  readonly name: string
  readonly namespace: string
  /** Runs a command in a container, and answers what it printed. */
  exec(container: string, command: string[]): Promise<string>
  /** One request to the API, again until it is answered. */
  ask<T>(method: string, path: string, body?: object): Promise<T>
  state(): Promise<PodState>
  /** Asks for a run, and waits until it goes on. */
  begin(id: string, action: string): Promise<void>
  /** The run as it stands. */
  run(id: string): Promise<Run>
  /** Waits for the end of a run. */
  ended(id: string): Promise<Run>
  /** How often the sidecar's container was started again. */
  restarts(): Promise<number>
  /** The name by which the node knows the sidecar's container. */
  containerId(): Promise<string>
  /** Every line that a container prints from now on, and has printed, until it ends. */
  printed(container: string): Promise<string[]>
  delete(): Promise<void>
}

export interface SidecarPods extends AsyncDisposable {
  readonly cluster: Cluster
  /** Makes a pod with a sidecar, and waits until that runs. */
  create(name: string, options?: PodOptions): Promise<void>
  /** The same, and waits until it is ready to be asked. */
  start(name: string, options?: PodOptions): Promise<SidecarPod>
}

export interface PodOptions {
  /** What is other than in the image's own pod; variables and volumes come to those. */
  readonly sidecar?: Partial<Container>
  /** Started, and ended, before the sidecar. */
  readonly before?: Container[]
  /** The application's image. Default: one with Node and busybox. */
  readonly appImage?: string
  readonly volumes?: Spec['volumes']
}

/** A namespace in which the API server lets no pod be made that is not restricted. */
export async function restrictedNamespace(kubeconfig: string, lifecycle: LifecycleSpec): Promise<SidecarPods> {
  const cluster = await useCluster(kubeconfig)
  const { client, namespace } = cluster
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  await client.patch(Namespace, { name: namespace }, { merge: { metadata: { labels } } })
  await client.create(ConfigMap, {
    metadata: { name: 'lifecycle', namespace },
    data: { 'lifecycle.yaml': JSON.stringify(lifecycle, null, 2) },
  })
  const closing: (() => Promise<void>)[] = []
  const create = async (name: string, options: PodOptions = {}) => {
    const { appImage } = options
    await cluster.create(name, { app: { ...app, ...(appImage && { image: appImage }) } }, specOf(options))
    await cluster.until(name, pod =>
      pod.status?.initContainerStatuses?.some(status => status.name === 'sidecar' && status.state?.running),
    )
  }
  return {
    cluster,
    create,
    async start(name, options) {
      await create(name, options)
      await cluster.until(name, pod =>
        pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
      )
      const local = await forwardPort(cluster.source, { name, namespace }, 7443)
      closing.push(() => local.close())
      return reach(cluster, name, `http://${local.host}:${local.port}`)
    },
    async [Symbol.asyncDispose]() {
      for (const close of closing) await close()
      await cluster[Symbol.asyncDispose]()
    },
  }
}

/** When it is asked to end it prints what the preStop action has written by then. */
const app: Container = {
  name: 'app',
  command: ['sh', '-c', 'trap "cat /work/stop; echo asked to end; exit" TERM; echo up; while :; do sleep 0.1; done'],
  securityContext: { ...restricted, runAsUser: 1000 },
  volumeMounts: [{ name: 'work', mountPath: '/work' }],
  lifecycle: { preStop: { httpGet: { port: 7080, path: '/prestop' } } },
}

function specOf({ sidecar = {}, before = [], volumes = [] }: PodOptions): Spec {
  const { volumeMounts = [], env = [], ...rest } = sidecar
  const agent: Container = {
    name: 'sidecar',
    image: images.sidecar,
    imagePullPolicy: 'Never',
    restartPolicy: 'Always',
    // The API on the pod's own loopback, where a test is through a port-forward; the rest where the kubelet is.
    args: [
      ...['--config', '/etc/shipmate/lifecycle/lifecycle.yaml', '--state-dir', stateDir],
      ...['--auth', 'none', '--listen', '127.0.0.1:7443', '--public-listen', ':7080'],
    ],
    env: [
      { name: 'SHIPMATE_LIFECYCLE', value: 'lifecycle' },
      ...['name', 'namespace', 'uid'].map(field => ({
        name: `POD_${field.toUpperCase()}`,
        valueFrom: { fieldRef: { fieldPath: `metadata.${field}` } },
      })),
      ...env,
    ],
    ports: [{ containerPort: 7080 }],
    // A test's way to know when to begin; a pod of an app has none.
    readinessProbe: { httpGet: { port: 7080, path: '/readyz' }, periodSeconds: 1 },
    lifecycle: { preStop: { exec: { command: ['shipmate-init', 'prestop', '--state-dir', stateDir] } } },
    securityContext: restricted,
    volumeMounts: [
      { name: 'state', mountPath: '/var/lib/shipmate' },
      { name: 'lifecycle', mountPath: '/etc/shipmate/lifecycle', readOnly: true },
      { name: 'work', mountPath: '/work' },
      ...volumeMounts,
    ],
    ...rest,
  }
  return {
    initContainers: [...before, agent],
    volumes: [
      { name: 'state', emptyDir: {} },
      { name: 'work', emptyDir: {} },
      { name: 'lifecycle', configMap: { name: 'lifecycle' } },
      ...volumes,
    ],
    securityContext: { runAsNonRoot: true },
    terminationGracePeriodSeconds: 30,
  }
}

function reach(cluster: Cluster, name: string, url: string): SidecarPod {
  const { client, namespace, source } = cluster
  const ref = { name, namespace }
  const status = async () => {
    const { status } = await client.get(Pod, ref)
    const own = status?.initContainerStatuses?.find(one => one.name === 'sidecar')
    if (!own) throw new Error(`${name} has no status of its sidecar`)
    return own
  }
  async function once<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`${url}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    if (!response.ok)
      throw new Error(`${method} ${path} was answered with ${response.status}: ${await response.text()}`)
    return (await response.json()) as T
  }
  const pod: SidecarPod = {
    ...ref,
    async exec(container, command) {
      const { exitCode, stdout, stderr } = await exec(source, ref, { container, command })
      if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}: ${stderr}`)
      return stdout
    },
    ask: (method, path, body) => vi.waitFor(() => once(method, path, body), patience),
    state: () => pod.ask('GET', '/v1/state'),
    async begin(id, action) {
      await pod.ask('PUT', `/v1/runs/${id}`, { action })
      await vi.waitUntil(async () => (await pod.run(id)).phase === 'Running', patience)
    },
    run: id => pod.ask('GET', `/v1/runs/${id}`),
    ended: id =>
      vi.waitFor(async () => {
        const run = await once<Run>('GET', `/v1/runs/${id}?wait=10s`)
        if (run.phase === 'Accepted' || run.phase === 'Running') throw new Error(`the run ${id} is still ${run.phase}`)
        return run
      }, patience),
    restarts: async () => (await status()).restartCount,
    containerId: async () => (await status()).containerID?.replace(/^.*:\/\//, '') ?? '',
    async printed(container) {
      const lines: string[] = []
      for await (const line of logLines(client, ref, { container, follow: true })) lines.push(line)
      return lines
    },
    async delete() {
      await client.delete(Pod, ref)
    },
  }
  return pod
}
