/**
 * What every namespace has: the service account `default` and, where the cluster's authority is known, the ConfigMap `kube-root-ca.crt`.
 */

import { AlreadyExists, Forbidden, NotFound } from '../../../controller/kube/errors.ts'
import type { Kind, Snapshot } from '../../../controller/kube/kind.ts'
import { ConfigMap, Namespace, ServiceAccount } from '../../../controller/kube/kinds.ts'
import { type Install, named } from '../common/surroundings.ts'

const bundle = 'kube-root-ca.crt'
const about =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.'

export const installAccounts: Install = ({ manager, ca }) => {
  const controller = manager
    .controller(Namespace, named('serviceaccount-controller'))
    .watches(ServiceAccount, account => ofName(account, 'default'))
  if (ca !== undefined) controller.watches(ConfigMap, map => ofName(map, bundle))
  controller.reconcile(async ({ object, client }) => {
    if (object.metadata.deletionTimestamp) return
    const namespace = object.metadata.name
    const make = async <T extends object>(kind: Kind<T>, draft: Parameters<typeof client.create<T>>[1]) =>
      void (await client.create(kind, draft).catch(error => {
        // The namespace went meanwhile: then it is forbidden, or not found.
        if (!(error instanceof AlreadyExists || error instanceof NotFound || error instanceof Forbidden)) throw error
      }))
    if (!(await client.find(ServiceAccount, { name: 'default', namespace })))
      await make(ServiceAccount, { metadata: { name: 'default', namespace } })
    if (ca === undefined) return
    const map = await client.find(ConfigMap, { name: bundle, namespace })
    const data = { 'ca.crt': ca }
    const annotations = { 'kubernetes.io/description': about }
    if (!map) await make(ConfigMap, { metadata: { name: bundle, namespace, annotations }, data })
    else if (map.data?.['ca.crt'] !== ca)
      await client.patch(ConfigMap, { name: bundle, namespace }, { merge: { data } })
  })
}

function ofName({ metadata }: Snapshot, name: string) {
  return metadata.name === name && metadata.namespace ? [{ name: metadata.namespace }] : []
}
