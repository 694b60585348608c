/**
 * Who may read what is served: the API server says whose a bearer token is (TokenReview), and whether that user may (SubjectAccessReview of the path). So Prometheus
 * reads metrics by its own service account, with a role that names the path.
 *
 * Guarantees: nobody is let in while the API server cannot be asked. It is asked once for one token at a time, and what it said holds for a while; so somebody who is
 * no longer allowed is out within a minute. Tokens are kept as hashes, never logged. However many ask, the reviews under way and those remembered are bounded.
 */
import { createHash } from 'node:crypto'
import { type Clock, systemClock } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Logger } from '../../shared/log.ts'
import type { Client } from '../kube/client.ts'
import { SubjectAccessReview, TokenReview } from '../kube/kinds.ts'

/** Undefined for who may; else how they are answered. */
export type Refusal = { readonly status: 401 | 403 | 503; readonly why: string } | undefined

/** @param authorization the header, as it came */
export type Callers = (authorization: string | undefined, path: string) => Promise<Refusal>

export interface CallersOptions {
  readonly clock?: Clock | undefined
  readonly log?: Logger | undefined
}

/** What asking takes, for a ClusterRole. */
export const callerRules = [
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
] as const

/** How long an answer holds, in milliseconds. */
const holds = { allowed: 60_000, refused: 10_000 }
const mostRemembered = 1000
const mostAtOnce = 8
/** Of a review, in milliseconds: a scrape waits ten seconds. */
const deadline = 5000

const busy: Refusal = { status: 503, why: 'too many are asked about at once' }

export function createCallers(client: Client, options: CallersOptions = {}): Callers {
  const { clock = systemClock, log } = options
  const remembered = new Map<string, { readonly refusal: Refusal; readonly until: number }>()
  const underWay = new Map<string, Promise<Refusal>>()

  function remember(key: string, refusal: Refusal): void {
    // A map keeps the order of insertion: the oldest goes.
    const [oldest] = remembered.keys()
    if (remembered.size >= mostRemembered && oldest !== undefined) remembered.delete(oldest)
    remembered.delete(key)
    remembered.set(key, { refusal, until: clock.monotonic() + (refusal ? holds.refused : holds.allowed) })
  }

  async function review(key: string, token: string, path: string): Promise<Refusal> {
    try {
      const refusal = await ask(client, token, path)
      remember(key, refusal)
      return refusal
    } catch (error) {
      log?.warn({ err: error }, `who asks for ${path} could not be found out: ${messageOf(error)}`)
      return { status: 503, why: 'the API server could not be asked who you are' }
    } finally {
      underWay.delete(key)
    }
  }

  return async (authorization, path) => {
    const [, token] = /^bearer +([\w.~+/=-]{1,16384})$/i.exec(authorization ?? '') ?? []
    if (token === undefined) return { status: 401, why: 'a bearer token is needed' }
    const key = createHash('sha256').update(`${path} ${token}`).digest('base64')
    const known = remembered.get(key)
    if (known && known.until > clock.monotonic()) return known.refusal
    const asked = underWay.get(key)
    if (asked) return asked
    if (underWay.size >= mostAtOnce) return busy
    const asking = review(key, token, path)
    underWay.set(key, asking)
    return asking
  }
}

async function ask(client: Client, token: string, path: string): Promise<Refusal> {
  const { status } = await client.create(TokenReview, { metadata: {}, spec: { token } } as never, { deadline })
  const { authenticated, user } = status ?? {}
  if (!authenticated || !user?.username) return { status: 401, why: 'the API server does not know this token' }
  const spec = {
    user: user.username,
    uid: user.uid,
    groups: user.groups,
    extra: user.extra,
    nonResourceAttributes: { path, verb: 'get' },
  }
  const { status: access } = await client.create(SubjectAccessReview, { metadata: {}, spec } as never, { deadline })
  return access?.allowed ? undefined : { status: 403, why: `${user.username} may not get ${path}` }
}
