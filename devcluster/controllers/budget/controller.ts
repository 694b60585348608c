/**
 * PodDisruptionBudgets: how many pods may go now, for evictions to read.
 */
import type { CachedClient } from '../../../controller/kube/cached.ts'
import { createDiscovery } from '../../../controller/kube/discovery.ts'
import { NotFound } from '../../../controller/kube/errors.ts'
import type { Kind, OwnerReference, Snapshot } from '../../../controller/kube/kind.ts'
import { Deployment, Pod, PodDisruptionBudget, ReplicaSet, StatefulSet } from '../../../controller/kube/kinds.ts'
import { selects } from '../../../controller/kube/labelselector.ts'
import type { Pod as OnePod } from '../common/pods.ts'
import { comeBack, type Install, named } from '../common/surroundings.ts'
import { decideBudget, isExpected } from './decide.ts'

type Scale = { wished: number } | undefined

export const installBudgets: Install = ({ manager, clock }) => {
  const budgets = manager.cache.informer(PodDisruptionBudget)
  const discovery = createDiscovery(manager.client, { clock })
  const of = (pod: OnePod) =>
    budgets
      .list({ namespace: pod.metadata.namespace })
      .filter(({ spec }) => selects(spec?.selector, pod.metadata.labels))
      .map(one => one.metadata)
  const inNamespace = ({ metadata }: Snapshot) =>
    budgets.list({ namespace: metadata.namespace }).map(one => one.metadata)
  /** A change of the wished number changes the sum. */
  const scaled = ({ type, object, old }: { type: string; object: Snapshot; old?: Snapshot | undefined }) =>
    type !== 'changed' || object.metadata.generation !== old?.metadata.generation
  manager
    .controller(PodDisruptionBudget, named('disruption-controller'))
    .watches(Pod, of)
    .watches(ReplicaSet, inNamespace, { when: scaled })
    .watches(StatefulSet, inNamespace, { when: scaled })
    .watches(Deployment, inNamespace, { when: scaled })
    .reconcile(async ({ object: budget, client }) => {
      const { namespace } = budget.metadata
      const all = await client.list(Pod, { namespace })
      const pods = all.filter(pod => selects(budget.spec?.selector, pod.metadata.labels) && isExpected(pod))
      const scales = new Map<string, Scale>()
      for (const pod of pods) {
        const owner = pod.metadata.ownerReferences?.find(reference => reference.controller)
        if (owner && !scales.has(owner.uid))
          scales.set(owner.uid, await scaleOf(client, owner as OwnerReference, namespace))
      }
      const { status, after } = decideBudget(budget, pods, scales, clock.now())
      await client.status(PodDisruptionBudget, budget, status)
      return comeBack(after)
    })

  async function scaleOf(client: CachedClient, owner: OwnerReference, namespace: string | undefined): Promise<Scale> {
    const ref = { name: owner.name, namespace }
    if (owner.kind === 'ReplicaSet') {
      const set = await client.find(ReplicaSet, ref)
      if (set?.metadata.uid !== owner.uid) return undefined
      const above = set.metadata.ownerReferences?.find(({ controller, kind }) => controller && kind === 'Deployment')
      const deployment = above && (await client.find(Deployment, { name: above.name, namespace }))
      return { wished: (deployment ?? set).spec?.replicas ?? 1 }
    }
    if (owner.kind === 'StatefulSet') {
      const set = await client.find(StatefulSet, ref)
      return set?.metadata.uid === owner.uid ? { wished: set.spec?.replicas ?? 1 } : undefined
    }
    try {
      const kind: Kind = await discovery.kindOfObject(owner)
      const { replicas } = await client.live.scale(kind, ref)
      return { wished: replicas }
    } catch (error) {
      // Not served, gone, or without a scale.
      if (error instanceof NotFound) return undefined
      throw error
    }
  }
}
