/**
 * What an operator asks of workloads: how many of their pods are as they should be, how far an ordered roll-out may go, how a Job's pods ended; and Secrets
 * in the form in which the server keeps them. All but those that list pods are pure.
 */
import type { CachedClient } from '../kube/cached.ts'
import type { Applied, ShapeOf, Snapshot } from '../kube/kind.ts'
import { type DaemonSet, type Deployment, type Job, Pod, type Secret, type StatefulSet } from '../kube/kinds.ts'
import { selects } from './pods.ts'

type LiveStatefulSet = Snapshot<ShapeOf<typeof StatefulSet>>
type LiveDeployment = Snapshot<ShapeOf<typeof Deployment>>
type LiveDaemonSet = Snapshot<ShapeOf<typeof DaemonSet>>
type LiveJob = Snapshot<ShapeOf<typeof Job>>
type LivePod = Snapshot<ShapeOf<typeof Pod>>

/** How many pods a workload has. While its controller has not seen its newest generation, none is updated. */
export interface PodCounts {
  /** That there should be. */
  readonly replicas: number
  readonly ready: number
  /** Ready for as long as `minReadySeconds` asks. */
  readonly available: number
  /** Of the newest revision. */
  readonly updated: number
  /** That are still to become ready. */
  readonly remaining: number
}

/** How many pods a StatefulSet, Deployment or DaemonSet has, from its status; none where it is not there. */
export function podsOf(live: LiveStatefulSet | LiveDeployment | LiveDaemonSet | undefined): PodCounts {
  if (!live) return { replicas: 0, ready: 0, available: 0, updated: 0, remaining: 0 }
  return isDaemonSet(live) ? daemonCounts(live) : replicaCounts(live)
}

function isDaemonSet(live: LiveStatefulSet | LiveDeployment | LiveDaemonSet): live is LiveDaemonSet {
  return live.kind === 'DaemonSet'
}

function replicaCounts({ metadata, spec, status }: LiveStatefulSet | LiveDeployment): PodCounts {
  const replicas = spec?.replicas ?? 1
  const isSeen = hasSeen(metadata.generation, status?.observedGeneration)
  const ready = status?.readyReplicas ?? 0
  return {
    replicas,
    ready,
    available: status?.availableReplicas ?? 0,
    updated: isSeen ? (status?.updatedReplicas ?? 0) : 0,
    remaining: Math.max(replicas - ready, 0),
  }
}

function daemonCounts({ metadata, status }: LiveDaemonSet): PodCounts {
  const replicas = status?.desiredNumberScheduled ?? 0
  const isSeen = hasSeen(metadata.generation, status?.observedGeneration)
  const ready = status?.numberReady ?? 0
  return {
    replicas,
    ready,
    available: status?.numberAvailable ?? 0,
    updated: isSeen ? (status?.updatedNumberScheduled ?? 0) : 0,
    remaining: Math.max(replicas - ready, 0),
  }
}

function hasSeen(generation: number | undefined, observed: number | undefined): boolean {
  return generation === undefined || observed === generation
}

/**
 * The partition for a StatefulSet whose pods are to be updated one by one, from the last to the first: the next pod is let go only when all above it are
 * updated and ready. To be applied with everything else each time: `partition: nextPartition(live, replicas)`.
 *
 * While nothing is rolled out it is `wishedReplicas`, so that a change of the template begins with no pod at all. While something is, it never rises.
 * @param pods its pods, where they are at hand: then those below the partition need not be ready. Else all must be.
 */
export function nextPartition(
  live: LiveStatefulSet | undefined,
  wishedReplicas: number,
  pods?: readonly LivePod[],
): number {
  const { generation } = live?.metadata ?? {}
  const { status } = live ?? {}
  if (!live || !status) return wishedReplicas
  const partition = Math.min(live.spec?.updateStrategy?.rollingUpdate?.partition ?? 0, wishedReplicas)
  if (!hasSeen(generation, status.observedGeneration)) return partition
  const { replicas = 0, updatedReplicas = 0, readyReplicas = 0 } = status
  if (status.currentRevision === status.updateRevision && updatedReplicas >= replicas) return wishedReplicas
  const isSettled = replicas === wishedReplicas && (live.spec?.replicas ?? 1) === wishedReplicas
  if (!isSettled || updatedReplicas < wishedReplicas - partition) return partition
  const mayGoOn = pods
    ? areDone(pods, partition, live.spec?.ordinals?.start ?? 0, wishedReplicas, status.updateRevision)
    : readyReplicas >= wishedReplicas
  return mayGoOn ? Math.max(partition - 1, 0) : partition
}

/** Whether every pod from `partition` on is there, updated and ready. */
function areDone(
  pods: readonly LivePod[],
  partition: number,
  start: number,
  replicas: number,
  revision: string | undefined,
): boolean {
  const done = new Set<number>()
  for (const pod of pods) {
    const isUpdated = pod.metadata.labels?.['controller-revision-hash'] === revision
    if (isUpdated && isReady(pod)) done.add(ordinalOf(pod))
  }
  // Ordinals may begin above 0; the partition counts from the first.
  for (let ordinal = start + partition; ordinal < start + replicas; ordinal++) if (!done.has(ordinal)) return false
  return true
}

function ordinalOf({ metadata }: LivePod): number {
  return Number(metadata.name.slice(metadata.name.lastIndexOf('-') + 1))
}

function isReady({ metadata, status }: LivePod): boolean {
  if (metadata.deletionTimestamp !== undefined) return false
  return status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
}

/**
 * A Secret in the form in which the server keeps it: `stringData` becomes base64 in `data`, over what was there. So it compares with a live one, and an apply of
 * it twice changes nothing.
 */
export function withStringData<S extends SecretData>(secret: S): Omit<S, 'stringData'> {
  const { stringData, ...rest } = secret
  if (!stringData) return rest
  const encoded = Object.entries(stringData)
    .filter(([, text]) => text !== undefined)
    .map(([key, text]) => [key, Buffer.from(text ?? '').toString('base64')])
  return { ...rest, data: { ...rest.data, ...Object.fromEntries(encoded) } }
}

type SecretData = Partial<Pick<Applied<ShapeOf<typeof Secret>>, 'data' | 'stringData'>>

/** How one container of a pod ended. */
export interface ContainerExit {
  readonly pod: string
  readonly container: string
  readonly exitCode: number
  /** It is an init container. */
  readonly isInit: boolean
  /** As `OOMKilled`, where the node says. */
  readonly reason?: string | undefined
}

/** How the containers of pods ended, for those that have; of each pod, init containers first. */
export function exitsOf(pods: readonly LivePod[]): ContainerExit[] {
  return pods.flatMap(({ metadata, status }) =>
    [
      ...(status?.initContainerStatuses ?? []).map(one => ({ ...one, isInit: true })),
      ...(status?.containerStatuses ?? []).map(one => ({ ...one, isInit: false })),
    ].flatMap(({ name, state, isInit }) => {
      if (!state?.terminated) return []
      const { exitCode, reason } = state.terminated
      return { pod: metadata.name, container: name, exitCode, isInit, ...(reason !== undefined && { reason }) }
    }),
  )
}

/** How the containers of a Job's pods ended, as far as the pods are still there. */
export async function jobExits(client: CachedClient, job: LiveJob): Promise<ContainerExit[]> {
  return exitsOf(await listPods(client, job))
}

/** The pods of a workload: those that its selector selects, and whose controller is the workload itself or, for a Deployment, a ReplicaSet. */
export async function listPods(
  client: CachedClient,
  workload: LiveStatefulSet | LiveDeployment | LiveDaemonSet | LiveJob,
): Promise<LivePod[]> {
  const { kind, metadata, spec } = workload
  const { matchLabels, matchExpressions = [] } = spec?.selector ?? {}
  if (!matchLabels && matchExpressions.length === 0) return []
  const pods = await client.list(Pod, { namespace: metadata.namespace, labels: matchLabels ?? {} })
  return pods.filter(pod => {
    const controller = pod.metadata.ownerReferences?.find(owner => owner.controller)
    const isOwn = kind === 'Deployment' ? controller?.kind === 'ReplicaSet' : controller?.uid === metadata.uid
    return isOwn && (matchExpressions.length === 0 || selects({ matchExpressions }, pod.metadata.labels))
  })
}

/** How many of a workload's pods run, ready or not; those that are being deleted do not count. */
export async function countRunning(
  client: CachedClient,
  workload: LiveStatefulSet | LiveDeployment | LiveDaemonSet | LiveJob,
): Promise<number> {
  const pods = await listPods(client, workload)
  return pods.filter(({ metadata, status }) => status?.phase === 'Running' && !metadata.deletionTimestamp).length
}
