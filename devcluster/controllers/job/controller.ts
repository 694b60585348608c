/**
 * Jobs: pods until enough have succeeded, or too many have failed; and pods of Jobs that are gone are let go.
 */
import type { CachedClient } from '../../../controller/kube/cached.ts'
import { NotFound } from '../../../controller/kube/errors.ts'
import { Job, Pod } from '../../../controller/kube/kinds.ts'
import { selects } from '../../../controller/kube/labelselector.ts'
import { carryOutClaim, claim } from '../common/claim.ts'
import { createPods, deletePods } from '../common/pod-changes.ts'
import type { Pod as OnePod } from '../common/pods.ts'
import { comeBack, type Install, named } from '../common/surroundings.ts'
import { selectedBy } from '../common/wake.ts'
import { decideJob, tracking } from './decide.ts'

export const installJobs: Install = ({ manager, clock }) => {
  const jobs = manager.cache.informer(Job)
  manager
    .controller(Job, named('job-controller'))
    .owns(Pod)
    .watches(Pod, pod => selectedBy(jobs, pod))
    .reconcile(async ({ object: job, client, event }) => {
      const all = await client.list(Pod, { namespace: job.metadata.namespace })
      const isSelected = (pod: OnePod) => selects(job.spec?.selector, pod.metadata.labels)
      const pods = await carryOutClaim(client, Pod, job, claim(job, all, isSelected))
      if (job.metadata.deletionTimestamp) return
      const decision = decideJob(job, pods, clock.now())
      if (decision.expire) return void (await client.delete(Job, job, { propagation: 'Foreground' }))
      await client.status(Job, job, decision.status)
      for (const pod of decision.release) await release(client, pod)
      await deletePods(client, decision.remove, event)
      await createPods(client, decision.create, event)
      return comeBack(decision.after)
    })
  manager
    .controller(Pod, named('job-orphans-controller'))
    .watches(Job, job =>
      manager.cache
        .informer(Pod)
        .by('owner', job.metadata.uid)
        .map(pod => pod.metadata),
    )
    .reconcile(async ({ object: pod, client }) => {
      if (!pod.metadata.finalizers?.includes(tracking)) return
      const owner = pod.metadata.ownerReferences?.find(({ controller, kind }) => controller && kind === 'Job')
      const job = owner && jobs.get({ name: owner.name, namespace: pod.metadata.namespace })
      const isLost = !job || job.metadata.uid !== owner?.uid || job.metadata.deletionTimestamp !== undefined
      if (isLost) await release(client, pod)
    })
}

async function release(client: CachedClient, { metadata }: OnePod): Promise<void> {
  const { uid, resourceVersion } = metadata
  const finalizers = (metadata.finalizers ?? []).filter(one => one !== tracking)
  await client.patch(Pod, metadata, { merge: { metadata: { uid, resourceVersion, finalizers } } }).catch(error => {
    if (!(error instanceof NotFound)) throw error
  })
}
