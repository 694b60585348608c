/**
 * What is served, for clients that ask first: `/api`, `/apis` and below, in the old form and the aggregated one.
 */
import { createHash } from 'node:crypto'
import { subresourcesOf } from '../resources/builtin.ts'
import { comparePriority } from '../resources/custom.ts'
import type { Resources } from '../resources/resources.ts'
import type { ApiRequest, ApiResponse, ResourceType, ServedVersion } from '../types.ts'

/** Answers requests for discovery; undefined for others. */
export function discovery(resources: Resources): (request: ApiRequest) => ApiResponse | undefined {
  return request => {
    if (request.method !== 'GET') return undefined
    const path = request.path.replace(/\/$/, '')
    if (path === '/api' || path === '/apis') return rootOf(resources, path, request)
    const [, core, name, version] = /^\/(?:api\/(v1)|apis\/([^/]+)(?:\/([^/]+))?)$/.exec(path) ?? []
    if (core) return json(resourceList(resources, '', 'v1'))
    if (!name) return undefined
    if (version) return hasVersion(resources, name, version) ? json(resourceList(resources, name, version)) : undefined
    const group = groupsOf(resources).find(one => one.name === name)
    return group && json({ kind: 'APIGroup', apiVersion: 'v1', ...group })
  }
}

function rootOf(resources: Resources, path: string, request: ApiRequest): ApiResponse {
  const form =
    /g=apidiscovery\.k8s\.io;v=(v2(?:beta1)?);as=APIGroupDiscoveryList|as=APIGroupDiscoveryList;[^,]*v=(v2(?:beta1)?)/.exec(
      request.headers.accept ?? '',
    )
  if (form) return aggregated(resources, path, form[1] ?? form[2] ?? 'v2', request)
  if (path === '/apis') return json({ kind: 'APIGroupList', apiVersion: 'v1', groups: groupsOf(resources) })
  const address = [{ clientCIDR: '0.0.0.0/0', serverAddress: request.headers.host ?? '' }]
  return json({ kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: address })
}

function hasVersion(resources: Resources, group: string, version: string): boolean {
  return resources
    .all()
    .some(type => type.group === group && type.versions.some(one => one.version === version && one.served))
}

interface Group {
  name: string
  versions: { groupVersion: string; version: string }[]
  preferredVersion: { groupVersion: string; version: string } | undefined
}

/** Without the core group. Those of Kubernetes come first, custom ones by name. */
function groupsOf(resources: Resources): Group[] {
  const names = [...new Set(resources.all().map(({ group }) => group))].filter(group => group !== '')
  return names.map(name => {
    const versions = versionsOf(resources, name).map(version => ({ groupVersion: `${name}/${version}`, version }))
    return { name, versions, preferredVersion: versions[0] }
  })
}

function versionsOf(resources: Resources, group: string): string[] {
  const all = resources.all().filter(type => type.group === group)
  const served = all.flatMap(({ versions }) => versions.filter(one => one.served).map(({ version }) => version))
  return [...new Set(served)].sort((a, b) => comparePriority(b, a))
}

function served(resources: Resources, group: string, version: string): [ResourceType, ServedVersion][] {
  return resources.all().flatMap((type): [ResourceType, ServedVersion][] => {
    const found = type.group === group && type.versions.find(one => one.version === version && one.served)
    return found ? [[type, found]] : []
  })
}

interface Subresource {
  name: string
  group: string
  version: string
  kind: string
  verbs: readonly string[]
}

function subresources(type: ResourceType, { version, status, scale }: ServedVersion): Subresource[] {
  if (!type.custom) return subresourcesOf(type.group, type.resource)
  const verbs = ['get', 'patch', 'update']
  const own = { name: 'status', group: type.group, version, kind: type.kind, verbs }
  return [
    ...(status ? [own] : []),
    ...(scale ? [{ name: 'scale', group: 'autoscaling', version: 'v1', kind: 'Scale', verbs }] : []),
  ]
}

function resourceList(resources: Resources, group: string, version: string): object {
  const list = served(resources, group, version).flatMap(([type, at]) => [
    {
      name: type.resource,
      singularName: type.singular,
      namespaced: type.namespaced,
      kind: type.kind,
      verbs: type.verbs,
      ...(type.shortNames.length > 0 ? { shortNames: type.shortNames } : {}),
      ...(type.categories.length > 0 ? { categories: type.categories } : {}),
      storageVersionHash: hash(`${group}/${type.storage}/${type.kind}`).slice(0, 11),
    },
    ...subresources(type, at).map(sub => ({
      name: `${type.resource}/${sub.name}`,
      singularName: '',
      namespaced: type.namespaced,
      ...(sub.group !== group || sub.version !== version ? { group: sub.group, version: sub.version } : {}),
      kind: sub.kind,
      verbs: sub.verbs,
    })),
  ])
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: group ? `${group}/${version}` : version,
    resources: list,
  }
}

function aggregated(resources: Resources, path: string, form: string, request: ApiRequest): ApiResponse {
  const names = path === '/api' ? [''] : groupsOf(resources).map(({ name }) => name)
  const items = names.map(name => ({
    metadata: { ...(name ? { name } : {}), creationTimestamp: null },
    versions: versionsOf(resources, name).map(version => ({
      version,
      resources: served(resources, name, version).map(([type, at]) => discovered(type, at)),
      freshness: 'Current',
    })),
  }))
  const body = { kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${form}`, metadata: {}, items }
  const text = JSON.stringify(body)
  const etag = `"${hash(text)}"`
  const headers = {
    'content-type': `application/json;g=apidiscovery.k8s.io;v=${form};as=APIGroupDiscoveryList`,
    etag,
    vary: 'Accept',
    'cache-control': 'no-cache, private',
  }
  if (request.headers['if-none-match'] === etag) return { status: 304, headers, body: '' }
  return { status: 200, headers, body: text }
}

function discovered(type: ResourceType, at: ServedVersion): object {
  const kind = { group: type.group, version: at.version, kind: type.kind }
  const all = subresources(type, at)
  return {
    resource: type.resource,
    responseKind: kind,
    scope: type.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: type.singular,
    verbs: type.verbs,
    ...(type.shortNames.length > 0 ? { shortNames: type.shortNames } : {}),
    ...(type.categories.length > 0 ? { categories: type.categories } : {}),
    ...(all.length > 0
      ? {
          subresources: all.map(sub => ({
            subresource: sub.name,
            responseKind: { group: sub.group, version: sub.version, kind: sub.kind },
            verbs: sub.verbs,
          })),
        }
      : {}),
  }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

function json(body: object): ApiResponse {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
