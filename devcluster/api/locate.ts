/**
 * Where a Service is reached: the address of one of its ready pods, from its EndpointSlices.
 */
import type { Locate } from './admission/call.ts'
import { list } from './resources/strategies/lists.ts'
import type { Store } from './store/store.ts'

export function locator(store: Store): Locate {
  return (namespace, name, port) => {
    const service = store.get('/services', namespace, name)
    const declared = list(service?.spec?.ports).find(one => one.port === port)
    if (!service || !declared) return undefined
    const slices = store.page('discovery.k8s.io/endpointslices', { namespace }).items
    for (const slice of slices) {
      if (slice.metadata.labels?.['kubernetes.io/service-name'] !== name) continue
      const target = list(slice.ports).find(one => (one.name ?? '') === (declared.name ?? ''))?.port
      const ready = list(slice.endpoints).find(({ conditions }) => conditions?.ready !== false)
      const host = ready?.addresses?.[0]
      if (host && target) return { host, port: target }
    }
    return undefined
  }
}
