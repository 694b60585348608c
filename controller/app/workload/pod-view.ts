/**
 * Pods and nodes as the app controller sees them. Pure.
 */
import type { ShapeOf, Snapshot } from '../../kube/kind.ts'
import type { Node, Pod } from '../../kube/kinds.ts'
import type { NodeView, PodView } from '../view.ts'
import { portAnnotation, sidecarName } from './marks.ts'

export type LivePod = Snapshot<ShapeOf<typeof Pod>>
export type LiveNode = Snapshot<ShapeOf<typeof Node>>

export function podView(pod: LivePod): PodView {
  const { metadata, spec, status } = pod
  return {
    name: metadata.name,
    uid: metadata.uid,
    ip: status?.podIP || undefined,
    node: spec?.nodeName || undefined,
    isReady: status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false,
    isTerminating: metadata.deletionTimestamp !== undefined,
    isEnded: isEnded(pod),
    hasAgent: hasAgent(pod),
    agent: undefined,
  }
}

/** Whether there is a sidecar in a pod: by its container's name, or because somebody says where it listens. */
function hasAgent({ metadata, spec }: LivePod): boolean {
  if (metadata.annotations?.[portAnnotation] !== undefined) return true
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].some(({ name }) => name === sidecarName)
}

/**
 * Whether no process of a pod is alive, nor will be. The phase alone does not prove it: others than the node's own kubelet set it, for a node that they cannot reach.
 */
function isEnded({ metadata, spec, status }: LivePod): boolean {
  const isBeingDeleted = metadata.deletionTimestamp !== undefined
  // It never reached a node, and while it is being deleted it will not be sent to one.
  if (!spec?.nodeName) return isBeingDeleted
  const isLast = isBeingDeleted || ['Succeeded', 'Failed'].includes(status?.phase ?? '') || neverRestarts(spec)
  if (!isLast) return false
  const known = new Map(
    [status?.initContainerStatuses, status?.containerStatuses, status?.ephemeralContainerStatuses]
      .flatMap(one => one ?? [])
      .map(({ name, state }) => [name, state?.terminated !== undefined]),
  )
  const all = [spec.initContainers, spec.containers, spec.ephemeralContainers].flatMap(one => one ?? [])
  return all.every(({ name }) => known.get(name))
}

/** A container may have a policy of its own, and rules that restart others too. */
function neverRestarts({ restartPolicy, containers }: NonNullable<LivePod['spec']>): boolean {
  if (restartPolicy !== 'Never') return false
  return containers.every(one => (one.restartPolicy ?? 'Never') === 'Never' && !one.restartPolicyRules?.length)
}

export function nodeView({ metadata, spec, status }: LiveNode): NodeView {
  return {
    name: metadata.name,
    bootId: status?.nodeInfo?.bootID ?? '',
    isOutOfService: spec?.taints?.some(({ key }) => key === outOfService) ?? false,
  }
}

const outOfService = 'node.kubernetes.io/out-of-service'

/** Whether a node does what it is told: it is there, ready, and in service. */
export function isWorking(node: LiveNode | undefined): boolean {
  if (!node || nodeView(node).isOutOfService) return false
  return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
}
