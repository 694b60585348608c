/**
 * Whether a workload is being rolled out: whether its controller is about to replace pods by itself. Pure.
 *
 * What waits for a person is no roll-out: pods below a partition, pods of a workload that is updated by hand (OnDelete), a Deployment that is paused. Nor is a pod that
 * was replaced and is not ready yet: whatever is wrong with it, a backup may be just what is needed.
 */
import type { ShapeOf, Snapshot } from '../../kube/kind.ts'
import type { DaemonSet, Deployment, StatefulSet } from '../../kube/kinds.ts'

type LiveStatefulSet = Snapshot<ShapeOf<typeof StatefulSet>>
type LiveDeployment = Snapshot<ShapeOf<typeof Deployment>>
type LiveDaemonSet = Snapshot<ShapeOf<typeof DaemonSet>>

export function isStatefulSetRollingOut({ metadata, spec, status }: LiveStatefulSet): boolean {
  if (isUnseen(metadata.generation, status?.observedGeneration)) return true
  const { type, rollingUpdate } = spec?.updateStrategy ?? {}
  if (type === 'OnDelete' || status?.currentRevision === status?.updateRevision) return false
  const wished = Math.max((spec?.replicas ?? 1) - (rollingUpdate?.partition ?? 0), 0)
  return (status?.updatedReplicas ?? 0) < wished
}

export function isDeploymentRollingOut({ metadata, spec, status }: LiveDeployment): boolean {
  if (isUnseen(metadata.generation, status?.observedGeneration)) return true
  if (spec?.paused) return false
  const { updatedReplicas = 0, replicas = 0 } = status ?? {}
  return updatedReplicas < (spec?.replicas ?? 1) || replicas > updatedReplicas
}

/** @param revisions those of the pods on nodes that work: one that is lost keeps an old pod for as long as it is lost */
export function isDaemonSetRollingOut(
  { metadata, spec, status }: LiveDaemonSet,
  revisions: ReadonlySet<string>,
): boolean {
  if (isUnseen(metadata.generation, status?.observedGeneration)) return true
  if (spec?.updateStrategy?.type === 'OnDelete') return false
  const { updatedNumberScheduled = 0, currentNumberScheduled = 0 } = status ?? {}
  return revisions.size > 1 || (currentNumberScheduled > 0 && updatedNumberScheduled === 0)
}

/** Of a kind that says nothing more: while its controller has not seen its newest generation, if it says what it has seen. */
export function isOtherRollingOut(object: Snapshot): boolean {
  const { observedGeneration } = (object as { status?: { observedGeneration?: number } | null }).status ?? {}
  return observedGeneration !== undefined && isUnseen(object.metadata.generation, observedGeneration)
}

function isUnseen(generation: number | undefined, observed: number | undefined): boolean {
  return generation !== undefined && observed !== generation
}

/**
 * The number of pods of a DaemonSet: the nodes that work and have one, and those that should have one and do not. So a node that joins counts from when it should have a pod,
 * one that leaves no more, and one that is lost does not hold the others up; its pod is still among the pods, and Unknown as long as it cannot be asked. The number that the set's controller
 * wishes is not enough: it is not counted anew when a node that has its pod is lost, or comes back.
 *
 * @param working how many nodes that work have a pod
 */
export function daemonReplicas({ status }: LiveDaemonSet, working: number): number {
  const { desiredNumberScheduled = 0, currentNumberScheduled = 0 } = status ?? {}
  return working + Math.max(desiredNumberScheduled - currentNumberScheduled, 0)
}
