/**
 * The certificates of a cluster on this machine: one authority, the server's, and one for each person. P-256, made anew at each start.
 */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  certificate,
  extension,
  keyExtensions,
  leafExtensions,
  namesExtension,
  type Pair,
  pem,
} from '../../shared/certificate.ts'
import { bits, oid, sequence, set, utf8, yes } from '../../shared/der.ts'

export interface Authority extends Pair {
  /** For the names of hosts and addresses. */
  server(names: readonly string[], addresses: readonly string[]): Pair
  /** A person's: CN is the name, each O a group. */
  client(name: string, groups: readonly string[]): Pair
}

const day = 86_400_000
const years = 3650 * day

export function createAuthority(now: number): Authority {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = subjectOf('cluster-ca', [])
  const span = { from: now - day, until: now + years }
  const make = (subject: Buffer, key: KeyObject, extensions: Buffer[]) =>
    certificate({ issuer, subject, span, publicKey: key, signer: privateKey }, [
      ...extensions,
      ...keyExtensions(key, publicKey),
    ])
  const leaf = (subject: Buffer, purpose: 'server' | 'client', more: Buffer[]): Pair => {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    return { cert: make(subject, pair.publicKey, [...leafExtensions(purpose), ...more]), key: pem(pair.privateKey) }
  }
  return {
    cert: make(issuer, publicKey, [
      extension('2.5.29.19', sequence(yes), true),
      // keyCertSign and digitalSignature.
      extension('2.5.29.15', bits(Buffer.from([0x84]), 2), true),
    ]),
    key: pem(privateKey),
    server: (names, addresses) =>
      leaf(subjectOf('kube-apiserver', []), 'server', [namesExtension({ dns: names, addresses })]),
    client: (name, groups) => leaf(subjectOf(name, groups), 'client', []),
  }
}

function subjectOf(name: string, groups: readonly string[]): Buffer {
  return sequence(
    ...groups.map(group => set(sequence(oid('2.5.4.10'), utf8(group)))),
    set(sequence(oid('2.5.4.3'), utf8(name))),
  )
}
