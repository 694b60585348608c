/**
 * StatefulSets: gathers what there is, carries out what decide.ts decides, writes the status.
 */
import type { CachedClient } from '../../../controller/kube/cached.ts'
import { NotFound } from '../../../controller/kube/errors.ts'
import { ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet } from '../../../controller/kube/kinds.ts'
import { selects } from '../../../controller/kube/labelselector.ts'
import { carryOutClaim, claim } from '../common/claim.ts'
import { keepHistory, ownRevisions } from '../common/history.ts'
import { historyOf, type Revision } from '../common/revisions.ts'
import { comeBack, type Install, named, type Tell } from '../common/surroundings.ts'
import { selectedBy } from '../common/wake.ts'
import { type Action, decideStatefulSet } from './decide.ts'
import { type StatefulSet as OneSet, ordinalOf } from './identity.ts'

export const installStatefulSets: Install = ({ manager, clock }) => {
  const sets = manager.cache.informer(StatefulSet)
  manager
    .controller(StatefulSet, named('statefulset-controller'))
    .owns(Pod)
    .watches(Pod, pod => selectedBy(sets, pod))
    .owns(ControllerRevision)
    .watches(PersistentVolumeClaim, claim => setsOfClaim(sets.list({ namespace: claim.metadata.namespace }), claim))
    .reconcile(async ({ object: set, client, event }) => {
      const { namespace } = set.metadata
      const all = await client.list(Pod, { namespace })
      const isMember = (pod: (typeof all)[number]) =>
        selects(set.spec?.selector, pod.metadata.labels) && ordinalOf(set, pod) !== undefined
      const pods = await carryOutClaim(client, Pod, set, claim(set, all, isMember))
      const { revisions, history } = await revise(client, set)
      const claims = await client.list(PersistentVolumeClaim, { namespace })
      const decision = decideStatefulSet({ set, pods, revisions, history, claims, now: clock.now() })
      let failure: unknown
      try {
        for (const action of decision.actions) await carryOut(client, set, action, event)
      } catch (error) {
        failure = error
      }
      await client.status(StatefulSet, set, decision.status)
      if (failure !== undefined) throw failure
      return comeBack(decision.after)
    })
}

async function revise(client: CachedClient, set: OneSet) {
  let collisions = set.status?.collisionCount ?? 0
  const before = await ownRevisions(client, set, set.spec?.selector)
  for (;;) {
    const template = set.spec?.template ?? {}
    const history = historyOf({ set, template, hashLabel: 'controller.kubernetes.io/hash', collisions }, before)
    const revisions: Revision[] | undefined = await keepHistory(client, before, history)
    if (revisions) return { revisions, history }
    collisions = history.collisions + 1
  }
}

async function carryOut(client: CachedClient, set: OneSet, action: Action, event: Tell): Promise<void> {
  const of = `in StatefulSet ${set.metadata.name}`
  switch (action.do) {
    case 'createClaim':
      await client.create(PersistentVolumeClaim, action.claim)
      return event('Normal', 'SuccessfulCreate', `create Claim ${action.claim.metadata.name} ${of} success`)
    case 'ownClaim': {
      const { uid, resourceVersion } = action.claim.metadata
      const merge = { metadata: { uid, resourceVersion, ownerReferences: action.owners } }
      return void (await client.patch(PersistentVolumeClaim, action.claim.metadata, { merge }))
    }
    case 'createPod':
      await client.create(Pod, action.pod)
      return event('Normal', 'SuccessfulCreate', `create Pod ${action.pod.metadata.name} ${of} successful`)
    case 'labelPod': {
      const { uid } = action.pod.metadata
      return void (await client.patch(Pod, action.pod.metadata, {
        merge: { metadata: { uid, labels: action.labels } },
      }))
    }
    case 'deletePod':
      await client.delete(Pod, action.pod)
      if (action.why === 'failed')
        event(
          'Warning',
          'RecreatingFailedPod',
          `StatefulSet ${set.metadata.namespace}/${set.metadata.name} is recreating failed Pod ${action.pod.metadata.name}`,
        )
      return event('Normal', 'SuccessfulDelete', `delete Pod ${action.pod.metadata.name} ${of} successful`)
    case 'deleteRevision':
      return void (await client.delete(ControllerRevision, action.revision).catch(ignoreGone))
  }
}

function ignoreGone(error: unknown): void {
  if (!(error instanceof NotFound)) throw error
}

/** A claim's set, by its name: it may own nothing. */
function setsOfClaim(sets: readonly OneSet[], { metadata }: { metadata: { name: string } }) {
  return sets
    .filter(set =>
      (set.spec?.volumeClaimTemplates ?? []).some(one =>
        metadata.name.startsWith(`${one.metadata?.name}-${set.metadata.name}-`),
      ),
    )
    .map(set => set.metadata)
}
