/**
 * EndpointSlices of Services that select pods.
 */
import { EndpointSlice, Node, Pod, Service } from '../../../controller/kube/kinds.ts'
import { selects } from '../../../controller/kube/labelselector.ts'
import { type Install, named } from '../common/surroundings.ts'
import { decideSlices, managedBy } from './decide.ts'

const zoneLabel = 'topology.kubernetes.io/zone'
const nameLabel = 'kubernetes.io/service-name'
const [managerLabel, manager_] = Object.entries(managedBy)[0] as [string, string]

export const installEndpoints: Install = ({ manager }) => {
  const services = manager.cache.informer(Service)
  manager
    .controller(Service, named('endpointslice-controller'))
    .owns(EndpointSlice)
    .watches(Pod, ({ metadata }) =>
      services
        .list({ namespace: metadata.namespace })
        .filter(({ spec }) => spec?.selector && selects({ matchLabels: spec.selector }, metadata.labels))
        .map(service => service.metadata),
    )
    .watches(Node, () => [])
    .reconcile(async ({ object: service, client }) => {
      const { name, namespace, deletionTimestamp } = service.metadata
      if (!service.spec?.selector || service.spec.type === 'ExternalName' || deletionTimestamp) return
      const matchLabels = service.spec.selector
      const all = await client.list(Pod, { namespace })
      const pods = all
        .filter(pod => selects({ matchLabels }, pod.metadata.labels))
        .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
      const zones = new Map(
        (await client.list(Node)).map(node => [node.metadata.name, node.metadata.labels?.[zoneLabel] ?? '']),
      )
      const slices = await client.list(EndpointSlice, {
        namespace,
        labels: { [nameLabel]: name, [managerLabel]: manager_ },
      })
      const { create, change, remove } = decideSlices(service, pods, zones, slices)
      for (const { slice, to } of change) {
        const { uid, resourceVersion } = slice.metadata
        const gone = Object.keys(slice.metadata.labels ?? {}).filter(label => !(label in to.labels))
        const labels = { ...Object.fromEntries(gone.map(label => [label, null])), ...to.labels }
        const merge = { metadata: { uid, resourceVersion, labels }, endpoints: to.endpoints, ports: to.ports }
        await client.patch(EndpointSlice, slice.metadata, { merge })
      }
      for (const slice of create) await client.create(EndpointSlice, slice)
      for (const slice of remove) await client.delete(EndpointSlice, slice)
    })
}
