/**
 * Deployments: one ReplicaSet for each template they had, the newest grown and the older shrunk step by step.
 */
import type { V1ReplicaSet } from '@kubernetes/client-node'
import type { CachedClient } from '../../../controller/kube/cached.ts'
import { AlreadyExists } from '../../../controller/kube/errors.ts'
import type { Draft, Snapshot } from '../../../controller/kube/kind.ts'
import { Deployment, Pod, ReplicaSet } from '../../../controller/kube/kinds.ts'
import { selects } from '../../../controller/kube/labelselector.ts'
import { carryOutClaim, claim } from '../common/claim.ts'
import { hasFailed, hasSucceeded } from '../common/pods.ts'
import { comeBack, type Install, named, type Tell } from '../common/surroundings.ts'
import { selectedBy } from '../common/wake.ts'
import type { ReplicaSet as OneSet } from '../replicaset/decide.ts'
import { dispensableSets, findFresh, freshAnnotations, newReplicaSet, nextRevision, scaleAnnotations } from './fresh.ts'
import { annotations, isRolling, isScalingEvent, newSize, type Scaling, shrinkOld, sizeOf, spread } from './replicas.ts'
import { isComplete, statusOfDeployment, untilLate } from './status.ts'

type Own = Snapshot<import('@kubernetes/client-node').V1Deployment>
type News = Parameters<typeof statusOfDeployment>[0]['news']

export const installDeployments: Install = ({ manager, clock }) => {
  const deployments = manager.cache.informer(Deployment)
  const sets = manager.cache.informer(ReplicaSet)
  manager
    .controller(Deployment, named('deployment-controller'))
    .owns(ReplicaSet)
    .watches(ReplicaSet, set => selectedBy(deployments, set))
    // Recreate waits for the last old pod to be gone.
    .watches(
      Pod,
      pod =>
        ownersOf(pod)
          .flatMap(owner => sets.by('uid', owner))
          .flatMap(set => deploymentOf(set)),
      {
        when: change => change.type === 'removed' || change.object.status?.phase !== change.old?.status?.phase,
      },
    )
    .reconcile(async ({ object: deployment, client, event }) => {
      const all = await client.list(ReplicaSet, { namespace: deployment.metadata.namespace })
      const isSelected = (set: OneSet) => selects(deployment.spec?.selector, set.metadata.labels)
      const own = await carryOutClaim(client, ReplicaSet, deployment, claim(deployment, all, isSelected))
      const now = clock.now()
      let collisions = deployment.status?.collisionCount ?? 0
      let fresh = findFresh(deployment, own)
      const old = own.filter(set => set !== fresh)
      let news: News
      if (deployment.metadata.deletionTimestamp === undefined) {
        const isStill = deployment.spec?.paused || isScalingEvent(deployment, own)
        if (fresh) fresh = await keepAnnotations(client, deployment, fresh, nextRevision(old))
        if (isStill) await scaleAll(client, deployment, fresh, old, spread(deployment, fresh, old), event)
        else {
          const isBlocked = !isRolling(deployment) && (await stopOld(client, deployment, old, event))
          if (!fresh && !isBlocked) {
            const made = await create(client, deployment, old, collisions)
            collisions = made.collisions
            fresh = made.set
            news = { reason: 'NewReplicaSetCreated', message: `Created new replica set "${fresh.metadata.name}"` }
            const size = sizeOf(fresh)
            if (size > 0)
              event('Normal', 'ScalingReplicaSet', `Scaled up replica set ${fresh.metadata.name} from 0 to ${size}`)
          } else if (fresh && !isBlocked) {
            news = { reason: 'FoundNewReplicaSet', message: `Found new replica set "${fresh.metadata.name}"` }
            const size = newSize(deployment, own, sizeOf(fresh))
            const scaling: Scaling =
              size !== sizeOf(fresh)
                ? new Map([[fresh.metadata.name, size]])
                : isRolling(deployment)
                  ? shrinkOld(deployment, old, fresh)
                  : new Map()
            await scaleAll(client, deployment, fresh, old, scaling, event)
          }
        }
      }
      const revision = fresh?.metadata.annotations?.[annotations.revision]
      if (revision !== undefined && deployment.metadata.annotations?.[annotations.revision] !== revision) {
        const merge = { metadata: { uid: deployment.metadata.uid, annotations: { [annotations.revision]: revision } } }
        // By way of the status: a change of a Deployment's annotations counts as a new generation otherwise.
        await client.patch(Deployment, deployment.metadata, { merge }, { subresource: 'status' })
      }
      const latest = client.owned(ReplicaSet, deployment)
      const freshNow = latest.find(set => set.metadata.name === fresh?.metadata.name)
      const oldNow = latest.filter(set => set !== freshNow)
      const status = statusOfDeployment({ deployment, fresh: freshNow, old: oldNow, collisions, now, news })
      if (deployment.spec?.paused || isComplete(deployment, status))
        for (const set of dispensableSets(deployment, oldNow)) await client.delete(ReplicaSet, set)
      await client.status(Deployment, deployment, status)
      return comeBack(untilLate(deployment, status.conditions, now))
    })
  sets.addIndex('uid', ({ metadata }) => [metadata.uid])
}

function ownersOf({ metadata }: Snapshot): string[] {
  return (metadata.ownerReferences ?? [])
    .filter(({ controller, kind }) => controller && kind === 'ReplicaSet')
    .map(({ uid }) => uid)
}

function deploymentOf({ metadata }: OneSet) {
  const owner = metadata.ownerReferences?.find(({ controller, kind }) => controller && kind === 'Deployment')
  return owner ? [{ name: owner.name, namespace: metadata.namespace }] : []
}

async function keepAnnotations(client: CachedClient, deployment: Own, set: OneSet, revision: number): Promise<OneSet> {
  const wished = freshAnnotations(deployment, set, revision)
  const minReady = deployment.spec?.minReadySeconds ?? 0
  const isSame = Object.entries(wished).every(([name, value]) => set.metadata.annotations?.[name] === value)
  if (isSame && (set.spec?.minReadySeconds ?? 0) === minReady) return set
  const { uid, resourceVersion } = set.metadata
  const merge = { metadata: { uid, resourceVersion, annotations: wished }, spec: { minReadySeconds: minReady } }
  return client.patch(ReplicaSet, set.metadata, { merge })
}

/** Recreate: no new pod before the last old one has ended. True while that is not so. */
async function stopOld(client: CachedClient, deployment: Own, old: readonly OneSet[], event: Tell): Promise<boolean> {
  const scaling: Scaling = new Map(old.filter(set => sizeOf(set) > 0).map(set => [set.metadata.name, 0]))
  await scaleAll(client, deployment, undefined, old, scaling, event)
  if (scaling.size > 0) return true
  const pods = old.flatMap(set => client.owned(Pod, set))
  return pods.some(pod => !hasFailed(pod) && !hasSucceeded(pod))
}

async function create(client: CachedClient, deployment: Own, old: readonly OneSet[], collisions: number) {
  for (let count = collisions; ; count++) {
    const draft: Draft<V1ReplicaSet> = newReplicaSet(deployment, old, count)
    try {
      return { set: await client.create(ReplicaSet, draft), collisions: count }
    } catch (error) {
      if (!(error instanceof AlreadyExists)) throw error
      const there = await client.live.find(ReplicaSet, {
        name: draft.metadata.name ?? '',
        namespace: draft.metadata.namespace,
      })
      const isOurs = there?.metadata.ownerReferences?.some(({ uid }) => uid === deployment.metadata.uid)
      // Ours, and not seen yet: decided anew with it.
      if (!there || isOurs) throw error
    }
  }
}

async function scaleAll(
  client: CachedClient,
  deployment: Own,
  fresh: OneSet | undefined,
  old: readonly OneSet[],
  scaling: Scaling,
  event: Tell,
): Promise<void> {
  const numbers = scaleAnnotations(deployment)
  for (const set of fresh ? [fresh, ...old] : old) {
    const to = scaling.get(set.metadata.name) ?? sizeOf(set)
    const isScaled = scaling.has(set.metadata.name) && to !== sizeOf(set)
    const isActive = sizeOf(set) > 0 || set === fresh
    const isNoted = Object.entries(numbers).every(([name, value]) => set.metadata.annotations?.[name] === value)
    if (!isScaled && (isNoted || !isActive)) continue
    const { uid, resourceVersion, name } = set.metadata
    const merge = { metadata: { uid, resourceVersion, annotations: numbers }, spec: { replicas: to } }
    await client.patch(ReplicaSet, set.metadata, { merge })
    const way = to > sizeOf(set) ? 'up' : 'down'
    if (isScaled) event('Normal', 'ScalingReplicaSet', `Scaled ${way} replica set ${name} from ${sizeOf(set)} to ${to}`)
  }
}
