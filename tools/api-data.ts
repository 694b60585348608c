/**
 * Writes devcluster/data/ from a real API server: the types of built-in kinds (structure alone, no texts), their merge keys, discovery and columns.
 * `node tools/api-data.ts` with KUBECONFIG set to a cluster of the version to take; `kinds` below is the list to extend.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Client, connect } from '../controller/kube/index.ts'

const folder = join(import.meta.dirname, '../devcluster/data')

/** Resources by group and version. What they consist of is taken along. */
const kinds: Record<string, string[]> = {
  v1: [
    'bindings',
    'configmaps',
    'endpoints',
    'events',
    'limitranges',
    'namespaces',
    'nodes',
    'persistentvolumeclaims',
    'persistentvolumes',
    'pods',
    'podtemplates',
    'resourcequotas',
    'secrets',
    'serviceaccounts',
    'services',
  ],
  'admissionregistration.k8s.io/v1': ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'],
  'apiextensions.k8s.io/v1': ['customresourcedefinitions'],
  'apps/v1': ['controllerrevisions', 'daemonsets', 'deployments', 'replicasets', 'statefulsets'],
  'authentication.k8s.io/v1': ['selfsubjectreviews', 'tokenreviews'],
  'authorization.k8s.io/v1': [
    'localsubjectaccessreviews',
    'selfsubjectaccessreviews',
    'selfsubjectrulesreviews',
    'subjectaccessreviews',
  ],
  'autoscaling/v2': ['horizontalpodautoscalers'],
  'batch/v1': ['cronjobs', 'jobs'],
  'coordination.k8s.io/v1': ['leases'],
  'discovery.k8s.io/v1': ['endpointslices'],
  'events.k8s.io/v1': ['events'],
  'networking.k8s.io/v1': ['ingressclasses', 'ingresses', 'networkpolicies'],
  'policy/v1': ['poddisruptionbudgets'],
  'rbac.authorization.k8s.io/v1': ['clusterrolebindings', 'clusterroles', 'rolebindings', 'roles'],
  'scheduling.k8s.io/v1': ['priorityclasses'],
  'storage.k8s.io/v1': ['storageclasses'],
}

/** Types that are bodies or answers of subresources and of every resource. */
const further: Record<string, string[]> = {
  v1: ['io.k8s.apimachinery.pkg.apis.meta.v1.Status', 'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions'],
  'apps/v1': ['io.k8s.api.autoscaling.v1.Scale'],
}

/** Types whose content is anybody's. */
const open = [
  'io.k8s.apimachinery.pkg.runtime.RawExtension',
  'io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray',
]

type Tree = { [key: string]: unknown }

interface GroupKind {
  group: string
  version: string
  kind: string
}

interface Discovered {
  resource: string
  responseKind: GroupKind
  scope: 'Namespaced' | 'Cluster'
  singularResource: string
  shortNames?: string[]
  categories?: string[]
  verbs: string[]
  subresources?: { subresource: string; responseKind: GroupKind; verbs: string[] }[]
}

export interface ResourceData {
  group: string
  version: string
  resource: string
  kind: string
  singular: string
  shortNames?: string[]
  categories?: string[]
  namespaced: boolean
  verbs: string[]
  subresources: { name: string; group: string; version: string; kind: string; verbs: string[] }[]
  /** The name of its type. */
  type: string
  /** Name, type, format, priority. */
  columns: [string, string, string, number][]
}

export interface ApiData {
  /** Of the server that they are from. */
  version: string
  resources: ResourceData[]
  types: Record<string, unknown>
}

export async function collect(client: Client): Promise<ApiData> {
  const { gitVersion } = await json<{ gitVersion: string }>(client, '/version')
  const discovered = await discovery(client)
  const found: Record<string, Tree> = {}
  const resources: ResourceData[] = []
  const wanted = new Set<string>()
  for (const [groupVersion, names] of Object.entries(kinds)) {
    const [version = '', group = ''] = groupVersion.split('/').reverse()
    const path = group ? `apis/${groupVersion}` : `api/${version}`
    const { components } = await json<{ components: { schemas: Record<string, Tree> } }>(client, `/openapi/v3/${path}`)
    Object.assign(found, components.schemas)
    for (const type of further[groupVersion] ?? []) wanted.add(type)
    for (const name of names) {
      const one = discovered.get(`${groupVersion}/${name}`)
      if (!one) throw new Error(`the server has no ${name} in ${groupVersion}`)
      const type = typeOf(components.schemas, { group, version, kind: one.responseKind.kind })
      wanted.add(type)
      resources.push(row({ group, version, type }, one, await columns(client, `/${path}/${name}`, one)))
    }
  }
  return { version: gitVersion, resources, types: reachable(found, wanted) }
}

function row(of: { group: string; version: string; type: string }, one: Discovered, columns: ResourceData['columns']) {
  const { group, version, type } = of
  return {
    group,
    version,
    resource: one.resource,
    kind: one.responseKind.kind,
    singular: one.singularResource,
    ...(one.shortNames ? { shortNames: one.shortNames } : {}),
    ...(one.categories ? { categories: one.categories } : {}),
    namespaced: one.scope === 'Namespaced',
    verbs: one.verbs,
    subresources: (one.subresources ?? []).map(({ subresource, responseKind, verbs }) => ({
      name: subresource,
      group: responseKind.group || (responseKind.version ? '' : group),
      version: responseKind.version || version,
      kind: responseKind.kind,
      verbs,
    })),
    type,
    columns,
  }
}

async function discovery(client: Client): Promise<Map<string, Discovered>> {
  const found = new Map<string, Discovered>()
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  for (const path of ['/api', '/apis']) {
    const list = await json<{
      items: { metadata: { name?: string }; versions: { version: string; resources: Discovered[] }[] }[]
    }>(client, path, accept)
    for (const group of list.items) {
      for (const { version, resources } of group.versions) {
        const groupVersion = group.metadata.name ? `${group.metadata.name}/${version}` : version
        for (const one of resources) found.set(`${groupVersion}/${one.resource}`, one)
      }
    }
  }
  return found
}

async function columns(client: Client, path: string, { verbs }: Discovered): Promise<ResourceData['columns']> {
  if (!verbs.includes('list')) return []
  const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1'
  const { columnDefinitions } = await json<{
    columnDefinitions: { name: string; type: string; format: string; priority: number }[]
  }>(client, `${path}?limit=1&includeObject=None`, accept)
  return columnDefinitions.map(({ name, type, format, priority }) => [name, type, format, priority])
}

function typeOf(schemas: Record<string, Tree>, wanted: GroupKind): string {
  for (const [name, schema] of Object.entries(schemas)) {
    const of = (schema['x-kubernetes-group-version-kind'] ?? []) as GroupKind[]
    if (of.some(({ group, version, kind }) => [group, version, kind].join() === Object.values(wanted).join()))
      return name
  }
  throw new Error(`there is no type of ${wanted.kind}`)
}

/** The wanted types and all that they consist of, sorted by name. */
function reachable(found: Record<string, Tree>, wanted: ReadonlySet<string>): Record<string, unknown> {
  const types = new Map<string, unknown>()
  const queue = [...wanted]
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (types.has(name)) continue
    const schema = found[name]
    if (!schema) throw new Error(`there is no type ${name}`)
    types.set(name, open.includes(name) ? { 'x-kubernetes-preserve-unknown-fields': true } : structure(schema, queue))
    if (name.endsWith('.Quantity')) types.set(name, { 'x-kubernetes-int-or-string': true, format: 'quantity' })
  }
  return Object.fromEntries([...types].sort(([a], [b]) => (a < b ? -1 : 1)))
}

const kept = [
  'type',
  'format',
  'enum',
  'required',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-patch-strategy',
  'x-kubernetes-patch-merge-key',
  'x-kubernetes-group-version-kind',
]

/** A schema without texts. A type by name is `{"$ref": "name"}`; names go to `queue`. */
function structure(schema: Tree, queue: string[]): Tree {
  const out: Tree = {}
  for (const key of kept) if (schema[key] !== undefined) out[key] = schema[key]
  const {
    default: value,
    properties,
    items,
    additionalProperties,
    allOf,
    $ref,
    oneOf,
  } = schema as {
    default?: unknown
    properties?: Record<string, Tree>
    items?: Tree
    additionalProperties?: Tree | boolean
    allOf?: Tree[]
    $ref?: string
    oneOf?: Tree[]
  }
  const ref = $ref ?? (allOf?.[0]?.$ref as string | undefined)
  if (ref) {
    const name = ref.replace('#/components/schemas/', '')
    queue.push(name)
    out.$ref = name
  }
  // Often the zero of its type: what a server in Go writes where there was nothing.
  if (value !== undefined) out.default = value
  if (oneOf) {
    delete out.type
    out['x-kubernetes-int-or-string'] = true
  }
  if (properties) {
    out.properties = Object.fromEntries(Object.entries(properties).map(([key, one]) => [key, structure(one, queue)]))
  }
  if (items) out.items = structure(items, queue)
  if (additionalProperties) {
    out.additionalProperties = additionalProperties === true ? true : structure(additionalProperties, queue)
  }
  return out
}

async function json<T>(client: Client, path: string, accept = 'application/json'): Promise<T> {
  const { text } = await client.raw(path, { accept })
  return JSON.parse(text)
}

if (import.meta.main) {
  const access = connect()
  try {
    const { version, resources, types } = await collect(access.client)
    await writeFile(join(folder, 'resources.json'), lines('resources', { version }, resources))
    await writeFile(join(folder, 'types.json'), `{\n${pairs(types)}\n}\n`)
    console.log(`${resources.length} resources and ${Object.keys(types).length} types of ${version}`)
  } finally {
    await access.close()
  }
}

/** One resource, and one type, a line: so that a change can be read. */
function lines(key: string, head: Tree, rows: readonly unknown[]): string {
  const first = Object.entries(head).map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`)
  return `{\n${first.join('')}  "${key}": [\n${rows.map(row => `    ${JSON.stringify(row)}`).join(',\n')}\n  ]\n}\n`
}

function pairs(types: Record<string, unknown>): string {
  return Object.entries(types)
    .map(([name, type]) => `  ${JSON.stringify(name)}: ${JSON.stringify(type)}`)
    .join(',\n')
}
