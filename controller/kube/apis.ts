/**
 * What the server says of its APIs: in one answer (aggregated), or, from older ones, in a list for each group and version.
 *
 * Guarantee: both come out the same; a version whose own server does not answer is marked stale, with what was known of it.
 */
import type { Client } from './client.ts'
import { Aborted, NotFound, Unavailable } from './errors.ts'
import type { ApiGroup, ApiVersion, ServedKind } from './restmapper.ts'
import type { Target } from './transport.ts'

interface AggregatedList {
  readonly kind: 'APIGroupDiscoveryList'
  readonly items?: readonly AggregatedGroup[]
}

interface AggregatedGroup {
  readonly metadata?: { readonly name?: string }
  readonly versions?: readonly {
    readonly version: string
    readonly freshness?: string
    readonly resources?: readonly AggregatedResource[]
  }[]
}

interface AggregatedResource {
  readonly resource: string
  readonly responseKind?: { readonly kind?: string }
  readonly scope?: string
  readonly singularResource?: string
  readonly verbs?: readonly string[]
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly subresources?: readonly { readonly subresource: string; readonly verbs?: readonly string[] }[]
}

/** Of `/api`, in the core group's case, or `/apis`, from servers that do not know the aggregated form. */
interface LegacyRoot {
  readonly kind: 'APIVersions' | 'APIGroupList'
  readonly versions?: readonly string[]
  readonly groups?: readonly {
    readonly name: string
    readonly versions: readonly { readonly version: string }[]
    readonly preferredVersion?: { readonly version: string }
  }[]
}

interface LegacyList {
  readonly resources?: readonly {
    readonly name: string
    readonly kind: string
    readonly namespaced: boolean
    readonly singularName?: string
    readonly verbs?: readonly string[]
    readonly shortNames?: readonly string[]
    readonly categories?: readonly string[]
  }[]
}

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'

/** Every group; `last` is what was known before. */
export async function fetchGroups(client: Client, last: readonly ApiGroup[], signal: AbortSignal): Promise<ApiGroup[]> {
  const roots = await Promise.all(
    ['/api', '/apis'].map(async path => {
      const root = await fetchJson<AggregatedList | LegacyRoot>(client, path, signal, aggregated)
      return root.kind === 'APIGroupDiscoveryList' ? parseAggregated(root) : fetchLegacy(client, root, signal)
    }),
  )
  return roots
    .flat()
    .map(group => ({ ...group, versions: group.versions.map(version => remembered(group.name, version, last)) }))
}

/** A stale version that brings nothing has what it had. */
function remembered(group: string, version: ApiVersion, last: readonly ApiGroup[]): ApiVersion {
  if (!version.isStale || version.kinds.length > 0) return version
  const before = last.find(one => one.name === group)?.versions.find(one => one.version === version.version)
  return { ...version, kinds: before?.kinds ?? [] }
}

export function parseAggregated(list: AggregatedList): ApiGroup[] {
  return (list.items ?? []).map(item => {
    const group = item.metadata?.name ?? ''
    const versions = (item.versions ?? []).map(({ version, freshness, resources }) => ({
      version,
      isStale: freshness === 'Stale',
      kinds: (resources ?? []).flatMap(one => servedKind(group, version, one)),
    }))
    return { name: group, versions }
  })
}

/** None where the server names a resource only to hang subresources on it. */
function servedKind(group: string, version: string, one: AggregatedResource): ServedKind[] {
  const kind = one.responseKind?.kind
  if (!kind) return []
  return [
    {
      ...{ group, version, kind, plural: one.resource, namespaced: one.scope === 'Namespaced' },
      singular: one.singularResource || kind.toLowerCase(),
      shortNames: one.shortNames ?? [],
      categories: one.categories ?? [],
      verbs: one.verbs ?? [],
      subresources: (one.subresources ?? []).map(({ subresource, verbs = [] }) => ({ name: subresource, verbs })),
    },
  ]
}

async function fetchLegacy(client: Client, root: LegacyRoot, signal: AbortSignal): Promise<ApiGroup[]> {
  const groups =
    root.kind === 'APIVersions'
      ? [{ name: '', versions: (root.versions ?? []).map(version => ({ version })) }]
      : (root.groups ?? [])
  return Promise.all(
    groups.map(async group => {
      const preferred = 'preferredVersion' in group ? group.preferredVersion?.version : undefined
      const names = group.versions.map(({ version }) => version)
      names.sort((a, b) => Number(b === preferred) - Number(a === preferred))
      const versions = await Promise.all(names.map(version => fetchVersion(client, group.name, version, signal)))
      return { name: group.name, versions: versions.filter(version => version !== undefined) }
    }),
  )
}

async function fetchVersion(
  client: Client,
  group: string,
  version: string,
  signal: AbortSignal,
): Promise<ApiVersion | undefined> {
  try {
    const list = await fetchJson<LegacyList>(
      client,
      group === '' ? `/api/${version}` : `/apis/${group}/${version}`,
      signal,
    )
    return { version, isStale: false, kinds: parseLegacy(group, version, list) }
  } catch (error) {
    if (error instanceof Aborted) throw error
    // Gone since it was listed; anything else is that API's own trouble.
    return error instanceof NotFound ? undefined : { version, isStale: true, kinds: [] }
  }
}

export function parseLegacy(group: string, version: string, list: LegacyList): ServedKind[] {
  const resources = list.resources ?? []
  return resources
    .filter(one => !one.name.includes('/'))
    .flatMap(({ name, kind, namespaced, singularName = '', ...rest }) =>
      servedKind(group, version, {
        ...{ ...rest, resource: name, responseKind: { kind }, singularResource: singularName },
        scope: namespaced ? 'Namespaced' : 'Cluster',
        subresources: resources
          .filter(sub => sub.name.startsWith(`${name}/`))
          .map(sub => ({ subresource: sub.name.slice(name.length + 1), verbs: sub.verbs ?? [] })),
      }),
    )
}

/** The answer to a GET that is no resource. */
export async function fetchJson<T>(
  client: Client,
  path: string,
  signal: AbortSignal,
  accept = 'application/json',
): Promise<T> {
  const { text } = await client.raw(path, { accept, signal })
  try {
    return JSON.parse(text) as T
  } catch (error) {
    throw new Unavailable('Garbled', rootTarget(path), 'the answer is not JSON', { mayHaveActed: false, cause: error })
  }
}

/** What an error is about that a path outside all resources gave. */
export function rootTarget(path: string): Target {
  return { verb: 'get', group: '', resource: '', name: path }
}
