/**
 * A CustomResourceDefinition as a row of the table.
 */
import type { Schema } from '../schema/schema.ts'
import type { Column, Json, Obj, ResourceType, ServedVersion, Strategy } from '../types.ts'
import { age } from './age.ts'
import { jsonPath, simplePath } from './json-path.ts'
import { typeNamed } from './link.ts'

interface Definition {
  group: string
  scope: 'Namespaced' | 'Cluster'
  names: Names
  versions: DefinedVersion[]
}

/** Those that a definition gives to its kind. */
export interface Names {
  plural: string
  singular?: string
  kind: string
  listKind?: string
  shortNames?: string[]
  categories?: string[]
}

interface DefinedVersion {
  name: string
  served: boolean
  storage: boolean
  deprecated?: boolean
  deprecationWarning?: string
  schema?: { openAPIV3Schema?: Schema }
  subresources?: {
    status?: object
    scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string }
  }
  additionalPrinterColumns?: {
    name: string
    type: string
    format?: string
    description?: string
    priority?: number
    jsonPath: string
  }[]
  selectableFields?: { jsonPath: string }[]
}

const verbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']

export function customResource(crd: Obj): ResourceType {
  const { group, scope, names, versions } = crd.spec as Definition
  const storage = versions.find(version => version.storage)?.name ?? versions[0]?.name ?? ''
  return {
    group,
    resource: names.plural,
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    singular: names.singular ?? names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: scope === 'Namespaced',
    verbs,
    versions: [...versions]
      .sort((a, b) => comparePriority(b.name, a.name))
      .map((version, at, sorted) => servedVersion(group, names.kind, version, sorted.slice(0, at))),
    storage,
    strategy: strategyOf(versions),
    custom: crd.metadata.uid,
  }
}

/** @param before those that are preferred to it */
function servedVersion(
  group: string,
  kind: string,
  version: DefinedVersion,
  before: readonly DefinedVersion[],
): ServedVersion {
  const { scale, status } = version.subresources ?? {}
  const better = before.find(one => one.served && !one.deprecated)
  const instead = better ? `; use ${group}/${better.name} ${kind}` : ''
  const warning = version.deprecationWarning ?? `${group}/${version.name} ${kind} is deprecated${instead}`
  return {
    version: version.name,
    served: version.served,
    schema: withMetadata(
      version.schema?.openAPIV3Schema ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    ),
    columns: columnsOf(version),
    status: status !== undefined,
    scale: scale
      ? { spec: scale.specReplicasPath, status: scale.statusReplicasPath, selector: scale.labelSelectorPath }
      : undefined,
    subresources: [],
    ...(version.deprecated ? { deprecated: warning } : {}),
  }
}

/** Every object has them, whatever its definition says. */
function withMetadata(schema: Schema): Schema {
  return {
    ...schema,
    properties: {
      ...schema.properties,
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      // What its definition says of names is kept beside what they are everywhere.
      metadata: {
        ...typeNamed('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'),
        ...metadataRules(schema.properties?.metadata),
      },
    },
  }
}

function metadataRules(schema: Schema | undefined): Partial<Schema> {
  const meta = typeNamed('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')
  const given = Object.entries(schema?.properties ?? {}).filter(([name]) => name === 'name' || name === 'generateName')
  if (given.length === 0) return {}
  return { properties: { ...meta.properties, ...Object.fromEntries(given) } }
}

function columnsOf({ additionalPrinterColumns }: DefinedVersion): Column[] {
  const name: Column = {
    name: 'Name',
    type: 'string',
    format: 'name',
    description: '',
    priority: 0,
    cell: object => object.metadata.name,
  }
  if (!additionalPrinterColumns?.length) {
    const cell = (object: Obj): Json => age(object.metadata.creationTimestamp)
    return [name, { name: 'Age', type: 'date', format: '', description: '', priority: 0, cell }]
  }
  return [
    name,
    ...additionalPrinterColumns.map(column => {
      const read = jsonPath(column.jsonPath)
      return {
        name: column.name,
        type: column.type,
        format: column.format ?? '',
        description: column.description ?? '',
        priority: column.priority ?? 0,
        cell: (object: Obj) => cellOf(column.type, read(object)),
      }
    }),
  ]
}

function cellOf(type: string, found: readonly unknown[]): Json {
  const [value] = found
  if (value === undefined || value === null) return null
  if (type === 'date') return age(String(value))
  if (type === 'integer') return typeof value === 'number' ? Math.trunc(value) : null
  if (type === 'number') return typeof value === 'number' ? value : null
  if (type === 'boolean') return typeof value === 'boolean' ? value : null
  if (found.length > 1) return found.map(text).join(' ')
  return text(value)
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function strategyOf(versions: readonly DefinedVersion[]): Strategy {
  const selectable = versions.flatMap(({ selectableFields = [] }) => selectableFields.map(field => field.jsonPath))
  const fields = Object.fromEntries(
    [...new Set(selectable)].map(path => {
      const read = simplePath(path)
      return [path.replace(/^\./, ''), (object: Obj) => String(read(object) ?? '')]
    }),
  )
  return { hasGeneration: true, fields }
}

const form = /^v(\d+)(?:(alpha|beta)(\d+))?$/

/** By maturity, then number: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name. */
export function comparePriority(a: string, b: string): number {
  const [left, right] = [form.exec(a), form.exec(b)]
  if (!left || !right) return left ? 1 : right ? -1 : a < b ? 1 : -1
  const rank = ([, major, stage, minor]: RegExpExecArray) =>
    [stage === undefined ? 2 : stage === 'beta' ? 1 : 0, Number(major), Number(minor ?? 0)] as const
  const [x, y] = [rank(left), rank(right)]
  return x[0] - y[0] || x[1] - y[1] || x[2] - y[2]
}
