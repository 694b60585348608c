/**
 * X.509 certificates on node:crypto: version 3, signed with ECDSA and SHA-256, under a random serial number. Who makes one says whom it is for and what it allows.
 */
import { createHash, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto'
import { isIPv4 } from 'node:net'
import { bits, integer, octets, oid, sequence, time, tlv, yes } from './der.ts'

export interface Pair {
  /** The certificate, PEM. */
  readonly cert: string
  /** Its private key, PKCS #8 PEM. */
  readonly key: string
}

/** What a certificate is for, as who connects calls it. */
export interface Names {
  readonly dns?: readonly string[] | undefined
  /** IPv4, or IPv6 written in any way. */
  readonly addresses?: readonly string[] | undefined
}

/** Milliseconds since 1970. */
export interface Span {
  readonly from: number
  readonly until: number
}

/** Which side of TLS a certificate is for, by its id. */
export const purposes = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' }

export interface Content {
  readonly issuer: Buffer
  readonly subject: Buffer
  readonly span: Span
  readonly publicKey: KeyObject
  readonly signer: KeyObject
}

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'))

/** PEM. */
export function certificate({ issuer, subject, span, publicKey, signer }: Content, extensions: Buffer[]): string {
  const serial = randomBytes(16)
  // Positive, and never all zeros.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40
  const body = sequence(
    // Version 3.
    tlv(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    ecdsaWithSha256,
    issuer,
    sequence(time(span.from), time(span.until)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(...extensions)),
  )
  const der = sequence(body, ecdsaWithSha256, bits(sign('sha256', body, signer)))
  return new X509Certificate(der).toString()
}

export function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return sequence(oid(id), ...(isCritical ? [yes] : []), octets(value))
}

/** What a certificate for one side of TLS alone may be used for. */
export function leafExtensions(purpose: keyof typeof purposes): Buffer[] {
  return [
    extension('2.5.29.19', sequence(), true),
    // digitalSignature.
    extension('2.5.29.15', bits(Buffer.from([0x80]), 7), true),
    extension('2.5.29.37', sequence(oid(purposes[purpose]))),
  ]
}

export function namesExtension({ dns = [], addresses = [] }: Names, isCritical = false): Buffer {
  const names = [
    ...dns.map(name => tlv(0x82, Buffer.from(name, 'latin1'))),
    ...addresses.map(address => tlv(0x87, bytesOf(address))),
  ]
  return extension('2.5.29.17', sequence(...names), isCritical)
}

/** Of an address, in the order of the network. */
function bytesOf(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  // The URL writes it in one way only: without zeros in front, the longest row of zeros left out, no IPv4 in it.
  const [before = '', after] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const groups = (text = '') => (text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16)))
  const [first, last] = [groups(before), groups(after)]
  const all = [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last]
  return Buffer.from(all.flatMap(group => [group >> 8, group & 0xff]))
}

/** Whose key it is, and whose has signed it. */
export function keyExtensions(key: KeyObject, parent: KeyObject): Buffer[] {
  return [extension('2.5.29.14', octets(keyIdOf(key))), extension('2.5.29.35', sequence(tlv(0x80, keyIdOf(parent))))]
}

/** As RFC 7093 has it: the first 160 bits of the SHA-256 of the key itself. */
export function keyIdOf(key: KeyObject): Buffer {
  const point = key.export({ type: 'spki', format: 'der' }).subarray(-65)
  return createHash('sha256').update(point).digest().subarray(0, 20)
}

export const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString()
