/**
 * The certificate of the webhooks as it stands in a Secret: `tls.crt`, `tls.key` and `ca.crt` as everybody knows them, `next.crt` and `next.key` while there is one
 * to follow. Pure.
 *
 * Guarantee: what cannot be served with (no certificate, another key, another name, ended, not signed by its authority) is as if it were not there.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Names, Pair } from '../../../shared/certificate.ts'
import { timeOf } from '../../../shared/clock.ts'

/** A certificate to serve with, and by what it is believed. Times are in milliseconds since 1970. */
export interface Served extends Pair {
  /** The authority's certificate, PEM. */
  readonly ca: string
  readonly from: number
  readonly until: number
}

export interface Stored {
  readonly current?: Served | undefined
  readonly next?: Served | undefined
  /** The authority of the one before. */
  readonly previous?: { readonly ca: string; readonly until: number } | undefined
  /** Since when current is. */
  readonly since?: number | undefined
}

/** When the certificate in use was taken into use. */
const sinceAnnotation = 'shipmate.dev/in-use-since'

interface SecretLike {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined }
  readonly data?: Readonly<Record<string, string>> | undefined
}

export function readStored(secret: SecretLike | undefined, names: Names, now: number): Stored {
  if (!secret) return {}
  const { data = {}, metadata } = secret
  const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString()
  const bundle = certificatesIn(text('ca.crt'))
  const current = served(text('tls.crt'), text('tls.key'), bundle, names, now)
  const next = served(text('next.crt'), text('next.key'), bundle, names, now)
  const [previous] = bundle.filter(({ pem }) => pem !== current?.ca && pem !== next?.ca)
  const since = Date.parse(metadata.annotations?.[sinceAnnotation] ?? '')
  return {
    current,
    next: current && next,
    previous: current && previous && { ca: previous.pem, until: Date.parse(previous.cert.validTo) },
    since: Number.isNaN(since) ? undefined : since,
  }
}

/** What the Secret has to say. */
export function secretOf({ current, next, previous, since }: Stored): {
  data: Record<string, string>
  annotations: Record<string, string>
} {
  const texts: Record<string, string> = {
    'tls.crt': current?.cert ?? '',
    'tls.key': current?.key ?? '',
    'ca.crt': bundleOf({ current, next, previous }),
    ...(next && { 'next.crt': next.cert, 'next.key': next.key }),
  }
  return {
    data: Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
    annotations: since === undefined ? {} : { [sinceAnnotation]: timeOf(since) },
  }
}

/** All authorities that count, PEM: what the API server is to believe. The same text whichever of them is in use. */
export function bundleOf({ current, next, previous }: Stored): string {
  return [current?.ca, next?.ca, previous?.ca]
    .filter(ca => ca !== undefined)
    .sort()
    .join('')
}

interface Known {
  readonly pem: string
  readonly cert: X509Certificate
}

function served(cert: string, key: string, bundle: readonly Known[], names: Names, now: number): Served | undefined {
  try {
    const leaf = new X509Certificate(cert)
    const [from, until] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)]
    const { dns = [], addresses = [] } = names
    const isNamed =
      dns.every(name => leaf.checkHost(name, { subject: 'never' }) !== undefined) &&
      addresses.every(address => leaf.checkIP(address) !== undefined)
    const issuer = bundle.find(({ cert: ca }) => leaf.checkIssued(ca) && leaf.verify(ca.publicKey))
    if (!isNamed || !issuer || now >= until || !leaf.checkPrivateKey(createPrivateKey(key))) return undefined
    return { cert, key, ca: issuer.pem, from, until }
  } catch {
    return undefined
  }
}

/** Those that can be read. */
function certificatesIn(text: string): Known[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n?/g) ?? []
  return blocks.flatMap(pem => {
    try {
      return [{ pem: `${pem.trimEnd()}\n`, cert: new X509Certificate(pem) }]
    } catch {
      return []
    }
  })
}
