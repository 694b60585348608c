/**
 * The table of all that is served: built-in resources, and those of CustomResourceDefinitions while these exist.
 */
import type { ResourceType, ServedVersion } from '../types.ts'
import { builtIn } from './builtin.ts'

export interface Resources {
  /** What is served at `/apis/GROUP/VERSION/RESOURCE`. */
  find(group: string, version: string, resource: string): { type: ResourceType; version: ServedVersion } | undefined
  byKind(group: string, kind: string): ResourceType | undefined
  /** In the order of their names. */
  all(): readonly ResourceType[]
  /** Adds, or takes the place of what has the same group and plural. */
  add(type: ResourceType): void
  remove(group: string, resource: string): void
  /** Calls back after every change; answers how to end that. */
  onChange(listener: () => void): () => void
  /** Counts the changes: for documents that are made of the table. */
  readonly generation: number
}

export function createResources(): Resources {
  const table = new Map(builtIn().map(type => [key(type), type]))
  const listeners = new Set<() => void>()
  let generation = 0
  let sorted: readonly ResourceType[] | undefined
  const changed = () => {
    generation++
    sorted = undefined
    for (const listener of listeners) listener()
  }
  return {
    find: (group, version, resource) => {
      const type = table.get(key({ group, resource }))
      const served = type?.versions.find(one => one.version === version && one.served)
      return type && served ? { type, version: served } : undefined
    },
    byKind: (group, kind) => {
      for (const type of table.values()) if (type.group === group && type.kind === kind) return type
      return undefined
    },
    all: () => {
      sorted ??= [...table.values()].sort((a, b) => (key(a) < key(b) ? -1 : 1))
      return sorted
    },
    add: type => {
      table.set(key(type), type)
      changed()
    },
    remove: (group, resource) => {
      if (table.delete(key({ group, resource }))) changed()
    },
    onChange: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    get generation() {
      return generation
    },
  }
}

function key({ group, resource }: { group: string; resource: string }): string {
  return `${group}/${resource}`
}
