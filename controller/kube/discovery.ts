/**
 * What the server has: its version, its groups, its kinds and what can be done with them.
 *
 * Guarantees: asked for once and kept; calls at the same time share one request; a kind that is not known is looked for
 * anew, but not again and again. An API whose own server is down is stale, and the others are there all the same.
 */
import { type Clock, systemClock } from '../../shared/clock.ts'
import { ShipmateError } from '../../shared/errors.ts'
import { fetchGroups, fetchJson, rootTarget } from './apis.ts'
import type { CallOptions, Client } from './client.ts'
import { Aborted, NotFound } from './errors.ts'
import { type Kind, kindKey } from './kind.ts'
import { Memo } from './memo.ts'
import {
  type ApiGroup,
  type AskedKind,
  type AskedResource,
  absent,
  findKind,
  findResource,
  type ServedKind,
} from './restmapper.ts'

export interface DiscoveryOptions {
  /** Milliseconds for which an answer is used. Default 600,000. */
  readonly maxAge?: number | undefined
  /** Milliseconds that an answer must be old before an unknown kind is a reason to ask again. Default 5,000. */
  readonly retryAfter?: number | undefined
  readonly clock?: Clock | undefined
}

export interface ServerVersion {
  readonly major: string
  readonly minor: string
  /** As in `v1.36.3`. */
  readonly gitVersion: string
  readonly platform?: string
}

type Options = Pick<CallOptions, 'signal'>

export interface Discovery {
  version(options?: Options): Promise<ServerVersion>
  /** In the server's order of preference, the core group first. */
  groups(options?: Options): Promise<readonly ApiGroup[]>
  /** Every kind in every version. */
  resources(options?: Options): Promise<readonly ServedKind[]>
  /** The kind of that name. NotFound names the nearest where there is none. */
  kindFor(asked: AskedKind, options?: Options): Promise<ServedKind>
  /** The kind of that plural, singular or short name. */
  kindForResource(asked: AskedResource, options?: Options): Promise<ServedKind>
  /** The kind of an object as it stands in a file. */
  kindOfObject(object: { readonly apiVersion?: string; readonly kind?: string }, options?: Options): Promise<ServedKind>
  /** Whether the kind is served, in that very version. Unavailable where the server that would know does not answer. */
  isServed(kind: Kind, options?: Options): Promise<boolean>
  /** Forget all: something changed. */
  invalidate(): void
}

export function createDiscovery(client: Client, options: DiscoveryOptions = {}): Discovery {
  const { maxAge = 600_000, retryAfter = 5000, clock = systemClock } = options
  let last: readonly ApiGroup[] = []
  const all = new Memo(async signal => {
    last = await fetchGroups(client, last, signal)
    return last
  }, clock)
  const version = new Memo(signal => fetchJson<ServerVersion>(client, '/version', signal), clock)

  async function get<T>(memo: Memo<T>, age: number, { signal }: Options = {}): Promise<T> {
    try {
      return await memo.get(age, signal)
    } catch (error) {
      throw signal?.aborted ? new Aborted(rootTarget('/apis'), signal.reason) : error
    }
  }

  /** What `find` finds, in what is known or, if that is not it, in what there is now. */
  async function lookUp(
    find: (groups: readonly ApiGroup[]) => ServedKind | undefined,
    asked: AskedKind | AskedResource,
    options?: Options,
  ) {
    const found = find(await get(all, maxAge, options))
    if (found) return found
    const groups = await get(all, Math.min(retryAfter, maxAge), options)
    const now = find(groups)
    if (now) return now
    throw absent(groups, asked)
  }

  const kindFor: Discovery['kindFor'] = (asked, options) => lookUp(groups => findKind(groups, asked), asked, options)

  return {
    version: options => get(version, maxAge, options),
    groups: options => get(all, maxAge, options),
    resources: async options => kindsOf(await get(all, maxAge, options)),
    kindFor,
    kindForResource: (asked, options) => lookUp(groups => findResource(groups, asked), asked, options),
    async kindOfObject({ apiVersion, kind }, options) {
      const parts = apiVersion?.split('/') ?? []
      if (!kind || parts.length === 0 || parts.length > 2 || parts.includes('')) {
        const what = `apiVersion ${JSON.stringify(apiVersion)}, kind ${JSON.stringify(kind)}`
        throw new ShipmateError('Misuse', `an object needs an apiVersion and a kind; this one has ${what}`, 'never')
      }
      const [version, group = ''] = parts.toReversed() as [string, string?]
      return kindFor({ group, version, kind }, options)
    },
    async isServed(kind, options) {
      const key = kindKey(kind)
      const { group, version, plural: resource } = kind
      try {
        await lookUp(groups => kindsOf(groups).find(one => kindKey(one) === key), { group, version, resource }, options)
        return true
      } catch (error) {
        if (error instanceof NotFound) return false
        throw error
      }
    },
    invalidate() {
      all.forget()
      version.forget()
    },
  }
}

function kindsOf(groups: readonly ApiGroup[]): ServedKind[] {
  return groups.flatMap(group => group.versions.flatMap(version => version.kinds))
}
