/**
 * Binds pods to nodes: to one that the pod selects and tolerates, the one with the fewest pods.
 *
 * Guarantee: a pod that fits no node says so in its condition PodScheduled, as a real scheduler words it, and is bound when that changes.
 */
import type { V1Binding, V1Pod } from '@kubernetes/client-node'
import type { Client } from '../../controller/kube/client.ts'
import { Conflict, NotFound } from '../../controller/kube/errors.ts'
import { createEventRecorder } from '../../controller/kube/events.ts'
import { Informer } from '../../controller/kube/informer.ts'
import type { Kind, Snapshot } from '../../controller/kube/kind.ts'
import { Node, Pod } from '../../controller/kube/kinds.ts'
import { type Clock, systemClock, timeOf } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import { placePod } from './placing.ts'

type PodObject = Snapshot<V1Pod>

export interface Scheduler {
  /** What went wrong in it, the latest. */
  readonly problems: readonly string[]
  stop(): Promise<void>
}

export async function startScheduler(client: Client, clock: Clock = systemClock): Promise<Scheduler> {
  const stopping = new AbortController()
  const { signal } = stopping
  const pods = new Informer(client, Pod)
  const nodes = new Informer(client, Node)
  const recorder = createEventRecorder(client, { component: 'default-scheduler', clock })
  const problems: string[] = []
  /** Where pods are that were bound, until that is seen. */
  const assumed = new Map<string, string>()
  let isDue = false

  /** All of what happened at once is looked at together. */
  function wake(): void {
    if (isDue || signal.aborted) return
    isDue = true
    setImmediate(() => {
      isDue = false
      if (!signal.aborted) pass()
    })
  }

  function pass(): void {
    const all = pods.list().map(pod => withAssumed(pod, assumed))
    const waiting = all.filter(isWaiting).sort(byPriority)
    const placed = all.filter(({ spec }) => spec?.nodeName)
    for (const pod of waiting) {
      const { uid } = pod.metadata
      const result = placePod(pod, nodes.list(), placed)
      if ('node' in result) {
        assumed.set(uid, result.node)
        placed.push(withAssumed(pod, assumed))
        care(pod, bind(pod, result.node))
      } else care(pod, refuse(pod, result.why))
    }
  }

  function care(pod: PodObject, doing: Promise<void>): void {
    doing.catch(error => {
      assumed.delete(pod.metadata.uid)
      if (signal.aborted || error instanceof NotFound) return
      if (error instanceof Conflict) return wake()
      problems.push(`${pod.metadata.namespace}/${pod.metadata.name}: ${messageOf(error)}`)
      if (problems.length > 100) problems.shift()
      clock.after(1000, wake)
    })
  }

  async function bind(pod: PodObject, node: string): Promise<void> {
    const { name, namespace, uid } = pod.metadata
    // A subresource whose objects are of another kind.
    const kind: Kind<V1Binding> = {
      group: '',
      version: 'v1',
      kind: 'Binding',
      plural: `pods/${name}/binding`,
      namespaced: true,
    }
    const target = { apiVersion: 'v1', kind: 'Node', name: node }
    await client.create(kind, { metadata: { name, namespace, uid }, target }, { signal })
    const note = `Successfully assigned ${namespace}/${name} to ${node}`
    recorder.record(pod, { type: 'Normal', reason: 'Scheduled', action: 'Binding', note })
  }

  async function refuse(pod: PodObject, message: string): Promise<void> {
    const before = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
    if (before?.status === 'False' && before.message === message) return
    const reason = 'Unschedulable'
    const lastTransitionTime = before?.status === 'False' ? before.lastTransitionTime : timeOf(clock.now())
    const condition = { type: 'PodScheduled', status: 'False', reason, message, lastTransitionTime }
    const strategic = { metadata: { uid: pod.metadata.uid }, status: { conditions: [condition] } }
    await client.patch(Pod, pod.metadata, { strategic }, { subresource: 'status', signal })
    recorder.record(pod, { type: 'Warning', reason: 'FailedScheduling', action: 'Scheduling', note: message })
  }

  pods.subscribe(({ type, object }) => {
    if (type === 'removed' || object.spec?.nodeName) assumed.delete(object.metadata.uid)
    wake()
  })
  nodes.subscribe(wake)
  const running = Promise.all([pods.run(signal), nodes.run(signal)])
  await Promise.all([pods.synced, nodes.synced])
  wake()
  return {
    problems,
    async stop() {
      stopping.abort()
      recorder.stop()
      await running
    },
  }
}

function withAssumed(pod: PodObject, assumed: ReadonlyMap<string, string>): PodObject {
  const nodeName = assumed.get(pod.metadata.uid)
  return nodeName === undefined || !pod.spec ? pod : { ...pod, spec: { ...pod.spec, nodeName } }
}

function isWaiting({ metadata, spec }: PodObject): boolean {
  if (!spec || spec.nodeName || metadata.deletionTimestamp) return false
  return (spec.schedulerName ?? 'default-scheduler') === 'default-scheduler' && !spec.schedulingGates?.length
}

function byPriority(a: PodObject, b: PodObject): number {
  const order = (b.spec?.priority ?? 0) - (a.spec?.priority ?? 0)
  if (order !== 0) return order
  return a.metadata.creationTimestamp < b.metadata.creationTimestamp ? -1 : 1
}
