/**
 * DaemonSets: one pod a node.
 */
import type { CachedClient } from '../../../controller/kube/cached.ts'
import { ControllerRevision, DaemonSet, Node, Pod } from '../../../controller/kube/kinds.ts'
import { selects } from '../../../controller/kube/labelselector.ts'
import { carryOutClaim, claim } from '../common/claim.ts'
import { keepHistory, ownRevisions } from '../common/history.ts'
import { createPods, deletePods } from '../common/pod-changes.ts'
import type { Pod as OnePod } from '../common/pods.ts'
import { dispensable, historyOf } from '../common/revisions.ts'
import { comeBack, type Install, named } from '../common/surroundings.ts'
import { selectedBy } from '../common/wake.ts'
import { decideDaemonSet } from './decide.ts'
import type { DaemonSet as OneSet } from './placement.ts'

const hashLabel = 'controller-revision-hash'

export const installDaemonSets: Install = ({ manager, clock }) => {
  const sets = manager.cache.informer(DaemonSet)
  manager
    .controller(DaemonSet, named('daemonset-controller'))
    .owns(Pod)
    .watches(Pod, pod => selectedBy(sets, pod))
    .owns(ControllerRevision)
    // A node's heartbeat is no news.
    .watches(Node, () => sets.list().map(set => set.metadata), {
      when: ({ type, object, old }) =>
        type !== 'changed' ||
        JSON.stringify([object.metadata.labels, object.spec]) !== JSON.stringify([old?.metadata.labels, old?.spec]),
    })
    .reconcile(async ({ object: set, client, event }) => {
      // Its history goes with it: written anew, it would hold up a deletion in the foreground for ever.
      if (set.metadata.deletionTimestamp) return
      const all = await client.list(Pod, { namespace: set.metadata.namespace })
      const isSelected = (pod: OnePod) => selects(set.spec?.selector, pod.metadata.labels)
      const pods = await carryOutClaim(client, Pod, set, claim(set, all, isSelected))
      const nodes = await client.list(Node)
      const { revisions, history } = await revise(client, set)
      const { hash } = history.update
      const { collisions } = history
      const decision = decideDaemonSet({ set, nodes, pods, hash, collisions, now: clock.now() })
      await deletePods(client, decision.remove, event)
      await createPods(client, decision.create, event)
      const used = pods.map(pod => pod.metadata.labels?.[hashLabel])
      const live = revisions.filter(one => used.includes(one.metadata.labels?.[hashLabel]))
      const kept = new Set([history.update.name, ...live.map(one => one.metadata.name)])
      for (const one of dispensable(revisions, kept, set.spec?.revisionHistoryLimit ?? 10))
        await client.delete(ControllerRevision, one)
      await client.status(DaemonSet, set, decision.status)
      return comeBack(decision.after)
    })
}

async function revise(client: CachedClient, set: OneSet) {
  let collisions = set.status?.collisionCount ?? 0
  const before = await ownRevisions(client, set, set.spec?.selector)
  for (;;) {
    const history = historyOf({ set, template: set.spec?.template ?? {}, hashLabel, collisions }, before)
    const revisions = await keepHistory(client, before, history)
    if (revisions) return { revisions, history }
    collisions = history.collisions + 1
  }
}
