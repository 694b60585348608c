/**
 * Whose a Lease is, and what to do about it. Pure: reading, writing and waiting are elsewhere (election.ts).
 *
 * Guarantee: times that other machines wrote are never compared with ours. A lease is somebody's for its duration from when we, on our
 * monotonic clock, first saw it as it is now; so clocks may differ as they like, and a holder that still renews is never overtaken.
 */
import type { V1Lease } from '@kubernetes/client-node'
import type { Draft, Live, Ref } from './kind.ts'

/** What we know of a lease. */
export interface Observation {
  /** As last read; undefined where there is none. */
  readonly lease: Live<V1Lease> | undefined
  /** Who holds it; empty if nobody does. Of a lease that vanished: who held it last. */
  readonly holder: string
  /** When it is free unless it changes, on our monotonic clock; -Infinity if it is. */
  readonly freeAt: number
  /** How often it has passed to another holder; undefined if we never saw it. */
  readonly transitions: number | undefined
}

/** Of a lease that nobody ever held. */
export const unseen: Observation = {
  lease: undefined,
  holder: '',
  freeAt: Number.NEGATIVE_INFINITY,
  transitions: undefined,
}

/**
 * What we know after reading `lease` (undefined: there is none) at `now`, on our monotonic clock. `duration`, in milliseconds, is for one
 * that states none.
 */
export function observe(
  before: Observation,
  lease: Live<V1Lease> | undefined,
  now: number,
  duration: number,
): Observation {
  // Whoever held it does not know yet that it was deleted, and goes on until its next renewal: it keeps its time.
  if (!lease) return { ...before, lease: undefined }
  // Any write counts as a renewal, not only another renewTime: that one is by a clock that may have been set back.
  if (before.lease && sameVersion(before.lease, lease)) return { ...before, lease }
  const spec = lease.spec ?? {}
  const holder = spec.holderIdentity ?? ''
  // The holder's own word on how long it may believe to lead, which is not ours when the two are configured differently.
  const lasts = spec.leaseDurationSeconds ? spec.leaseDurationSeconds * 1000 : duration
  return {
    lease,
    holder,
    freeAt: holder === '' ? Number.NEGATIVE_INFINITY : now + lasts,
    transitions: spec.leaseTransitions ?? 0,
  }
}

export type Decision =
  /** It is free: take it. */
  | { readonly do: 'acquire' }
  /** It is ours: keep it. */
  | { readonly do: 'renew' }
  /** It is somebody else's, if it does not change until `until` on our monotonic clock. */
  | { readonly do: 'wait'; readonly until: number }

export function decide(seen: Observation, identity: string, now: number): Decision {
  if (seen.holder === identity) return { do: 'renew' }
  return now >= seen.freeAt ? { do: 'acquire' } : { do: 'wait', until: seen.freeAt }
}

/** The lease as it is to be written when `identity` takes or keeps it. `now` is wall time, for people to read. */
export function claimed(seen: Observation, identity: string, at: Ref, duration: number, now: number): Draft<V1Lease> {
  const keeps = seen.holder === identity
  const time = microTime(now)
  return {
    // Whole, with its uid: an update by version alone would bring a deleted lease back to life.
    ...(seen.lease ?? { metadata: { ...at } as Draft['metadata'] }),
    spec: {
      ...seen.lease?.spec,
      holderIdentity: identity,
      // Rounded up: the others wait rather longer than we hold.
      leaseDurationSeconds: Math.ceil(duration / 1000),
      acquireTime: (keeps && seen.lease?.spec?.acquireTime) || time,
      renewTime: time,
      leaseTransitions: (seen.transitions ?? -1) + (keeps ? 0 : 1),
    },
  }
}

/** The lease as its holder leaves it: free at once. Undefined where there is none to leave. */
export function released(lease: Live<V1Lease> | undefined, now: number): Draft<V1Lease> | undefined {
  return (
    lease && {
      ...lease,
      spec: { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(now) },
    }
  )
}

/** A time in the only form that the server takes for a MicroTime: six digits after the point. */
export function microTime(now: number): string {
  return new Date(now).toISOString().replace('Z', '000Z')
}

function sameVersion(a: Live, b: Live): boolean {
  return a.metadata.resourceVersion === b.metadata.resourceVersion && a.metadata.uid === b.metadata.uid
}
