/**
 * Where a pod may run, and where it will. Pure.
 */
import type { V1Node, V1Pod } from '@kubernetes/client-node'
import type { Snapshot } from '../../controller/kube/kind.ts'

type Pod = Snapshot<V1Pod>
type Node = Snapshot<V1Node>
type Spec = NonNullable<Pod['spec']>
type Affinity = NonNullable<Spec['affinity']>
type Term = NonNullable<
  NonNullable<Affinity['nodeAffinity']>['requiredDuringSchedulingIgnoredDuringExecution']
>['nodeSelectorTerms'][number]
type Requirement = NonNullable<Term['matchExpressions']>[number]
type PodTerm = NonNullable<
  NonNullable<Affinity['podAffinity']>['requiredDuringSchedulingIgnoredDuringExecution']
>[number]
type Labels = Readonly<Record<string, string>>

/** @param placed the pods that are on a node */
export function placePod(pod: Pod, nodes: readonly Node[], placed: readonly Pod[]): { node: string } | { why: string } {
  const refusals = new Map<string, number>()
  const able = nodes.filter(node => {
    const why = refusalOf(pod, node, nodes, placed)
    if (why !== undefined) refusals.set(why, (refusals.get(why) ?? 0) + 1)
    return why === undefined
  })
  const load = (node: Node) => placed.filter(({ spec }) => spec?.nodeName === node.metadata.name).length
  const [first] = able.sort((a, b) => load(a) - load(b) || (a.metadata.name < b.metadata.name ? -1 : 1))
  if (first) return { node: first.metadata.name }
  if (nodes.length === 0) return { why: 'no nodes available to schedule pods' }
  const reasons = [...refusals].map(([why, count]) => `${count} ${why}`).sort()
  return { why: `0/${nodes.length} nodes are available: ${reasons.join(', ')}.` }
}

/** Undefined: it may run there. */
function refusalOf(pod: Pod, node: Node, nodes: readonly Node[], placed: readonly Pod[]): string | undefined {
  const { spec } = pod
  if (node.spec?.unschedulable && !tolerates(spec, { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }))
    return 'node(s) were unschedulable'
  const taints = (node.spec?.taints ?? []).filter(
    taint => taint.effect !== 'PreferNoSchedule' && taint.key !== 'node.kubernetes.io/unschedulable',
  )
  const taint = taints.find(one => !tolerates(spec, one))
  if (taint) return `node(s) had untolerated taint(s)`
  if (!node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'))
    return 'node(s) were not ready'
  if (!selects(spec, node)) return "node(s) didn't match Pod's node affinity/selector"
  const isFull = placed.filter(one => one.spec?.nodeName === node.metadata.name && !isDone(one)).length
  if (isFull >= Number(node.status?.allocatable?.['pods'] ?? Number.POSITIVE_INFINITY)) return 'Too many pods'
  const { podAffinity, podAntiAffinity } = spec?.affinity ?? {}
  const near = (term: PodTerm, owner: Pod, others: readonly Pod[]) => isNear(term, owner, node, nodes, others)
  const wished = podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
  // The first of a group that wants to be together has nobody to be with.
  const unmet = wished.find(term => !near(term, pod, placed) && !matchesTerm(term, pod, pod))
  if (unmet) return "node(s) didn't match pod affinity rules"
  const shunned = podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
  if (shunned.some(term => near(term, pod, placed))) return "node(s) didn't match pod anti-affinity rules"
  const isShunned = placed.some(other => {
    const terms = other.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
    const home = nodes.find(({ metadata }) => metadata.name === other.spec?.nodeName)
    return terms.some(term => {
      const domain = home?.metadata.labels?.[term.topologyKey]
      return (
        domain !== undefined && domain === node.metadata.labels?.[term.topologyKey] && matchesTerm(term, other, pod)
      )
    })
  })
  return isShunned && placed.length > 0 ? "node(s) didn't satisfy existing pods anti-affinity rules" : undefined
}

const isDone = ({ status }: Pod) => status?.phase === 'Succeeded' || status?.phase === 'Failed'

interface Taint {
  readonly key: string
  readonly value?: string | undefined
  readonly effect: string
}

export function tolerates(spec: Spec | undefined, taint: Taint): boolean {
  return (spec?.tolerations ?? []).some(({ key, operator = 'Equal', value = '', effect }) => {
    if (effect && effect !== taint.effect) return false
    if (key && key !== taint.key) return false
    if (operator === 'Exists') return true
    return Boolean(key) && value === (taint.value ?? '')
  })
}

/** Whether the pod's node selector and required node affinity allow this node. */
export function selects(spec: Spec | undefined, { metadata }: Node): boolean {
  const labels = metadata.labels ?? {}
  if (!Object.entries(spec?.nodeSelector ?? {}).every(([name, value]) => labels[name] === value)) return false
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  if (!required) return true
  return required.nodeSelectorTerms.some(({ matchExpressions = [], matchFields = [] }) => {
    if (matchExpressions.length + matchFields.length === 0) return false
    const fields = { 'metadata.name': metadata.name }
    return matchExpressions.every(one => holds(one, labels)) && matchFields.every(one => holds(one, fields))
  })
}

function holds({ key, operator, values = [] }: Requirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined
  const is: Readonly<Record<string, () => boolean>> = {
    In: () => value !== undefined && values.includes(value),
    NotIn: () => value === undefined || !values.includes(value),
    Exists: () => value !== undefined,
    DoesNotExist: () => value === undefined,
    Gt: () => value !== undefined && Number(value) > Number(values[0]),
    Lt: () => value !== undefined && Number(value) < Number(values[0]),
  }
  return is[operator]?.() ?? false
}

/** Whether a pod that the term means is in the same domain as the node. */
function isNear(term: PodTerm, owner: Pod, node: Node, nodes: readonly Node[], placed: readonly Pod[]): boolean {
  const domain = node.metadata.labels?.[term.topologyKey]
  if (domain === undefined) return false
  return placed.some(other => {
    const home = nodes.find(({ metadata }) => metadata.name === other.spec?.nodeName)
    return home?.metadata.labels?.[term.topologyKey] === domain && !isDone(other) && matchesTerm(term, owner, other)
  })
}

/** @param owner whose term it is */
function matchesTerm({ labelSelector, namespaces, namespaceSelector }: PodTerm, owner: Pod, pod: Pod): boolean {
  const namespace = pod.metadata.namespace ?? ''
  // An empty selector means all namespaces; labels of namespaces are not looked at.
  const isAnywhere = namespaceSelector !== undefined
  if (!isAnywhere && !(namespaces?.length ? namespaces : [owner.metadata.namespace]).includes(namespace)) return false
  if (!labelSelector) return false
  const labels = pod.metadata.labels ?? {}
  const { matchLabels = {}, matchExpressions = [] } = labelSelector
  return (
    Object.entries(matchLabels).every(([name, value]) => labels[name] === value) &&
    matchExpressions.every(one => holds(one, labels))
  )
}
