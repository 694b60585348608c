/**
 * The custom resources that are there of a kind, in all namespaces, whatever version of it the cluster serves.
 */
import type { Client } from '../controller/kube/client.ts'
import type { Kind, Live } from '../controller/kube/kind.ts'
import { CustomResourceDefinition } from '../controller/kube/kinds.ts'
import type { CustomResource } from '../controller/toolkit/index.ts'
import { Failure } from './ending.ts'

/** Empty where its CRD is not there. */
export async function customResourcesOf(client: Client, definition: CustomResource): Promise<Live[]> {
  const { name } = definition.crd().metadata
  const crd = await client.find(CustomResourceDefinition, { name })
  if (!crd || crd.metadata.deletionTimestamp) return []
  const { group, names, scope, versions } = crd.spec
  const served = versions.filter(version => version.served)
  const [version] = served.toSorted((a, b) => Number(b.storage) - Number(a.storage))
  if (!version)
    throw new Failure(`no version of ${name} is served, so whether there are custom resources of it is not known`)
  const kind: Kind = {
    ...{ group, version: version.name, kind: names.kind, plural: names.plural },
    namespaced: scope === 'Namespaced',
  }
  return client.list(kind)
}
