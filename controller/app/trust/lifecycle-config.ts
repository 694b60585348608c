/**
 * The ConfigMap `shipmate-lifecycle-NAME`, by which a lifecycle reaches its pods: signed, and saying by which key.
 */
import type { V1ConfigMap } from '@kubernetes/client-node'
import type { Applied, Snapshot } from '../../kube/kind.ts'
import type { Signature } from './decide.ts'
import { type RootDocument, signingKey } from './root.ts'
import { type SignedLifecycle, signedConfig } from './signing.ts'

const signedBy = 'shipmate.dev/signed-by'
const signedSince = 'shipmate.dev/signed-since'

export const configNameOf = (lifecycle: string) => `shipmate-lifecycle-${lifecycle}`

/** As far as it is read. */
export type LifecycleConfig = Pick<Snapshot<V1ConfigMap>, 'metadata'>

/** Who signed what is there, as it says itself: a wrong word keeps a key that is still needed by nobody, or is mended by the next write. */
export function readSignature({ metadata }: LifecycleConfig): Signature {
  const { annotations = {}, creationTimestamp } = metadata
  return {
    key: annotations[signedBy],
    at: Date.parse(annotations[signedSince] ?? String(creationTimestamp ?? '')) || 0,
  }
}

/** What the ConfigMap is to be: the same for the same lifecycle and key, so that an apply of it changes nothing. */
export function lifecycleConfig(
  now: number,
  root: RootDocument,
  lifecycle: SignedLifecycle,
  stored: LifecycleConfig | undefined,
): Applied<V1ConfigMap> {
  const key = signingKey(root)
  const before = stored && readSignature(stored)
  const since = before?.key === key.id ? before.at : now
  return {
    metadata: {
      name: configNameOf(lifecycle.name),
      namespace: lifecycle.namespace,
      annotations: { [signedBy]: key.id, [signedSince]: new Date(since).toISOString() },
    },
    data: signedConfig(lifecycle, key),
  }
}
