/**
 * The three certificates that there are: an authority's, a sidecar's and the controller's. P-256 and SHA-256, by node:crypto.
 *
 * Guarantees: an authority signs certificates and nothing else, and no other authority; the others are for one side of TLS alone, under one name.
 * None holds longer than its authority.
 */
import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { bits, integer, octets, oid, sequence, set, time, tlv, utf8, yes } from './der.ts'

export interface Pair {
  /** The certificate, PEM. */
  readonly cert: string
  /** Its private key, PKCS #8 PEM. */
  readonly key: string
}

/** Milliseconds since 1970. */
export interface Span {
  readonly from: number
  readonly until: number
}

/** Which side of TLS a certificate is for. */
export type Purpose = 'server' | 'client'
const purposes = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' }

export function createAuthority(span: Span): Pair {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keyId = keyIdOf(publicKey)
  // A name of its own, so that nobody takes one authority for another while there are two.
  const name = nameOf(`shipmate ${keyId.toString('hex').slice(0, 16)}`)
  const cert = certificate({ issuer: name, subject: name, span, publicKey, signer: privateKey }, [
    // An authority, and of no other.
    extension('2.5.29.19', sequence(yes, integer(Buffer.from([0]))), true),
    // keyCertSign.
    extension('2.5.29.15', bits(Buffer.from([0x04]), 2), true),
    extension('2.5.29.14', octets(keyId)),
  ])
  return { cert, key: pem(privateKey) }
}

export function issue(authority: Pair, purpose: Purpose, dnsName: string, span: Span): Pair {
  const parent = new X509Certificate(authority.cert)
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const parentKeyId = keyIdOf(parent.publicKey)
  const cert = certificate(
    {
      issuer: nameOf(`shipmate ${parentKeyId.toString('hex').slice(0, 16)}`),
      // Names are in the extension below, which is critical as there is none here.
      subject: sequence(),
      span: { from: span.from, until: Math.min(span.until, Date.parse(parent.validTo)) },
      publicKey,
      signer: createPrivateKey(authority.key),
    },
    [
      extension('2.5.29.19', sequence(), true),
      // digitalSignature.
      extension('2.5.29.15', bits(Buffer.from([0x80]), 7), true),
      extension('2.5.29.37', sequence(oid(purposes[purpose]))),
      extension('2.5.29.17', sequence(tlv(0x82, Buffer.from(dnsName, 'latin1'))), true),
      extension('2.5.29.14', octets(keyIdOf(publicKey))),
      extension('2.5.29.35', sequence(tlv(0x80, parentKeyId))),
    ],
  )
  return { cert, key: pem(privateKey) }
}

interface Content {
  readonly issuer: Buffer
  readonly subject: Buffer
  readonly span: Span
  readonly publicKey: KeyObject
  readonly signer: KeyObject
}

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'))

function certificate({ issuer, subject, span, publicKey, signer }: Content, extensions: Buffer[]): string {
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

const nameOf = (commonName: string) => sequence(set(sequence(oid('2.5.4.3'), utf8(commonName))))

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return sequence(oid(id), ...(isCritical ? [yes] : []), octets(value))
}

/** As RFC 7093 has it: the first 160 bits of the SHA-256 of the key itself. */
function keyIdOf(key: KeyObject): Buffer {
  const point = key.export({ type: 'spki', format: 'der' }).subarray(-65)
  return createHash('sha256').update(point).digest().subarray(0, 20)
}

const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString()
