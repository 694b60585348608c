/**
 * Pods that a workload makes and deletes, each told by an event as kube-controller-manager tells it.
 */
import type { V1Pod } from '@kubernetes/client-node'
import type { CachedClient } from '../../../controller/kube/cached.ts'
import type { Draft } from '../../../controller/kube/kind.ts'
import { Pod as PodKind } from '../../../controller/kube/kinds.ts'
import type { Pod } from './pods.ts'
import type { Tell } from './surroundings.ts'

export async function createPods(client: CachedClient, pods: readonly Draft<V1Pod>[], event: Tell): Promise<void> {
  for (const pod of pods) {
    const { metadata } = await client.create(PodKind, pod)
    event('Normal', 'SuccessfulCreate', `Created pod: ${metadata.name}`)
  }
}

export async function deletePods(client: CachedClient, pods: readonly Pod[], event: Tell): Promise<void> {
  for (const pod of pods) {
    await client.delete(PodKind, pod)
    event('Normal', 'SuccessfulDelete', `Deleted pod: ${pod.metadata.name}`)
  }
}
