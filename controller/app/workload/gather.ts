/**
 * What there is of an app's workload and its pods, from the cache.
 *
 * Guarantees: no request for StatefulSets, Deployments and DaemonSets, their pods and nodes, and what a template asks for. Of anything else with a scale subresource
 * two, each time. A pod is the workload's if the workload controls it; for other kinds the selector alone tells.
 */
import type { CachedClient } from '../../kube/cached.ts'
import type { Discovery } from '../../kube/discovery.ts'
import type { Kind, ShapeOf, Snapshot } from '../../kube/kind.ts'
import { ConfigMap, DaemonSet, Deployment, Node, Pod, Service, StatefulSet } from '../../kube/kinds.ts'
import type { ServedKind } from '../../kube/restmapper.ts'
import { TerminalError } from '../../runtime/index.ts'
import { selects } from '../../toolkit/pods.ts'
import type { App, NodeView, PodView, WorkloadView } from '../view.ts'
import type { Concerns } from './concerns.ts'
import { claimAnnotation, parseClaim, parseReplicas, replicasAnnotation } from './marks.ts'
import { byAppUid, byNamespace, byWorkload, groupOf, placeOf } from './places.ts'
import { isWorking, type LivePod, nodeView, podView } from './pod-view.ts'
import {
  daemonReplicas,
  isDaemonSetRollingOut,
  isDeploymentRollingOut,
  isOtherRollingOut,
  isStatefulSetRollingOut,
} from './rollout.ts'
import { type LabelSelector, parseSelector } from './selector.ts'
import { isOfTemplate, type Part, partOf, wishedOf } from './template.ts'

/** A workload, with what is needed to act on it. */
export interface Workload extends WorkloadView {
  readonly namespace: string
  readonly resourceVersion: string
  readonly of: Kind
  readonly selector: LabelSelector
  /** What its annotation says, whatever its number of replicas is. */
  readonly annotatedReplicas: number | undefined
  /** Whether its number of replicas is in `spec.replicas`; else it is set by the scale subresource alone. */
  readonly isPlain: boolean
  /** The names of its claim templates. */
  readonly claimTemplates: readonly string[]
}

export interface Sources {
  readonly discovery: Discovery
  readonly concerns: Concerns
}

/** Undefined: it is not there. TerminalError: it is nothing that can be looked after. NotFound: there is no such kind. */
export async function readWorkload(client: CachedClient, app: App, sources: Sources): Promise<Workload | undefined> {
  const { namespace } = app.metadata
  const { apiVersion = 'apps/v1', kind = 'StatefulSet', name = app.metadata.name } = app.spec.workload ?? {}
  const ref = { namespace, name }
  if (groupOf(apiVersion) !== 'apps') return readOther(client, app, sources)
  switch (kind) {
    case StatefulSet.kind: {
      const live = await client.find(StatefulSet, ref)
      return live && { ...statefulSet(live), isOutdated: await isOutdated(client, app) }
    }
    case Deployment.kind: {
      const live = await client.find(Deployment, ref)
      return live && deployment(live)
    }
    case DaemonSet.kind: {
      const live = await client.find(DaemonSet, ref)
      return live && daemonSet(live, await workingPods(client, live))
    }
    default:
      return readOther(client, app, sources)
  }
}

/** Those of its pods that are there, by name, terminating ones too. `agent` is left to who knows the sidecars. */
export async function podsOf(client: CachedClient, workload: Workload | undefined): Promise<PodView[]> {
  return workload ? livePodsOf(client, workload).map(podView) : []
}

export function livePodsOf(client: CachedClient, { of, namespace, name, uid, selector }: Workload): LivePod[] {
  const known = [StatefulSet, Deployment, DaemonSet].some(({ group, kind }) => group === of.group && kind === of.kind)
  const candidates = known
    ? client.by(Pod, byWorkload, placeOf(of, { namespace, name }))
    : client.by(Pod, byNamespace, namespace)
  // A Deployment controls its pods through ReplicaSets, by whose names they were found.
  const isBound = (pod: LivePod) =>
    !known ||
    of.kind === Deployment.kind ||
    pod.metadata.ownerReferences?.some(one => one.controller && one.uid === uid)
  return candidates
    .filter(pod => isBound(pod) && selects(selector, pod.metadata.labels))
    .sort((a, b) => inOrder.compare(a.metadata.name, b.metadata.name))
}

const inOrder = new Intl.Collator('en', { numeric: true })

/** The Nodes of those names that there are. */
export async function nodesOf(client: CachedClient, names: Iterable<string>): Promise<Map<string, NodeView>> {
  const nodes = await Promise.all([...new Set(names)].map(name => client.find(Node, { name })))
  return new Map(nodes.flatMap(node => (node ? [[node.metadata.name, nodeView(node)] as const] : [])))
}

/** What an app's template asks for, and what is there of it. */
export interface TemplateView {
  readonly parts: readonly Part[]
  /** What was made of an earlier template of the app and is asked for no more. */
  readonly leftovers: readonly { readonly kind: Kind; readonly live: Snapshot }[]
}

export async function readTemplate(client: CachedClient, app: App): Promise<TemplateView> {
  const wished = wishedOf(app)
  const parts = await Promise.all(
    wished.map(async one => {
      const { namespace } = app.metadata
      const live = await client.find(one.kind, { namespace, name: one.object.metadata.name ?? '' })
      const isScaledDown = one.kind === StatefulSet && live !== undefined && isScaledDownByUs(live)
      return partOf(app, one, live, { manager: client.live.fieldManager, isScaledDown })
    }),
  )
  const asked = new Set(parts.flatMap(({ live }) => live?.metadata.uid ?? []))
  const leftovers = madeFor(client, app).filter(
    ({ live }) => !asked.has(live.metadata.uid) && live.metadata.deletionTimestamp === undefined,
  )
  return { parts, leftovers }
}

/** The Services and ConfigMaps that were made of an app's templates, from the cache. */
export function madeFor(client: CachedClient, app: App): { kind: Kind; live: Snapshot }[] {
  return [Service, ConfigMap].flatMap((kind: Kind) =>
    client
      .by(kind, byAppUid, app.metadata.uid)
      .filter(live => isOfTemplate(live, app))
      .map(live => ({ kind, live })),
  )
}

async function isOutdated(client: CachedClient, app: App): Promise<boolean> {
  if (!app.spec.template) return false
  try {
    const { parts, leftovers } = await readTemplate(client, app)
    return leftovers.length > 0 || parts.some(({ isDifferent }) => isDifferent)
  } catch (error) {
    // A template that makes no sense is nothing that the workload could be. That is told when it is applied; till then it keeps nobody from looking.
    if (error instanceof TerminalError) return true
    throw error
  }
}

function isScaledDownByUs(live: Snapshot<ShapeOf<typeof StatefulSet>> | Snapshot): boolean {
  const { spec } = live as { spec?: { replicas?: number } }
  return spec?.replicas === 0 && parseReplicas(live.metadata.annotations?.[replicasAnnotation]) !== undefined
}

function statefulSet(live: Snapshot<ShapeOf<typeof StatefulSet>>): Workload {
  return {
    ...common(StatefulSet, live, live.spec?.replicas ?? 1),
    selector: live.spec?.selector ?? {},
    isRollingOut: isStatefulSetRollingOut(live),
    hasStableNames: true,
    claimTemplates: (live.spec?.volumeClaimTemplates ?? []).flatMap(({ metadata }) => metadata?.name ?? []),
  }
}

function deployment(live: Snapshot<ShapeOf<typeof Deployment>>): Workload {
  return {
    ...common(Deployment, live, live.spec?.replicas ?? 1),
    selector: live.spec?.selector ?? {},
    isRollingOut: isDeploymentRollingOut(live),
  }
}

/** @param pods those on nodes that work */
function daemonSet(live: Snapshot<ShapeOf<typeof DaemonSet>>, pods: readonly LivePod[] = []): Workload {
  // One that is not bound yet is meant for a node of its own.
  const nodes = new Set(pods.map(({ metadata, spec }) => spec?.nodeName || metadata.uid))
  const revisions = new Set(pods.flatMap(({ metadata }) => metadata.labels?.['controller-revision-hash'] ?? []))
  return {
    ...common(DaemonSet, live, daemonReplicas(live, nodes.size)),
    selector: live.spec?.selector ?? {},
    isRollingOut: isDaemonSetRollingOut(live, revisions),
    isScalable: false,
    isPlain: false,
    keptReplicas: undefined,
  }
}

/** The pods of a DaemonSet but for those on nodes that do not work; terminating ones too, as others take their places. */
async function workingPods(client: CachedClient, live: Snapshot<ShapeOf<typeof DaemonSet>>): Promise<LivePod[]> {
  const pods = livePodsOf(client, daemonSet(live))
  const names = new Set(pods.flatMap(({ spec }) => spec?.nodeName || []))
  const nodes = await Promise.all([...names].map(async name => ({ name, node: await client.find(Node, { name }) })))
  const lost = new Set(nodes.filter(({ node }) => !isWorking(node)).map(({ name }) => name))
  return pods.filter(({ spec }) => !lost.has(spec?.nodeName ?? ''))
}

async function readOther(client: CachedClient, app: App, sources: Sources): Promise<Workload | undefined> {
  const { apiVersion = '', kind = '', name = '' } = app.spec.workload ?? {}
  const { namespace } = app.metadata
  const of = await sources.discovery.kindOfObject({ apiVersion, kind })
  const unusable = unusableWorkload(of)
  if (unusable) throw new TerminalError(unusable)
  const live = await client.find(of, { namespace, name })
  if (!live) return undefined
  const { replicas, selector: text } = await client.live.scale(of, { namespace, name })
  const selector = parseSelector(text)
  if (!selector)
    throw new TerminalError(
      `spec.workload: ${kind} ${name} does not say which pods are its own: the selector in its scale subresource is "${text}"`,
    )
  sources.concerns.remember(app, selector)
  return { ...common(of, live, replicas), selector, isPlain: false, isRollingOut: isOtherRollingOut(live) }
}

/** Why a kind cannot be an app's workload. */
function unusableWorkload({ kind, namespaced, subresources }: ServedKind): string | undefined {
  const accepted = 'an app needs a StatefulSet, a Deployment, a DaemonSet, or a kind with a scale subresource'
  if (!namespaced) return `spec.workload: a ${kind} is in no namespace; ${accepted}`
  if (!subresources.some(({ name }) => name === 'scale'))
    return `spec.workload: a ${kind} has no scale subresource; ${accepted}`
  return undefined
}

function common(of: Kind, { apiVersion, kind, metadata }: Snapshot, replicas: number) {
  const { name, namespace = '', uid, resourceVersion, annotations, deletionTimestamp } = metadata
  const annotatedReplicas = parseReplicas(annotations?.[replicasAnnotation])
  return {
    ...{ apiVersion, kind, name, namespace, uid, resourceVersion, of, replicas, annotatedReplicas },
    isScalable: true,
    isPlain: true,
    keptReplicas: replicas === 0 ? annotatedReplicas : undefined,
    isOutdated: false,
    hasStableNames: false,
    isBeingDeleted: deletionTimestamp !== undefined,
    claimedBy: parseClaim(annotations?.[claimAnnotation]),
    claimTemplates: [] as readonly string[],
  }
}
