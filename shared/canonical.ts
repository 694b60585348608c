/**
 * Canonical JSON (RFC 8785) and hashes of it: two values that mean the same have the same text, whatever the order of their keys.
 */
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'

/** The canonical text of a JSON value; `undefined` members are left out. */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value)
  if (text === undefined) throw new TypeError('this is no JSON value')
  return text
}

/** The hex SHA-256 of a value's canonical JSON. */
export function hashOf(value: unknown): string {
  return sha256(canonicalJson(value))
}

export function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
