/**
 * The Secret `shipmate-tls-APP`: what the sidecars of an app prove themselves with, and whom they believe.
 *
 * Guarantees: what is there is judged by itself, not by what we remember having written: a certificate that is damaged, not for this app, not for
 * servers, not by an authority of ours or without its key counts as none. No private key but the server's own is in it.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { V1Secret } from '@kubernetes/client-node'
import { issue } from '../../../shared/authority.ts'
import type { Draft, Snapshot } from '../../kube/kind.ts'
import { type AppRef, serverNameOf } from '../agents/address.ts'
import { appUidLabel } from '../workload/marks.ts'
import { type AppTrust, decideApp, type Leaf } from './decide.ts'
import type { Lifetimes } from './lifetimes.ts'
import { fingerprint, issuingAuthority, leafOf, type RootDocument, spanOf, summaryOf } from './root.ts'
import { keyId } from './signing.ts'

export interface AppIdentity extends AppRef {
  readonly uid: string
}

/** As far as it is read. */
export type AppSecret = Pick<Snapshot<V1Secret>, 'metadata' | 'data'>

/** Since when the lists of authorities and keys are these, and the certificate by this authority. */
const listedSince = 'shipmate.dev/trusts-since'
const issuedSince = 'shipmate.dev/issuer-since'

export const secretNameOf = (app: string) => `shipmate-tls-${app}`

export const noTrust: AppTrust = { server: undefined, authorities: [], keys: [], at: 0 }

/** @param app whose it should be */
export function readAppSecret(root: RootDocument, app: AppRef, secret: AppSecret | undefined): AppTrust {
  if (!secret) return noTrust
  const { annotations = {}, creationTimestamp } = secret.metadata
  const text = (name: string) => Buffer.from(secret.data?.[name] ?? '', 'base64').toString('latin1')
  // Without our annotations nobody knows since when: the Secret itself is not older.
  const since = (name: string) => Date.parse(annotations[name] ?? String(creationTimestamp ?? '')) || 0
  return {
    server: serverLeaf(root, serverNameOf(app), text('tls.crt'), text('tls.key'), since(issuedSince)),
    authorities: blocks(text('ca.crt'), 'CERTIFICATE').map(attempt(fingerprint)),
    keys: blocks(text('lifecycle.pub'), 'PUBLIC KEY').map(attempt(keyId)),
    at: since(listedSince),
  }
}

function serverLeaf(root: RootDocument, name: string, cert: string, key: string, at: number): Leaf | undefined {
  try {
    const certificate = new X509Certificate(cert)
    const authority = root.authorities.find(({ cert }) => {
      const parent = new X509Certificate(cert)
      return certificate.checkIssued(parent) && certificate.verify(parent.publicKey)
    })
    const isGood =
      certificate.subjectAltName === `DNS:${name}` &&
      certificate.keyUsage?.join() === '1.3.6.1.5.5.7.3.1' &&
      certificate.checkPrivateKey(createPrivateKey(key))
    return authority && isGood ? leafOf(certificate, authority.id, at) : undefined
  } catch {
    return undefined
  }
}

export type AppPlan =
  /** All is well until then, in milliseconds since 1970. */
  | { readonly do: 'nothing'; readonly again: number }
  /** The whole Secret, to be created, or written over the version that was looked at. */
  | { readonly do: 'write'; readonly secret: Draft<V1Secret> }
  /** There is one of that name which is not ours. */
  | { readonly do: 'refuse'; readonly reason: string }

/**
 * What is to be written for an app, if anything. Throws if the root has no authority yet.
 *
 * @param stored what the Secret was found to be: to find that out takes most of the time
 */
export function planAppSecret(
  now: number,
  root: RootDocument,
  app: AppIdentity,
  secret: AppSecret | undefined,
  lifetimes: Lifetimes,
  stored: AppTrust = readAppSecret(root, app, secret),
): AppPlan {
  const name = secretNameOf(app.name)
  const owner = secret?.metadata.labels?.[appUidLabel]
  if (secret && owner === undefined) {
    return { do: 'refuse', reason: `Secret ${name} is not Shipmate's: it has no label ${appUidLabel}` }
  }
  const { isKept, isListed, again } = decideApp(now, summaryOf(root), stored)
  if (isKept && isListed && owner === app.uid) return { do: 'nothing', again }
  const authority = issuingAuthority(root)
  const { cert, key } = isKept
    ? { cert: secret?.data?.['tls.crt'], key: secret?.data?.['tls.key'] }
    : encoded(issue(authority, 'server', { dns: [serverNameOf(app)] }, spanOf(now, lifetimes)))
  const bundle = {
    ca: root.authorities.map(({ cert }) => cert).join(''),
    pub: root.keys.map(({ public: open }) => open).join(''),
  }
  const { ca, pub } = encoded(bundle)
  const time = (ms: number) => new Date(ms).toISOString()
  const { server, at } = stored
  return {
    do: 'write',
    secret: {
      metadata: {
        name,
        namespace: app.namespace,
        ...(secret && { resourceVersion: secret.metadata.resourceVersion }),
        labels: { [appUidLabel]: app.uid },
        annotations: {
          [listedSince]: time(isListed ? at : now),
          [issuedSince]: time(server?.issuer === authority.id ? server.at : now),
        },
      },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': cert ?? '', 'tls.key': key ?? '', 'ca.crt': ca, 'lifecycle.pub': pub },
    },
  }
}

const encoded = <Texts extends object>(texts: Texts) =>
  Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  ) as Record<keyof Texts, string>

const blocks = (text: string, kind: string) =>
  text.match(new RegExp(`-----BEGIN ${kind}-----[^-]+-----END ${kind}-----`, 'g')) ?? []

/** What cannot be read is nobody of ours. */
const attempt = (read: (text: string) => string) => (text: string) => {
  try {
    return read(text)
  } catch {
    return ''
  }
}
