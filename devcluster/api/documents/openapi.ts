/**
 * OpenAPI v3 (and v2) of all that is served: enough for `kubectl explain`, for validation at the client and for clients that make types of it. Built-in types have no
 * texts; custom ones have those of their definitions.
 */

import { createHash } from 'node:crypto'
import types from '../../data/types.json' with { type: 'json' }
import { kubernetesVersion } from '../resources/builtin.ts'
import type { Resources } from '../resources/resources.ts'
import type { Schema } from '../schema/schema.ts'
import type { ApiRequest, ApiResponse, ResourceType, ServedVersion } from '../types.ts'
import { openapiProtobuf } from './openapi-protobuf.ts'
import { pathsOf } from './paths.ts'

type Document = Record<string, unknown>

interface Version {
  /** `api/v1`, `apis/apps/v1`. */
  readonly path: string
  readonly group: string
  readonly version: string
  readonly served: readonly [ResourceType, ServedVersion][]
}

/** Answers requests for OpenAPI documents; undefined for others. Documents are made when they are asked for, and kept until what is served changes. */
export function openapi(resources: Resources): (request: ApiRequest) => ApiResponse | undefined {
  const kept = new Map<string, Made>()
  let of = -1
  const document = (key: string, make: () => Document, encode: (made: Document) => Made['text'] = JSON.stringify) => {
    if (of !== resources.generation) kept.clear()
    of = resources.generation
    const known = kept.get(key)
    if (known) return known
    const text = encode(make())
    const made = { text, etag: createHash('sha256').update(text).digest('hex').toUpperCase() }
    kept.set(key, made)
    return made
  }
  return request => {
    if (request.method !== 'GET' || !request.path.startsWith('/openapi/')) return undefined
    const path = request.path.replace(/\/$/, '')
    if (path === '/openapi/v2') {
      const make = () => v2Of(versionsOf(resources))
      // Some ask with a full stop in the stead of `@`.
      const wantsProtobuf = /^application\/com\.github\.proto-openapi\.spec\.v2[@.]v1\.0\+protobuf/.test(
        request.headers['accept'] ?? '',
      )
      return wantsProtobuf
        ? answer(request, document('v2 protobuf', make, openapiProtobuf), protobufType)
        : answer(request, document('v2', make))
    }
    if (path === '/openapi/v3') {
      return answer(
        request,
        document('v3', () => indexOf(versionsOf(resources), one => document(one.path, () => v3Of(one)).etag)),
      )
    }
    const found = versionsOf(resources).find(one => path === `/openapi/v3/${one.path}`)
    return (
      found &&
      answer(
        request,
        document(found.path, () => v3Of(found)),
      )
    )
  }
}

interface Made {
  readonly text: string | Buffer
  readonly etag: string
}

const protobufType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

function answer(request: ApiRequest, { text, etag }: Made, contentType = 'application/json'): ApiResponse {
  const headers = {
    'content-type': contentType,
    etag: `"${etag}"`,
    'cache-control': 'no-cache, private',
    vary: 'Accept',
  }
  if (request.headers['if-none-match'] === `"${etag}"`) return { status: 304, headers, body: '' }
  return { status: 200, headers, body: text }
}

function versionsOf(resources: Resources): Version[] {
  const found = new Map<string, Version & { served: [ResourceType, ServedVersion][] }>()
  for (const type of resources.all()) {
    for (const version of type.versions) {
      if (!version.served) continue
      const path = type.group ? `apis/${type.group}/${version.version}` : `api/${version.version}`
      const one = found.get(path) ?? { path, group: type.group, version: version.version, served: [] }
      one.served.push([type, version])
      found.set(path, one)
    }
  }
  return [...found.values()]
}

function indexOf(versions: readonly Version[], etagOf: (version: Version) => string): Document {
  const paths = versions.map(one => [one.path, { serverRelativeURL: `/openapi/v3/${one.path}?hash=${etagOf(one)}` }])
  return { paths: Object.fromEntries(paths) }
}

const v3Prefix = '#/components/schemas/'

function v3Of(version: Version): Document {
  const schemas = collect([version], v3Prefix)
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: kubernetesVersion },
    paths: Object.assign(
      {},
      ...version.served.map(([type, at]) => pathsOf(type, at, name => ({ $ref: v3Prefix + nameOf(type, at, name) }))),
    ),
    components: { schemas },
  }
}

function v2Of(versions: readonly Version[]): Document {
  return {
    swagger: '2.0',
    info: { title: 'Kubernetes', version: kubernetesVersion },
    paths: {},
    definitions: collect(versions, '#/definitions/'),
  }
}

/** The name of a custom kind's type: `dev.shipmate.v1alpha1.StatefulApp`. */
function nameOf(
  type: ResourceType,
  { version, schema }: ServedVersion,
  kind: 'object' | 'list' | 'scale' | 'status',
): string {
  const own = schema['x-name'] ?? `${type.group.split('.').reverse().join('.')}.${version}.${type.kind}`
  if (kind === 'list') return `${own}List`
  if (kind === 'scale') return 'io.k8s.api.autoscaling.v1.Scale'
  return own
}

/** Types of two forms, which v2 has no words for. */
const either: Readonly<Record<string, Readonly<Record<'v2' | 'v3', object>>>> = {
  'io.k8s.apimachinery.pkg.api.resource.Quantity': {
    v2: { type: 'string' },
    v3: { oneOf: [{ type: 'string' }, { type: 'number' }] },
  },
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': {
    v2: { type: 'string', format: 'int-or-string' },
    v3: { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] },
  },
}

const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const always = [
  `${meta}.Status`,
  `${meta}.DeleteOptions`,
  `${meta}.ObjectMeta`,
  `${meta}.ListMeta`,
  'io.k8s.api.autoscaling.v1.Scale',
]

function collect(versions: readonly Version[], prefix: string): Record<string, unknown> {
  const out: Record<string, unknown> = {}
  const pending = [...always]
  const refer = (name: string) => {
    pending.push(name)
    return { $ref: prefix + name }
  }
  for (const { served } of versions) {
    for (const [type, at] of served) {
      const name = nameOf(type, at, 'object')
      const kinds = { 'x-kubernetes-group-version-kind': [{ group: type.group, kind: type.kind, version: at.version }] }
      if (at.schema['x-name']) pending.push(name)
      else out[name] = { ...customOf(at.schema, refer), ...kinds }
      if (type.verbs.includes('list')) out[`${name}List`] = listOf(type, at, prefix + name, refer)
    }
  }
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (out[name]) continue
    const schema = either[name]?.[prefix === v3Prefix ? 'v3' : 'v2'] ?? (types as Record<string, unknown>)[name]
    if (schema) out[name] = referred(schema, refer)
  }
  return out
}

function listOf(type: ResourceType, { version }: ServedVersion, item: string, refer: (name: string) => object): object {
  return {
    type: 'object',
    required: ['items'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: refer(`${meta}.ListMeta`),
      items: { type: 'array', items: { $ref: item } },
    },
    'x-kubernetes-group-version-kind': [{ group: type.group, kind: type.listKind, version }],
  }
}

/** The schema of a custom kind, with the metadata that every object has by its name. */
function customOf(schema: Schema, refer: (name: string) => object): object {
  return { ...schema, properties: { ...schema.properties, metadata: refer(`${meta}.ObjectMeta`) } }
}

/** Generated data has the plain names of types. */
function referred(value: unknown, refer: (name: string) => object): unknown {
  if (Array.isArray(value)) return value.map(item => referred(item, refer))
  if (value === null || typeof value !== 'object') return value
  const { $ref, ...rest } = value as Record<string, unknown>
  const out = Object.fromEntries(Object.entries(rest).map(([key, item]) => [key, referred(item, refer)]))
  return typeof $ref === 'string' ? { ...refer($ref), ...out } : out
}
