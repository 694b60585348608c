/**
 * On which nodes a DaemonSet's pod belongs, and the pod for one. Pure.
 */
import type { V1DaemonSet, V1Node, V1Pod } from '@kubernetes/client-node'
import { controllerReference } from '../../../controller/kube/cached.ts'
import type { Draft, Snapshot } from '../../../controller/kube/kind.ts'
import { type Pod, podOf, type Template } from '../common/pods.ts'
import { selects, tolerates } from '../placing.ts'

export type DaemonSet = Snapshot<V1DaemonSet>
export type Node = Snapshot<V1Node>
type Toleration = NonNullable<NonNullable<Template['spec']>['tolerations']>[number]

/** What every daemon puts up with: it is to run where nothing else would be sent. */
const daemonTolerations: readonly Toleration[] = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/pid-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
]

function tolerationsOf(template: Template): Toleration[] {
  const network = { key: 'node.kubernetes.io/network-unavailable', operator: 'Exists', effect: 'NoSchedule' }
  const ours = template.spec?.hostNetwork ? [...daemonTolerations, network] : daemonTolerations
  const given = template.spec?.tolerations ?? []
  const isGiven = (one: Toleration) =>
    given.some(({ key, effect, operator }) => key === one.key && effect === one.effect && operator === one.operator)
  return [...given, ...ours.filter(one => !isGiven(one))]
}

export interface Place {
  /** A pod is to be made there. */
  readonly isWished: boolean
  /** One that is there may stay. */
  readonly mayStay: boolean
}

export function placeOn(set: DaemonSet, node: Node): Place {
  const template = set.spec?.template ?? {}
  const nodeName = template.spec?.nodeName
  if ((nodeName && nodeName !== node.metadata.name) || !selects(template.spec, node))
    return { isWished: false, mayStay: false }
  const spec = { containers: [], ...template.spec, tolerations: tolerationsOf(template) }
  const untolerated = (node.spec?.taints ?? []).filter(
    taint => taint.effect !== 'PreferNoSchedule' && !tolerates(spec, taint),
  )
  return { isWished: untolerated.length === 0, mayStay: !untolerated.some(({ effect }) => effect === 'NoExecute') }
}

/** The node that a pod is on, or is bound for. */
export function nodeOf(pod: Pod): string | undefined {
  if (pod.spec?.nodeName) return pod.spec.nodeName
  const terms = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  return terms?.[0]?.matchFields?.find(({ key }) => key === 'metadata.name')?.values?.[0]
}

export function newPod(set: DaemonSet, node: string, hash: string): Draft<V1Pod> {
  const template = set.spec?.template ?? {}
  const pod = podOf(template, {
    generateName: `${set.metadata.name}-`,
    namespace: set.metadata.namespace,
    labels: { 'controller-revision-hash': hash, 'pod-template-generation': generationOf(set) },
    ownerReferences: [controllerReference(set)],
  })
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: [node] }]
  const before =
    template.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  const nodeSelectorTerms = before ? before.map(term => ({ ...term, matchFields })) : [{ matchFields }]
  const nodeAffinity = {
    ...template.spec?.affinity?.nodeAffinity,
    requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
  }
  const spec = {
    ...template.spec,
    affinity: { ...template.spec?.affinity, nodeAffinity },
    tolerations: tolerationsOf(template),
  }
  return { ...pod, spec } as Draft<V1Pod>
}

function generationOf(set: DaemonSet): string {
  return set.metadata.annotations?.['deprecated.daemonset.template.generation'] ?? '1'
}
