/**
 * How an app and what belongs to it find each other in the cache: indices, and what is kept of pods and nodes.
 *
 * Guarantees: finding an app by a pod, a workload or a node, and a workload's pods, costs as much as there is to find, however many apps there are. Pods and nodes, of
 * which there are many, are kept with the fields that are read, and Nodes are watched once for all. ConfigMaps, Services and Secrets are watched only where Shipmate made
 * them. What objects say alike is kept once.
 */
import type { Cache } from '../../kube/cache.ts'
import { byLabel } from '../../kube/informer.ts'
import type { Kind, Live, ShapeOf } from '../../kube/kind.ts'
import { ConfigMap, Node, Pod, PodDisruptionBudget, Secret, Service, StatefulSet } from '../../kube/kinds.ts'
import { Operation, StatefulApp } from '../kinds.ts'
import type { App, RunRecord } from '../view.ts'
import { createAlike } from './alike.ts'
import { appUidLabel, madeLabels } from './marks.ts'

/** Names of indices. */
export const byWorkload = 'workload'
export const byNamespace = 'namespace'
export const byNode = 'node'
export const byAppUid = 'appUid'

export interface PlacesOptions {
  /** Under which name objects are applied. */
  readonly manager: string
  /** Whether what a run has become is still open, so that its node matters. */
  readonly isUnsettled: (run: RunRecord) => boolean
}

/** Prepares a cache, before a controller asks for one of these kinds. */
export function prepareCache(cache: Cache, { manager, isUnsettled }: PlacesOptions): void {
  const share = createAlike()
  cache.for(Pod, {
    transform(pod) {
      trimPod(pod)
      share(pod)
    },
  })
  for (const kind of [StatefulApp, StatefulSet, Operation]) cache.for<object>(kind, { transform: share })
  cache.for(Secret, { labels: madeLabels, transform: share })
  cache.for(Node, { transform: trimNode })
  cache.for(ConfigMap, { labels: madeLabels })
  cache.for(Service, { labels: madeLabels })
  cache.informer(Pod).addIndex(byWorkload, workloadsOfPod)
  cache.informer(Pod).addIndex(byNamespace, namespaceOf)
  cache.informer(Pod).addIndex(byNode, ({ spec }) => (spec?.nodeName ? [spec.nodeName] : []))
  cache.informer(StatefulApp).addIndex(byWorkload, app => [placeOfApp(app as unknown as App)])
  cache.informer(Operation).addIndex(byNode, ({ status }) => {
    const open = (status?.runs ?? []).filter(run => run.node !== undefined && isUnsettled(run))
    return [...new Set(open.map(({ node }) => node ?? ''))]
  })
  cache.informer(PodDisruptionBudget).addIndex(byNamespace, namespaceOf)
  for (const kind of [Service, ConfigMap]) cache.informer<object>(kind).addIndex(byAppUid, byLabel(appUidLabel))
  for (const kind of [StatefulSet, Service, ConfigMap, PodDisruptionBudget])
    cache.informer<object>(kind).keepManager(manager)
}

/** Where a workload is, whatever the version in which it is read. */
export function placeOf(kind: Pick<Kind, 'group' | 'kind'>, at: { namespace?: string | undefined; name: string }) {
  return `${kind.group}/${kind.kind}/${at.namespace}/${at.name}`
}

/** Where an app's workload is, or would be. */
function placeOfApp({ metadata, spec }: App): string {
  const { apiVersion = 'apps/v1', kind = 'StatefulSet', name = metadata.name } = spec.workload ?? {}
  return placeOf({ group: groupOf(apiVersion), kind }, { namespace: metadata.namespace, name })
}

export function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
}

/**
 * Which workloads a pod may belong to: its controller, and the Deployment above it. A ReplicaSet of a Deployment is named after it and after the hash that its pods
 * carry, so ReplicaSets, of which each Deployment leaves many behind, need not be watched.
 */
export function workloadsOfPod({ metadata }: Pick<Live, 'metadata'>): string[] {
  const { namespace, labels, ownerReferences } = metadata
  const controller = ownerReferences?.find(owner => owner.controller)
  if (!controller) return []
  const { kind, name, apiVersion } = controller
  const group = groupOf(apiVersion)
  const own = placeOf({ group, kind }, { namespace, name })
  const hash = labels?.['pod-template-hash']
  const isOfDeployment = group === 'apps' && kind === 'ReplicaSet' && hash && name.endsWith(`-${hash}`)
  if (!isOfDeployment) return [own]
  return [own, placeOf({ group, kind: 'Deployment' }, { namespace, name: name.slice(0, -hash.length - 1) })]
}

function namespaceOf({ metadata }: Live): string[] {
  return [metadata.namespace ?? '']
}

type Container = NonNullable<NonNullable<Live<ShapeOf<typeof Pod>>['spec']>['containers']>[number]
type Status = NonNullable<NonNullable<Live<ShapeOf<typeof Pod>>['status']>['containerStatuses']>[number]

export function trimPod(pod: Live<ShapeOf<typeof Pod>>): void {
  const { spec, status } = pod
  if (spec) {
    const { nodeName, restartPolicy, terminationGracePeriodSeconds, shareProcessNamespace } = spec
    pod.spec = {
      ...defined({ nodeName, restartPolicy, terminationGracePeriodSeconds, shareProcessNamespace }),
      containers: spec.containers.map(trimContainer),
      ...(spec.initContainers && { initContainers: spec.initContainers.map(trimContainer) }),
      ...(spec.ephemeralContainers && { ephemeralContainers: spec.ephemeralContainers.map(({ name }) => ({ name })) }),
    }
  }
  if (status) {
    const { phase, podIP, conditions, reason, message } = status
    const { containerStatuses, initContainerStatuses, ephemeralContainerStatuses } = status
    pod.status = {
      ...defined({ phase, podIP, conditions, reason, message }),
      ...(containerStatuses && { containerStatuses: containerStatuses.map(trimStatus) }),
      ...(initContainerStatuses && { initContainerStatuses: initContainerStatuses.map(trimStatus) }),
      ...(ephemeralContainerStatuses && { ephemeralContainerStatuses: ephemeralContainerStatuses.map(trimStatus) }),
    }
  }
}

function trimContainer({ name, image, ports, restartPolicy, restartPolicyRules }: Container): Container {
  return { name, ...defined({ image, ports, restartPolicy, restartPolicyRules }) }
}

function trimStatus({ name, image, imageID, ready, restartCount, state }: Status): Status {
  return { name, image, imageID, ready, restartCount, ...defined({ state }) }
}

export function trimNode(node: Live<ShapeOf<typeof Node>>): void {
  const { spec, status } = node
  const { annotations: _, ...metadata } = node.metadata
  node.metadata = metadata
  node.spec = defined({ taints: spec?.taints, unschedulable: spec?.unschedulable })
  const conditions = status?.conditions?.filter(({ type }) => type === 'Ready')
  node.status = defined({ conditions, nodeInfo: status?.nodeInfo })
}

/** Without what is undefined. */
function defined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const there = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(there) as { [K in keyof T]: Exclude<T[K], undefined> }
}
