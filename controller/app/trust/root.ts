/**
 * The root of trust: authorities, signing keys and the controller's own certificate, as one document in one Secret of the controller's namespace.
 *
 * Guarantees: it is read whole or refused; a retired authority or key has no private half any more. Nothing in it leaves that namespace but certificates
 * of authorities and public keys.
 */
import { X509Certificate } from 'node:crypto'
import * as z from 'zod/mini'
import { createAuthority, issue } from '../../../shared/authority.ts'
import type { Pair } from '../../../shared/certificate.ts'
import { messageOf } from '../../../shared/errors.ts'
import { controllerName } from '../agents/address.ts'
import type { AgentCredentials } from '../agents/credentials.ts'
import { type AppTrust, decideRoot, type Root, type RootStep, type Signature, type Sort } from './decide.ts'
import type { Lifetimes } from './lifetimes.ts'
import { createSigningKey, keyId, type SigningKey } from './signing.ts'

const anchor = {
  id: z.string(),
  phase: z.enum(['announced', 'issuing', 'retired']),
  at: z.number(),
  from: z.number(),
  until: z.number(),
}
const document = z.object({
  authorities: z.array(z.object({ ...anchor, cert: z.string(), key: z.optional(z.string()) })),
  keys: z.array(z.object({ ...anchor, public: z.string(), private: z.optional(z.string()) })),
  client: z.optional(
    z.object({
      ...{ issuer: z.string(), serial: z.string(), from: z.number(), until: z.number(), at: z.number() },
      ...{ cert: z.string(), key: z.string() },
    }),
  ),
})

export type RootDocument = z.infer<typeof document>

export const emptyRoot: RootDocument = { authorities: [], keys: [] }

/** Throws for what is no root, and says why. */
export function parseRoot(text: string): RootDocument {
  try {
    const root = z.parse(document, JSON.parse(text))
    for (const { id, cert } of root.authorities) if (fingerprint(cert) !== id) throw new Error(`${id} is another one`)
    for (const key of root.keys) if (keyId(key.public) !== key.id) throw new Error(`${key.id} is another one`)
    return root
  } catch (error) {
    throw new Error(`the root of trust cannot be read: ${messageOf(error)}`)
  }
}

export const summaryOf = ({ authorities, keys, client }: RootDocument): Root => ({ authorities, keys, client })

/** Whether both say the same to sidecars, and to those who issue and sign: the controller's own certificate apart. */
export function isSameTrust(a: RootDocument, b: RootDocument): boolean {
  const anchors = ({ authorities, keys }: RootDocument) => [...authorities, ...keys].map(({ id, phase }) => [id, phase])
  return JSON.stringify(anchors(a)) === JSON.stringify(anchors(b))
}

export interface RootPlan {
  /** Undefined: it stays as it is. */
  readonly next: RootDocument | undefined
  /** When to look again, in milliseconds since 1970. */
  readonly again: number
}

/** Decides until nothing is left to decide, so that one write does it. */
export function planRoot(
  now: number,
  root: RootDocument,
  apps: readonly AppTrust[],
  signatures: readonly Signature[],
  lifetimes: Lifetimes,
): RootPlan {
  let next = root
  for (;;) {
    const { steps, again } = decideRoot(now, summaryOf(next), apps, signatures, lifetimes)
    if (steps.length === 0) return { next: next === root ? undefined : next, again }
    for (const step of steps) next = apply(next, step, now, lifetimes)
  }
}

function apply(root: RootDocument, step: RootStep, now: number, lifetimes: Lifetimes): RootDocument {
  switch (step.do) {
    case 'announce':
      return announce(root, step.sort, now, lifetimes)
    case 'promote':
      return {
        ...root,
        authorities: step.sort === 'authorities' ? promote(root.authorities, step.id, now, 'key') : root.authorities,
        keys: step.sort === 'keys' ? promote(root.keys, step.id, now, 'private') : root.keys,
      }
    case 'drop':
      return { ...root, [step.sort]: root[step.sort].filter(({ id }) => id !== step.id) }
    case 'issue':
      return { ...root, client: renewed(root, now, lifetimes) }
  }
}

function announce(root: RootDocument, sort: Sort, now: number, lifetimes: Lifetimes): RootDocument {
  const from = now - lifetimes.skew
  const place = { phase: 'announced', at: now, from } as const
  if (sort === 'keys') {
    const key = createSigningKey()
    const until = now + lifetimes.signingKey
    return { ...root, keys: [...root.keys, { ...place, until, id: keyId(key.public), ...key }] }
  }
  const until = now + lifetimes.authority
  const pair = createAuthority({ from, until })
  return { ...root, authorities: [...root.authorities, { ...place, until, id: fingerprint(pair.cert), ...pair }] }
}

function promote<A extends { id: string; phase: string }>(anchors: A[], id: string, now: number, secret: keyof A): A[] {
  return anchors.map(one => {
    if (one.id === id) return { ...one, phase: 'issuing', at: now }
    if (one.phase !== 'issuing') return one
    const { [secret]: _gone, ...rest } = one
    return { ...rest, phase: 'retired', at: now } as unknown as A
  })
}

function renewed(root: RootDocument, now: number, lifetimes: Lifetimes): RootDocument['client'] {
  const authority = issuingAuthority(root)
  const pair = issue(authority, 'client', { dns: [controllerName] }, spanOf(now, lifetimes))
  const at = root.client?.issuer === authority.id ? root.client.at : now
  return { ...leafOf(pair.cert, authority.id, at), ...pair }
}

export function issuingAuthority({ authorities }: RootDocument): Pair & { readonly id: string } {
  const { id, cert, key } = authorities.find(({ phase }) => phase === 'issuing') ?? {}
  if (!id || !cert || !key) throw new Error('there is no authority that issues')
  return { id, cert, key }
}

/** The key that signs lifecycles. */
export function signingKey({ keys }: RootDocument): SigningKey & { readonly id: string } {
  const { id, public: open, private: secret } = keys.find(({ phase }) => phase === 'issuing') ?? {}
  if (!id || !open || !secret) throw new Error('there is no key that signs')
  return { id, public: open, private: secret }
}

/** What the controller connects to sidecars with. */
export function credentialsOf({ authorities, client }: RootDocument): AgentCredentials | undefined {
  return client && { cert: client.cert, key: client.key, ca: authorities.map(({ cert }) => cert) }
}

export const spanOf = (now: number, { skew, certificate }: Lifetimes) => ({
  from: now - skew,
  until: now + certificate,
})

export function leafOf(cert: string | X509Certificate, issuer: string, at: number) {
  const { serialNumber, validFrom, validTo } = typeof cert === 'string' ? new X509Certificate(cert) : cert
  return { issuer, serial: serialNumber, from: Date.parse(validFrom), until: Date.parse(validTo), at }
}

export const fingerprint = (cert: string | X509Certificate) =>
  (typeof cert === 'string' ? new X509Certificate(cert) : cert).fingerprint256.replaceAll(':', '').toLowerCase()
