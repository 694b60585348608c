/**
 * ReplicaSets: as many pods as they wish.
 */

import { Pod, ReplicaSet } from '../../../controller/kube/kinds.ts'
import { selects } from '../../../controller/kube/labelselector.ts'
import { messageOf } from '../../../shared/errors.ts'
import { carryOutClaim, claim } from '../common/claim.ts'
import { createPods, deletePods } from '../common/pod-changes.ts'
import { comeBack, type Install, named } from '../common/surroundings.ts'
import { selectedBy } from '../common/wake.ts'
import { decideReplicaSet, type Failure, statusOfReplicaSet } from './decide.ts'

export const installReplicaSets: Install = ({ manager, clock }) => {
  const sets = manager.cache.informer(ReplicaSet)
  manager
    .controller(ReplicaSet, named('replicaset-controller'))
    .owns(Pod)
    .watches(Pod, pod => selectedBy(sets, pod))
    .reconcile(async ({ object: set, client, event }) => {
      const all = await client.list(Pod, { namespace: set.metadata.namespace })
      const isSelected = (pod: (typeof all)[number]) => selects(set.spec?.selector, pod.metadata.labels)
      const pods = await carryOutClaim(client, Pod, set, claim(set, all, isSelected))
      const { create, remove, after } = decideReplicaSet(set, pods, clock.now())
      let failure: Failure | undefined
      let thrown: unknown
      try {
        await createPods(client, create, event)
        await deletePods(client, remove, event)
      } catch (error) {
        thrown = error
        failure = { reason: create.length > 0 ? 'FailedCreate' : 'FailedDelete', message: messageOf(error) }
        event('Warning', failure.reason, `Error: ${failure.message}`)
      }
      const left = client.owned(Pod, set)
      await client.status(ReplicaSet, set, statusOfReplicaSet(set, left, clock.now(), failure))
      if (thrown !== undefined) throw thrown
      return comeBack(after)
    })
}
