/**
 * Tokens of service accounts: JWTs that this server signs, and knows again while the account that they are of is there.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign, verify } from 'node:crypto'
import type { Store } from './store/store.ts'
import type { User } from './types.ts'

export interface TokenSubject {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly audiences: readonly string[]
  readonly seconds: number
  /** What the token ends with: `kind` in lower case. */
  readonly bound?: { readonly kind: string; readonly name: string; readonly uid: string } | undefined
}

export interface Tokens {
  readonly audiences: readonly string[]
  readonly publicKey: KeyObject
  issue(subject: TokenSubject, now: number): { token: string; expires: number }
  /** Whose it is; undefined for one that does not hold. */
  check(token: string, now: number, audiences?: readonly string[]): User | undefined
}

const issuer = 'https://kubernetes.default.svc'

interface Claims {
  aud: string[]
  exp: number
  iat: number
  iss: string
  sub: string
  jti: string
  'kubernetes.io': {
    namespace: string
    serviceaccount: { name: string; uid: string }
    [bound: string]: string | { name: string; uid: string }
  }
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

export function createTokens(store: Store): Tokens {
  let pair: { publicKey: KeyObject; privateKey: KeyObject; id: string } | undefined
  const keys = () => {
    if (!pair) {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const der = publicKey.export({ type: 'spki', format: 'der' })
      pair = { publicKey, privateKey, id: createHash('sha256').update(der).digest('base64url') }
    }
    return pair
  }

  function isThere(kind: string, namespace: string, { name, uid }: { name: string; uid: string }): boolean {
    return store.get(`/${kind}s`, kind === 'node' ? undefined : namespace, name)?.metadata.uid === uid
  }

  return {
    audiences: [issuer],
    get publicKey() {
      return keys().publicKey
    },
    issue({ namespace, name, uid, audiences, seconds, bound }, now) {
      const { privateKey, id } = keys()
      const iat = Math.floor(now / 1000)
      const claims = {
        aud: audiences,
        exp: iat + seconds,
        iat,
        iss: issuer,
        jti: randomUUID(),
        'kubernetes.io': {
          namespace,
          ...(bound ? { [bound.kind]: { name: bound.name, uid: bound.uid } } : {}),
          serviceaccount: { name, uid },
        },
        nbf: iat,
        sub: `system:serviceaccount:${namespace}:${name}`,
      }
      const body = `${encode({ alg: 'ES256', kid: id })}.${encode(claims)}`
      const signature = sign('sha256', Buffer.from(body), { key: privateKey, dsaEncoding: 'ieee-p1363' })
      return { token: `${body}.${signature.toString('base64url')}`, expires: (iat + seconds) * 1000 }
    },
    check(token, now, audiences = [issuer]) {
      const [header, payload, signature, ...more] = token.split('.')
      if (!header || !payload || !signature || more.length > 0) return undefined
      const key = { key: keys().publicKey, dsaEncoding: 'ieee-p1363' as const }
      if (!verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url')))
        return undefined
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Claims
      if (claims.exp * 1000 <= now || !claims.aud.some(one => audiences.includes(one))) return undefined
      const { namespace, serviceaccount, ...bound } = claims['kubernetes.io']
      if (!isThere('serviceaccount', namespace, serviceaccount)) return undefined
      const others = Object.entries(bound) as [string, { name: string; uid: string }][]
      if (!others.every(([kind, reference]) => isThere(kind, namespace, reference))) return undefined
      const pod = others.find(([kind]) => kind === 'pod')?.[1]
      return {
        name: claims.sub,
        uid: serviceaccount.uid,
        groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
        extra: {
          'authentication.kubernetes.io/credential-id': [`JTI=${claims.jti}`],
          ...(pod
            ? {
                'authentication.kubernetes.io/pod-name': [pod.name],
                'authentication.kubernetes.io/pod-uid': [pod.uid],
              }
            : {}),
        },
      }
    },
  }
}
