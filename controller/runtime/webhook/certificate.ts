/**
 * The certificate of the webhooks: what is to become of it, from what is stored and the time. Pure.
 *
 * Each certificate has an authority of its own, whose key is thrown away when it has signed: so nobody can sign another. There is one that is served with (*current*),
 * and, while it is being replaced, either one that is to follow (*next*: its authority stands in the bundle, it is not served with yet) or the authority of the one
 * before (*previous*: still in the bundle).
 *
 * - none that can be used → current, at once. Where this process still knows what there was, that stays, and the new one is next.
 * - two thirds of its time over → next is made.
 * - every registration has had next's authority for as long as news may take → next is current, what was current is previous.
 * - that was long enough ago, or previous has ended → it is dropped.
 *
 * Guarantee: if news reaches the API servers and all replicas within `propagation`, the certificate that any replica serves with holds under the bundle that any API
 * server has. The one exception is a certificate that is about to end before its successor is known: then waiting would harm all.
 */

import { createAuthority, issue } from '../../../shared/authority.ts'
import type { Names } from '../../../shared/certificate.ts'
import type { Served, Stored } from './stored.ts'

/** In milliseconds. */
export interface CertificateLifetimes {
  /** Of a certificate and its authority. Default 90 days. */
  readonly certificate: number
  /** The longest that a write may take until all API servers and replicas have it. Default an hour. */
  readonly propagation: number
  /** By how much clocks may differ: everything holds from so much earlier on. Default 5 minutes. */
  readonly skew: number
}

const day = 86_400_000

export const usualCertificateLifetimes: CertificateLifetimes = {
  certificate: 90 * day,
  propagation: 3_600_000,
  skew: 300_000,
}

export interface Situation {
  readonly now: number
  /** What is stored, as far as it can be used. */
  readonly stored: Stored
  /** What this process knew last, with what it serves. */
  readonly known: Stored | undefined
  /** Since when every registration has had the authority of `next`; undefined: some have not. */
  readonly believed: number | undefined
  readonly names: Names
  readonly lifetimes: CertificateLifetimes
}

export interface Plan {
  /** Undefined: what is stored stays as it is. */
  readonly next: Stored | undefined
  /** When to look again if nothing else happens, in milliseconds since 1970. */
  readonly again: number
}

export function planCertificate(situation: Situation): Plan {
  const { now, stored, known, believed, lifetimes } = situation
  const { propagation } = lifetimes
  const { current, next, previous } = stored
  if (!current) {
    const made = make(situation)
    const before = known?.current
    // Others still serve with it, and with the one before: nobody may meet a certificate that is not in the bundle.
    if (before && before.until > now + propagation) return written(situation, { ...known, next: known.next ?? made })
    const previous = before && { ca: before.ca, until: before.until }
    return written(situation, { current: made, previous, since: now })
  }
  if (next) {
    const late = current.until - (current.until - madeAt(current, lifetimes)) / 6
    const due = Math.min(late, believed === undefined ? Number.POSITIVE_INFINITY : believed + propagation)
    if (now < due) return { next: undefined, again: due }
    return written(situation, { current: next, previous: { ca: current.ca, until: current.until }, since: now })
  }
  // One change at a time: a third authority would be one too many to tell apart.
  const due = previous
    ? Math.min(previous.until, (stored.since ?? Number.POSITIVE_INFINITY) + propagation)
    : renewalOf(current, lifetimes)
  if (now < due) return { next: undefined, again: due }
  return written(situation, previous ? { current } : { current, next: make(situation) })
}

function written(situation: Situation, stored: Stored): Plan {
  const { again } = planCertificate({ ...situation, stored, known: stored, believed: undefined })
  return { next: stored, again }
}

/** At two thirds of its time. */
function renewalOf(served: Served, lifetimes: CertificateLifetimes): number {
  const made = madeAt(served, lifetimes)
  return Math.floor(made + ((served.until - made) * 2) / 3)
}

/** It holds from before that on. */
const madeAt = ({ from, until }: Served, { skew }: CertificateLifetimes) => Math.min(from + skew, until)

function make({ now, names, lifetimes }: Situation): Served {
  // Certificates have whole seconds.
  const span = {
    from: Math.floor((now - lifetimes.skew) / 1000) * 1000,
    until: Math.ceil((now + lifetimes.certificate) / 1000) * 1000,
  }
  const authority = createAuthority(span)
  return { ...issue(authority, 'server', names, span), ca: authority.cert, ...span }
}
