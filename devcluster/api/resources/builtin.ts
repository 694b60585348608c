/**
 * The built-in resources: rows of generated data, with what is particular to a kind beside them.
 */
import data from '../../data/resources.json' with { type: 'json' }
import type { Column, ResourceType, ServedVersion, Strategy } from '../types.ts'
import { cellOf } from './cells.ts'
import { typeNamed } from './link.ts'
import { strategies } from './strategies/strategies.ts'

type Row = (typeof data.resources)[number]

export const kubernetesVersion = data.version

export function builtIn(): ResourceType[] {
  return (data.resources as Row[]).map(resourceType)
}

function resourceType(row: Row): ResourceType {
  const { group, resource, kind, singular, namespaced, verbs, version } = row
  return {
    group,
    resource,
    kind,
    listKind: `${kind}List`,
    singular,
    shortNames: ('shortNames' in row ? row.shortNames : undefined) ?? [],
    categories: ('categories' in row ? row.categories : undefined) ?? [],
    namespaced,
    verbs,
    versions: [servedVersion(row)],
    storage: version,
    strategy: strategies[`${group}/${resource}`] ?? plain,
  }
}

const plain: Strategy = { hasGeneration: false }

function servedVersion(row: Row): ServedVersion {
  const names = row.subresources.map(({ name }) => name)
  return {
    version: row.version,
    served: true,
    get schema() {
      return typeNamed(row.type)
    },
    get columns() {
      return (row.columns as [string, string, string, number][]).map(
        ([name, type, format, priority]): Column => ({
          name,
          type,
          format,
          priority,
          description: '',
          cell: cellOf(row.group, row.resource, name),
        }),
      )
    },
    status: names.includes('status'),
    scale: names.includes('scale')
      ? { spec: '.spec.replicas', status: '.status.replicas', selector: '.spec.selector' }
      : undefined,
    subresources: names.filter(name => name !== 'status' && name !== 'scale'),
  }
}

/** How discovery describes the subresources of a built-in resource. */
export function subresourcesOf(group: string, resource: string): Row['subresources'] {
  return data.resources.find(row => row.group === group && row.resource === resource)?.subresources ?? []
}
