/**
 * An authority, and the certificates that it issues for one side of TLS. P-256 and SHA-256, by node:crypto.
 *
 * Guarantees: an authority signs certificates and nothing else, and no other authority; what it issues is for one side of TLS alone, under the names given.
 * None holds longer than its authority.
 */
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import {
  certificate,
  extension,
  keyExtensions,
  keyIdOf,
  leafExtensions,
  type Names,
  namesExtension,
  type Pair,
  pem,
  type purposes,
  type Span,
} from './certificate.ts'
import { bits, integer, octets, oid, sequence, set, utf8, yes } from './der.ts'

/** Which side of TLS a certificate is for. */
export type Purpose = keyof typeof purposes

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

export function issue(authority: Pair, purpose: Purpose, names: Names, span: Span): Pair {
  const parent = new X509Certificate(authority.cert)
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const cert = certificate(
    {
      issuer: nameOf(`shipmate ${keyIdOf(parent.publicKey).toString('hex').slice(0, 16)}`),
      // Names are in the extension below, which is critical as there is none here.
      subject: sequence(),
      span: { from: span.from, until: Math.min(span.until, Date.parse(parent.validTo)) },
      publicKey,
      signer: createPrivateKey(authority.key),
    },
    [...leafExtensions(purpose), namesExtension(names, true), ...keyExtensions(publicKey, parent.publicKey)],
  )
  return { cert, key: pem(privateKey) }
}

const nameOf = (commonName: string) => sequence(set(sequence(oid('2.5.4.3'), utf8(commonName))))
