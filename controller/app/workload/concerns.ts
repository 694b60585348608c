/**
 * Which apps a changed object concerns: what the controller's watches are told. No request, and no look at apps that it does not concern.
 */

import { same } from '../../kube/applied.ts'
import type { Cache } from '../../kube/cache.ts'
import { keyOf, type Ref, refOfKey, type ShapeOf, type Snapshot } from '../../kube/kind.ts'
import { type Node, Pod } from '../../kube/kinds.ts'
import type { Change } from '../../kube/store.ts'
import { selects } from '../../toolkit/pods.ts'
import { Operation, StatefulApp } from '../kinds.ts'
import type { App } from '../view.ts'
import { appMark, appUidLabel } from './marks.ts'
import { byNode, byWorkload, groupOf, placeOf, workloadsOfPod } from './places.ts'
import { isWorking, type LiveNode, type LivePod, nodeView } from './pod-view.ts'
import type { LabelSelector } from './selector.ts'

export interface Concerns {
  /** Those whose workload a StatefulSet, Deployment, DaemonSet or anything else is. */
  ofWorkload(object: Snapshot): Ref[]
  ofPod(pod: LivePod): Ref[]
  /** The one for which a Service, a ConfigMap or a PodDisruptionBudget was made. */
  ofMade(object: Snapshot): Ref[]
  /** Those with a run there whose outcome is open, and those of which each node has a pod. */
  ofNode(node: LiveNode): Ref[]
  /** The selector of an app whose workload says by it alone which pods are its own. */
  remember(app: App, selector: LabelSelector): void
}

/** @param cache prepared by `prepareCache` */
export function createConcerns(cache: Cache): Concerns {
  const selecting = createSelecting(key => cache.informer(StatefulApp).get(refOfKey(key)) !== undefined)

  function at(place: string): Ref[] {
    return cache.informer(StatefulApp).by(byWorkload, place).map(placeOnly)
  }

  return {
    ofWorkload: ({ apiVersion, kind, metadata }) => at(placeOf({ group: groupOf(apiVersion), kind }, metadata)),
    ofPod: pod => unique([...workloadsOfPod(pod as never).flatMap(at), ...selecting.of(pod)]),
    ofMade({ metadata: { namespace, labels } }) {
      const name = labels?.[appUidLabel] === undefined ? undefined : labels[appMark]
      return name === undefined ? [] : [{ namespace, name }]
    },
    ofNode({ metadata }) {
      const operations = cache.informer(Operation).by(byNode, metadata.name)
      const open = operations.map(({ metadata, spec }) => ({ namespace: metadata.namespace, name: spec.app }))
      const daemons = cache
        .informer(Pod)
        .by(byNode, metadata.name)
        .filter(pod => pod.metadata.ownerReferences?.some(({ controller, kind }) => controller && kind === 'DaemonSet'))
      return unique([...open, ...daemons.flatMap(pod => workloadsOfPod(pod as never).flatMap(at))])
    },
    remember: ({ metadata }, selector) => selecting.remember(metadata, selector),
  }
}

/** Whether a change of a Node is one that anybody decides by: it came, went, rebooted, is in service or ready, or is no longer. */
export function nodeMatters({ old, object }: Change<ShapeOf<typeof Node>>): boolean {
  return !old || !same(nodeView(old), nodeView(object)) || isWorking(old) !== isWorking(object)
}

/** Apps by a label that their pods must have. */
function createSelecting(isThere: (key: string) => boolean) {
  const buckets = new Map<string, Map<string, LabelSelector>>()
  const bucketOf = new Map<string, string>()

  function forget(key: string): void {
    const bucket = bucketOf.get(key)
    if (bucket === undefined) return
    bucketOf.delete(key)
    const apps = buckets.get(bucket)
    apps?.delete(key)
    if (apps?.size === 0) buckets.delete(bucket)
  }

  return {
    remember(app: Ref, selector: LabelSelector): void {
      const key = keyOf(app)
      const [label] = Object.entries(selector.matchLabels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
      const bucket = label ? `${app.namespace} ${label[0]}=${label[1]}` : `${app.namespace}`
      if (bucketOf.get(key) !== bucket) forget(key)
      bucketOf.set(key, bucket)
      const apps = buckets.get(bucket) ?? new Map<string, LabelSelector>()
      buckets.set(bucket, apps.set(key, selector))
    },
    of({ metadata }: LivePod): Ref[] {
      if (buckets.size === 0) return []
      const { namespace, labels = {} } = metadata
      const names = [`${namespace}`, ...Object.entries(labels).map(([key, value]) => `${namespace} ${key}=${value}`)]
      const found = names.flatMap(name => [...(buckets.get(name) ?? [])])
      const gone = found.filter(([key]) => !isThere(key)).map(([key]) => key)
      for (const key of gone) forget(key)
      return found
        .filter(([key, selector]) => !gone.includes(key) && selects(selector, labels))
        .map(([key]) => refOfKey(key))
    },
  }
}

function placeOnly({ metadata: { namespace, name } }: Snapshot): Ref {
  return { namespace, name }
}

function unique(refs: readonly Ref[]): Ref[] {
  return [...new Map(refs.map(ref => [keyOf(ref), ref])).values()]
}
