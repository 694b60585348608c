/**
 * The signature on a lifecycle, so that a sidecar takes commands from nobody who may only write ConfigMaps.
 *
 * Guarantee: it holds for this content, in this namespace and under this name alone.
 */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { canonicalJson } from '../../../shared/canonical.ts'

export interface SigningKey {
  /** PKCS #8 PEM. */
  readonly private: string
  /** SPKI PEM, as it stands in `lifecycle.pub`. */
  readonly public: string
}

export interface SignedLifecycle {
  readonly namespace: string
  readonly name: string
  /** As written, before defaults. */
  readonly spec: unknown
}

export function createSigningKey(): SigningKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  return {
    private: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    public: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  }
}

/** The data of ConfigMap `shipmate-lifecycle-NAME`. The sidecar finds the signature beside the file that it is given. */
export function signedConfig(
  { namespace, name, spec }: SignedLifecycle,
  key: Pick<SigningKey, 'private'>,
): { 'lifecycle.yaml': string; 'lifecycle.sig': string } {
  const bytes = Buffer.from(canonicalJson({ namespace, name, spec }))
  return {
    // JSON is YAML, and this text has one reading only.
    'lifecycle.yaml': canonicalJson(spec),
    'lifecycle.sig': sign(null, bytes, createPrivateKey(key.private)).toString('base64'),
  }
}

/** What a key is called where it must be told from another. Throws for what is no Ed25519 key. */
export function keyId(publicPem: string): string {
  const key = createPublicKey(publicPem)
  if (key.asymmetricKeyType !== 'ed25519')
    throw new Error(`this is an ${key.asymmetricKeyType} key, not an Ed25519 one`)
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')
    .slice(0, 32)
}
