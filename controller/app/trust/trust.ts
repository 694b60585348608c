/**
 * The controller's root of trust in the cluster: read, renewed in time, handed to who connects and to who signs.
 *
 * Guarantees: a root that cannot be read is never written over; two that make or renew it at once agree on one, as each write is of the version that
 * was decided from; what was in use before stays in use until the write has succeeded.
 */
import type { Clock } from '../../../shared/clock.ts'
import { ShipmateError } from '../../../shared/errors.ts'
import type { Logger } from '../../../shared/log.ts'
import type { Client } from '../../kube/client.ts'
import { AlreadyExists, Conflict } from '../../kube/errors.ts'
import { Secret } from '../../kube/kinds.ts'
import type { AgentCredentials, AgentCredentialsSource } from '../agents/credentials.ts'
import { type AppIdentity, type AppPlan, type AppSecret, noTrust, planAppSecret, readAppSecret } from './app-secret.ts'
import type { AppTrust, Signature } from './decide.ts'
import { type Lifetimes, usualLifetimes } from './lifetimes.ts'
import { credentialsOf, emptyRoot, parseRoot, planRoot, type RootDocument } from './root.ts'

/** Where the root of trust is kept, in the controller's namespace. */
export const rootSecret = 'shipmate-root'

export interface TrustOptions {
  readonly client: Client
  /** The controller's own namespace. */
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
  /** Default `shipmate-root`. */
  readonly secretName?: string | undefined
  readonly lifetimes?: Partial<Lifetimes> | undefined
}

/** Everything in the cluster that the root must not outrun: every app, whether it has a Secret yet or not, and every lifecycle. */
export interface Followers {
  readonly apps: readonly { readonly app: AppIdentity; readonly secret: AppSecret | undefined }[]
  readonly signatures: readonly Signature[]
}

export interface Trust extends AgentCredentialsSource {
  /** What was read last; undefined before `keep` has succeeded once. */
  readonly root: RootDocument | undefined
  /** Reads the root, and renews what is due, or makes it. Answers when to call again at the latest, in milliseconds since 1970. */
  keep(followers: Followers, signal?: AbortSignal): Promise<number>
  /** What is to be written for an app. Throws before there is a root. */
  plan(app: AppIdentity, secret: AppSecret | undefined): AppPlan
}

const file = 'root.json'

export function createTrust(options: TrustOptions): Trust {
  const { client, namespace, clock, log, secretName = rootSecret } = options
  const lifetimes = { ...usualLifetimes, ...options.lifetimes }
  const listeners = new Set<() => void>()
  /** Judged once: an object of a cache stays as it is. */
  const judged = new WeakMap<AppSecret, { root: RootDocument; trust: AppTrust }>()
  let root: RootDocument | undefined
  let credentials: AgentCredentials | undefined

  const adopt = (next: RootDocument) => {
    root = next
    const fresh = credentialsOf(next)
    if (JSON.stringify(fresh) === JSON.stringify(credentials)) return
    credentials = fresh
    for (const listener of [...listeners]) listener()
  }

  const trustOf = (current: RootDocument, { app, secret }: Followers['apps'][number]): AppTrust => {
    if (!secret) return noTrust
    const known = judged.get(secret)
    if (known?.root === current) return known.trust
    const trust = readAppSecret(current, app, secret)
    judged.set(secret, { root: current, trust })
    return trust
  }

  const read = (text: string): RootDocument => {
    try {
      return parseRoot(Buffer.from(text, 'base64').toString())
    } catch (error) {
      const todo =
        'mend it from a backup, or delete it: then a new one is made, and no sidecar can be asked until all have it'
      throw new ShipmateError(
        'Terminal',
        `Secret ${namespace}/${secretName}: ${(error as Error).message}; ${todo}`,
        'later',
      )
    }
  }

  return {
    get root() {
      return root
    },
    current: () => credentials,
    onChange(changed) {
      listeners.add(changed)
      return () => void listeners.delete(changed)
    },
    async keep({ apps, signatures }, signal) {
      for (;;) {
        const stored = await client.find(Secret, { namespace, name: secretName }, { signal })
        const found = stored ? read(stored.data?.[file] ?? '') : emptyRoot
        // The same object as long as it says the same: what was judged by it holds.
        const current = root && JSON.stringify(root) === JSON.stringify(found) ? root : found
        const trusts = apps.map(one => trustOf(current, one))
        const { next, again } = planRoot(clock.now(), current, trusts, signatures, lifetimes)
        if (!next) {
          adopt(current)
          return again
        }
        const data = { [file]: Buffer.from(JSON.stringify(next)).toString('base64') }
        try {
          if (stored) await client.update(Secret, { ...stored, data }, { signal })
          else
            await client.create(Secret, { metadata: { name: secretName, namespace }, type: 'Opaque', data }, { signal })
          log.info({ secret: `${namespace}/${secretName}`, phases: phasesOf(next) }, 'the root of trust has changed')
          adopt(next)
          return again
        } catch (error) {
          // Somebody else was first: what they wrote is looked at.
          if (!(error instanceof Conflict || error instanceof AlreadyExists)) throw error
        }
      }
    },
    plan(app, secret) {
      if (!root) throw new ShipmateError('Unavailable', 'the root of trust has not been read yet', 'later')
      return planAppSecret(clock.now(), root, app, secret, lifetimes, trustOf(root, { app, secret }))
    },
  }
}

const phasesOf = ({ authorities, keys }: RootDocument) => ({
  authorities: authorities.map(({ phase }) => phase),
  keys: keys.map(({ phase }) => phase),
})
