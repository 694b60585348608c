/**
 * What is to be done about certificates and keys, from what is stored and the time. Pure.
 *
 * An authority, as a signing key, passes three phases. *Announced*: everybody is to believe it, nothing is issued by it. *Issuing*, once everybody has
 * believed it for as long as news may take. *Retired*, when its successor issues: what it issued is replaced, it is still believed, its key is
 * gone. When nothing of it has been in use for as long as news may take, it is dropped.
 *
 * Guarantee: whatever the order in which what is written reaches pods and controllers, if each write does so within `propagation`: every certificate in
 * use holds under every list of authorities in use, every signature in use under every list of keys. The one exception is an authority that is
 * about to expire before everybody has its successor: then waiting would harm all.
 */
import type { Lifetimes } from './lifetimes.ts'

export type Phase = 'announced' | 'issuing' | 'retired'

/** An authority or a signing key. Times are in milliseconds since 1970. */
export interface Anchor {
  readonly id: string
  readonly phase: Phase
  /** When this phase began. */
  readonly at: number
  readonly from: number
  readonly until: number
}

export interface Leaf {
  /** The id of the authority that issued it. */
  readonly issuer: string
  readonly serial: string
  readonly from: number
  readonly until: number
  /** Since when what stands there is by this issuer. */
  readonly at: number
}

/** What the controllers have. */
export interface Root {
  readonly authorities: readonly Anchor[]
  readonly keys: readonly Anchor[]
  readonly client: Leaf | undefined
}

/** What the pods of an app have, or get. */
export interface AppTrust {
  /** Undefined: there is none, or none that could be served with. */
  readonly server: Leaf | undefined
  readonly authorities: readonly string[]
  readonly keys: readonly string[]
  /** When the lists of authorities and keys were last changed. */
  readonly at: number
}

/** Who signed a lifecycle's ConfigMap, and when that was written. */
export interface Signature {
  readonly key: string | undefined
  readonly at: number
}

export type Sort = 'authorities' | 'keys'

/** What is to be written to the root, all at once. */
export type RootStep =
  | { readonly do: 'announce'; readonly sort: Sort }
  /** The announced one issues from now on, the one before it is retired. */
  | { readonly do: 'promote'; readonly sort: Sort; readonly id: string }
  | { readonly do: 'drop'; readonly sort: Sort; readonly id: string }
  | { readonly do: 'issue' }

export interface RootDecision {
  readonly steps: readonly RootStep[]
  /** When to look again if nothing else happens. */
  readonly again: number
}

export interface AppDecision {
  /** Whether the certificate that is there stays; else a new one is issued. */
  readonly isKept: boolean
  /** Whether the lists of authorities and keys are as they should be. */
  readonly isListed: boolean
  /** When to look again if nothing else happens. */
  readonly again: number
}

export function decideRoot(
  now: number,
  root: Root,
  apps: readonly AppTrust[],
  signatures: readonly Signature[],
  lifetimes: Lifetimes,
): RootDecision {
  const { propagation } = lifetimes
  const times: number[] = []
  /** Whether it is time; if not, it is to be looked at then. */
  const isDue = (at: number): boolean => {
    if (now >= at) return true
    times.push(at)
    return false
  }

  const rotate = (sort: Sort, issued: readonly { issuer: string | undefined; at: number }[]): RootStep[] => {
    const anchors = root[sort]
    const announced = anchors.find(({ phase }) => phase === 'announced')
    const issuing = anchors.find(({ phase }) => phase === 'issuing')
    const retired = anchors.filter(({ phase }) => phase === 'retired')
    // Nobody believes anybody yet: the first one issues as soon as it is there.
    if (!issuing) return announced ? [{ do: 'promote', sort, id: announced.id }] : [{ do: 'announce', sort }]
    if (announced) {
      const isLate = isDue(issuing.until - lateFor(issuing))
      const believed = apps.every(app => app[sort].includes(announced.id))
      const since = Math.max(announced.at, ...apps.map(({ at }) => at))
      if (isLate || (believed && isDue(since + propagation))) return [{ do: 'promote', sort, id: announced.id }]
      return []
    }
    const gone = retired.filter(({ id, until, at: since }) => {
      const last = Math.max(since, ...issued.map(({ issuer, at }) => (issuer === id ? Number.POSITIVE_INFINITY : at)))
      return now >= until || (Number.isFinite(last) && isDue(last + propagation))
    })
    if (gone.length > 0) return gone.map(({ id }) => ({ do: 'drop', sort, id }))
    // One change at a time: a third would be one too many to tell apart.
    if (retired.length === 0 && isDue(renewalOf(issuing, issuing.id))) return [{ do: 'announce', sort }]
    return []
  }

  const leaves = [root.client, ...apps.map(({ server }) => server)]
  const certificates = leaves.map(leaf => ({ issuer: leaf?.issuer, at: leaf?.at ?? now }))
  const signed = signatures.map(({ key, at }) => ({ issuer: key, at }))
  const steps = [...rotate('authorities', certificates), ...rotate('keys', signed)]
  const issuer = root.authorities.find(({ phase }) => phase === 'issuing')
  if (issuer && !steps.some(step => step.do === 'promote' && step.sort === 'authorities')) {
    if (!isFresh(root.client, issuer, isDue)) steps.push({ do: 'issue' })
  }
  return { steps, again: Math.min(...times) }
}

export function decideApp(now: number, root: Root, app: AppTrust): AppDecision {
  const issuer = root.authorities.find(({ phase }) => phase === 'issuing')
  let again = Number.POSITIVE_INFINITY
  const isDue = (at: number): boolean => {
    if (now < at) again = at
    return now >= at
  }
  const isKept = issuer !== undefined && isFresh(app.server, issuer, isDue)
  const isListed = sameIds(app.authorities, root.authorities) && sameIds(app.keys, root.keys)
  return { isKept, isListed, again }
}

/** Whether a certificate may stay. */
function isFresh(leaf: Leaf | undefined, issuer: Anchor, isDue: (at: number) => boolean): boolean {
  return leaf !== undefined && leaf.issuer === issuer.id && !isDue(renewalOf(leaf, leaf.serial))
}

/** At two thirds of its time, a little earlier for each: the same every time, and different from others'. */
function renewalOf({ from, until }: { from: number; until: number }, id: string): number {
  const part = Number.parseInt(id.slice(-6), 16) / 0x1000000
  return Math.floor(from + (until - from) * (2 / 3 - (Number.isNaN(part) ? 0 : part) / 15))
}

/** How long before its end an authority is replaced, whoever has not heard of it. */
const lateFor = ({ from, until }: Anchor) => (until - from) / 6

const sameIds = (ids: readonly string[], anchors: readonly Anchor[]) =>
  ids.length === anchors.length && anchors.every(({ id }) => ids.includes(id))
