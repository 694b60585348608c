/**
 * Scaling a workload to zero and back, with the number kept on the workload itself.
 *
 * Guarantees: every write is made against the version that was decided by; who scales meanwhile makes it a Conflict, and it is decided anew. Where the number of replicas
 * is in `spec`, it and the annotation change in one write; elsewhere the number is kept first, and forgotten last.
 */
import type { CachedClient } from '../../kube/cached.ts'
import type { Snapshot } from '../../kube/kind.ts'
import type { Workload } from './gather.ts'
import { replicasAnnotation } from './marks.ts'

/** To zero; the number that it has now is kept. */
export async function scaleToZero(client: CachedClient, workload: Workload): Promise<void> {
  const kept = String(workload.replicas)
  if (workload.isPlain) return void (await annotate(client, workload, kept, 0))
  const { metadata } = await annotate(client, workload, kept)
  await setScale(client, workload, 0, metadata.resourceVersion)
}

/** Back up; what was kept is forgotten. */
export async function scaleUp(client: CachedClient, workload: Workload, to: number): Promise<void> {
  if (workload.isPlain) return void (await annotate(client, workload, null, to))
  const resourceVersion = await setScale(client, workload, to, workload.resourceVersion)
  await annotate(client, { ...workload, resourceVersion }, null)
}

/** Somebody else has scaled it up: what was kept means nothing any more. */
export async function forgetReplicas(client: CachedClient, workload: Workload): Promise<void> {
  await annotate(client, workload, null)
}

function annotate(
  client: CachedClient,
  { of, namespace, name, uid, resourceVersion }: Workload,
  kept: string | null,
  replicas?: number,
): Promise<Snapshot> {
  const annotations = { [replicasAnnotation]: kept }
  const merge = {
    metadata: { uid, resourceVersion, annotations },
    ...(replicas !== undefined && { spec: { replicas } }),
  }
  return client.patch(of, { namespace, name }, { merge })
}

/** @returns the version that it has then */
async function setScale(
  client: CachedClient,
  { of, namespace, name }: Workload,
  replicas: number,
  resourceVersion: string,
): Promise<string> {
  const merge = { metadata: { resourceVersion }, spec: { replicas } }
  const scale = await client.live.patch(of, { namespace, name }, { merge }, { subresource: 'scale' })
  return scale.metadata.resourceVersion
}
