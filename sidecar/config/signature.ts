/**
 * The controller's signature on a lifecycle: Ed25519 over the canonical JSON of `{namespace, name, spec}`. Pure.
 *
 * Guarantee: a lifecycle that was signed for another namespace or under another name, or by a key that is not among those given, does not pass.
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { canonicalJson } from '../../shared/canonical.ts'

export interface Signed {
  readonly namespace: string
  readonly name: string
  /** The lifecycle, as written. */
  readonly spec: unknown
}

/** The bytes that are signed. */
export function signedBytes({ namespace, name, spec }: Signed): Buffer {
  return Buffer.from(canonicalJson({ namespace, name, spec }))
}

/**
 * Why a signature does not hold, or undefined if it does.
 *
 * @param signature base64
 * @param keys one or more public keys as PEM; while they are rotated, there are two
 */
export function signatureProblem(signed: Signed, signature: string, keys: string): string | undefined {
  const text = signature.trim()
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length !== 64 || bytes.toString('base64') !== text) return 'the signature is not base64 of 64 bytes'
  const blocks = keys.match(/-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----/g)
  const known = (blocks ?? []).map(publicKey).filter(key => key !== undefined)
  if (known.length === 0) return 'there is no Ed25519 key to check the signature with'
  const content = signedBytes(signed)
  if (known.some(key => verify(null, content, key, bytes))) return undefined
  return `the signature is not by a known key, or not for ${signed.namespace}/${signed.name}, or not of this content`
}

function publicKey(pem: string): KeyObject | undefined {
  try {
    const key = createPublicKey(pem)
    return key.asymmetricKeyType === 'ed25519' ? key : undefined
  } catch {
    return undefined
  }
}
