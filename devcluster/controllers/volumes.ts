/**
 * PersistentVolumeClaims: bound at once to a volume of their own, whatever their class; kept while a pod uses them; their volume goes with them.
 * Where the data is, is the node's business.
 */
import type { V1PersistentVolume, V1PersistentVolumeClaim, V1Pod } from '@kubernetes/client-node'
import type { CachedClient } from '../../controller/kube/cached.ts'
import { AlreadyExists, NotFound } from '../../controller/kube/errors.ts'
import type { Draft, Snapshot } from '../../controller/kube/kind.ts'
import { PersistentVolume, PersistentVolumeClaim, Pod } from '../../controller/kube/kinds.ts'
import { hasFailed, hasSucceeded } from './common/pods.ts'
import { type Install, named } from './common/surroundings.ts'

type Claim = Snapshot<V1PersistentVolumeClaim>

const protection = 'kubernetes.io/pvc-protection'
/** Says that a volume is one of ours: nobody mounts it but the embedded node. */
const driver = 'devcluster.shipmate.dev'

export const installVolumes: Install = ({ manager }) => {
  manager
    .controller(PersistentVolumeClaim, named('persistentvolume-binder'))
    .watches(Pod, pod => claimsOf(pod).map(name => ({ name, namespace: pod.metadata.namespace })))
    .watches(PersistentVolume, ({ spec }) =>
      spec?.claimRef?.name ? [{ name: spec.claimRef.name, namespace: spec.claimRef.namespace }] : [],
    )
    .reconcile(async ({ object: claim, client }) => {
      const { finalizers = [], deletionTimestamp } = claim.metadata
      if (deletionTimestamp) {
        const pods = await client.list(Pod, { namespace: claim.metadata.namespace })
        const isUsed = pods.some(
          pod => claimsOf(pod).includes(claim.metadata.name) && !hasFailed(pod) && !hasSucceeded(pod),
        )
        if (!isUsed && finalizers.includes(protection))
          await writeFinalizers(
            client,
            claim,
            finalizers.filter(one => one !== protection),
          )
        return
      }
      if (!finalizers.includes(protection))
        return void (await writeFinalizers(client, claim, [...finalizers, protection]))
      await bind(client, claim)
    })
    .gone(async ({ ref, client }) => {
      // A new claim of that name has another uid, and a volume of its own.
      for (const volume of await client.list(PersistentVolume)) {
        const { claimRef, csi } = volume.spec ?? {}
        if (csi?.driver === driver && claimRef?.name === ref.name && claimRef.namespace === ref.namespace)
          await client.delete(PersistentVolume, volume)
      }
    })
}

async function bind(client: CachedClient, claim: Claim): Promise<void> {
  const { uid, resourceVersion } = claim.metadata
  const name = claim.spec?.volumeName ?? `pvc-${uid}`
  if (!claim.spec?.volumeName) {
    await client.create(PersistentVolume, volumeOf(claim)).catch(error => {
      if (!(error instanceof AlreadyExists)) throw error
    })
    const annotations = { 'pv.kubernetes.io/bind-completed': 'yes', 'pv.kubernetes.io/bound-by-controller': 'yes' }
    const merge = { metadata: { uid, resourceVersion, annotations }, spec: { volumeName: name } }
    await client.patch(PersistentVolumeClaim, claim.metadata, { merge })
  }
  const volume = await client.find(PersistentVolume, { name })
  if (volume && volume.status?.phase !== 'Bound') await client.status(PersistentVolume, volume, { phase: 'Bound' })
  const { accessModes, resources } = claim.spec ?? {}
  const storage = volume?.spec?.capacity?.['storage'] ?? resources?.requests?.['storage'] ?? '1Gi'
  await client.status(PersistentVolumeClaim, claim, { phase: 'Bound', accessModes, capacity: { storage } })
}

function volumeOf({ metadata, spec }: Claim): Draft<V1PersistentVolume> {
  const { name, namespace, uid, resourceVersion } = metadata
  return {
    metadata: { name: `pvc-${uid}`, annotations: { 'pv.kubernetes.io/provisioned-by': driver } },
    spec: {
      accessModes: spec?.accessModes ?? ['ReadWriteOnce'],
      capacity: { storage: spec?.resources?.requests?.['storage'] ?? '1Gi' },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', name, namespace, uid, resourceVersion },
      csi: { driver, volumeHandle: uid },
      persistentVolumeReclaimPolicy: 'Delete',
      ...(spec?.storageClassName ? { storageClassName: spec.storageClassName } : {}),
      ...(spec?.volumeMode ? { volumeMode: spec.volumeMode } : {}),
    },
  } as Draft<V1PersistentVolume>
}

async function writeFinalizers(
  client: CachedClient,
  { metadata }: Claim,
  finalizers: readonly string[],
): Promise<void> {
  const { uid, resourceVersion } = metadata
  await client
    .patch(PersistentVolumeClaim, metadata, { merge: { metadata: { uid, resourceVersion, finalizers } } })
    .catch(error => {
      if (!(error instanceof NotFound)) throw error
    })
}

function claimsOf(pod: Snapshot<V1Pod>): string[] {
  return (pod.spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) =>
    persistentVolumeClaim ? [persistentVolumeClaim.claimName] : ephemeral ? [`${pod.metadata.name}-${name}`] : [],
  )
}
