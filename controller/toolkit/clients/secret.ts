/**
 * Certificates and credentials for an application, from a Secret's data. Pure.
 */
import { ShipmateError } from '../../../shared/errors.ts'
import type { ShapeOf, Snapshot } from '../../kube/kind.ts'
import type { Secret } from '../../kube/kinds.ts'
import type { Auth, TlsOptions } from './http.ts'

type LiveSecret = Snapshot<ShapeOf<typeof Secret>>

export interface TlsKeys {
  /** The key of the certificates that are trusted. Default `ca.crt`. */
  readonly ca?: string | undefined
  /** The key of our own certificate. Default `tls.crt`. */
  readonly cert?: string | undefined
  /** The key of its key. Default `tls.key`. */
  readonly key?: string | undefined
  readonly servername?: string | undefined
}

/** What a Secret, as of type kubernetes.io/tls, has for TLS. A key that is named here must be there; else those that are there count. */
export function tlsFrom(secret: LiveSecret, keys: TlsKeys = {}): TlsOptions {
  const ca = entryOf(secret, keys.ca, 'ca.crt')
  const cert = entryOf(secret, keys.cert, 'tls.crt')
  const key = entryOf(secret, keys.key, 'tls.key')
  if (ca === undefined && cert === undefined) throw lacking(secret, 'ca.crt or tls.crt')
  if (cert !== undefined && key === undefined) throw lacking(secret, keys.key ?? 'tls.key')
  const { servername } = keys
  return { ca, ...(key !== undefined && { cert, key }), servername }
}

/** As whom, by a Secret: `token`, or `username` and `password` as in kubernetes.io/basic-auth. */
export function authFrom(secret: LiveSecret): Auth {
  const token = entryOf(secret, undefined, 'token')
  if (token !== undefined) return { bearer: token }
  const username = entryOf(secret, undefined, 'username')
  const password = entryOf(secret, undefined, 'password')
  if (username === undefined || password === undefined) throw lacking(secret, 'token, or username and password')
  return { basic: { username, password } }
}

function entryOf(secret: LiveSecret, named: string | undefined, usual: string): string | undefined {
  const encoded = secret.data?.[named ?? usual]
  if (encoded === undefined && named !== undefined) throw lacking(secret, named)
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString()
}

function lacking({ metadata, data = {} }: LiveSecret, what: string): ShipmateError {
  const there = Object.keys(data).join(', ') || 'nothing'
  const where = `Secret ${metadata.namespace}/${metadata.name}`
  return new ShipmateError('Failed', `${where} has no ${what}; it has ${there}`, 'later')
}
