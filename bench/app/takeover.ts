// The leader is killed while another waits: how long until there is a new one, until it has reached the first and the last sidecar, and
// until a wish that was made at that moment has its run.

import type { Api, Meta } from '../api.ts'
import type { Controller } from './controllers.ts'
import { within } from './fleet.ts'
import { ownNamespace } from './objects.ts'
import { monotonic } from './time.ts'
import { type WishOptions, wish } from './times.ts'

export interface Takeover {
  /** Milliseconds from the kill on. */
  lease: number
  first: number
  all: number
  wish: number
  /** Requests that the new leader made until it was quiet, per app; without events, leases and watches. */
  writes: number
  peak: number
}

export interface TakeoverOptions extends Omit<WishOptions, 'count' | 'pace'> {
  readonly leader: Controller
  readonly next: Controller
  readonly apps: number
  /** Whose wish it is. */
  readonly wisher: string
  /** Milliseconds for each part of it. */
  readonly limit: number
}

export async function measureTakeover(options: TakeoverOptions): Promise<Takeover> {
  const { api, fleet, leader, next, apps, wisher, limit } = options
  const stopped = new AbortController()
  try {
    const { led } = await leads(api, stopped.signal)
    const since = Date.now()
    const killed = monotonic()
    await leader.kill()
    const wished = wish(wisher, options)
    const [lease, connected, { begin }] = await Promise.all([
      within(led, limit, 'another leader'),
      fleet.connected(apps, limit),
      wished,
    ])
    await next.quiet(5_000, limit)
    const entries = await next.requests(since)
    const own = entries.filter(
      ({ verb, resource }) => !['get', 'list', 'watch'].includes(verb) && !['leases', 'events'].includes(resource),
    )
    return {
      lease: lease - killed,
      first: connected.first - killed,
      all: connected.all - killed,
      wish: begin,
      writes: own.length / apps,
      peak: next.peak(),
    }
  } finally {
    stopped.abort()
  }
}

/** A promise of the time at which the lease has another holder than now. */
async function leads(api: Api, signal: AbortSignal): Promise<{ led: Promise<number> }> {
  interface Lease {
    metadata: Meta
    spec: { holderIdentity?: string }
  }
  const path = `/apis/coordination.k8s.io/v1/namespaces/${ownNamespace}/leases`
  const { items, metadata } = await api.request<{ items: Lease[]; metadata: Meta }>('GET', path)
  const [before] = items
  if (!before) throw new Error('there is no lease')
  const led = new Promise<number>((resolve, reject) => {
    const query = `watch=1&resourceVersion=${metadata.resourceVersion}`
    api
      .watch<Lease>(
        `${path}?${query}`,
        ({ object }) => {
          const { holderIdentity } = object.spec
          if (holderIdentity && holderIdentity !== before.spec.holderIdentity) resolve(monotonic())
        },
        signal,
      )
      .catch(reject)
  })
  return { led }
}
