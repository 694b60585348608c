/**
 * What a module of the user's exports: custom resources and operators. They are known by what they have, not by their class: the module may have a copy of
 * the toolkit of its own.
 *
 * Guarantees: an export that is a list counts as its items; what is exported twice is there once; a kind that an operator is for is there too.
 */
import { existsSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { CustomResource, Reconciler } from '../controller/toolkit/index.ts'
import { messageOf } from '../shared/errors.ts'
import { Failure, Misuse } from './ending.ts'

// biome-ignore lint/suspicious/noExplicitAny: a file has operators of many kinds.
export type AnyOperator = Reconciler<any>

export interface Exported {
  /** As it was named, from the working directory. */
  readonly file: string
  readonly definitions: readonly CustomResource[]
  readonly operators: readonly AnyOperator[]
  /** What the process is called by its lease, as `run` would have it; undefined where the order of several operators is not known. */
  readonly lease: string | undefined
}

export async function loadModule(path: string): Promise<Exported> {
  const file = relative('', path) || path
  if (!existsSync(path)) throw new Misuse(`there is no file ${file}`)
  const exported = Object.values(await imported(file, resolve(path)))
  const operators = unique(exported.flat().filter(isOperator))
  const listed = exported.find(one => Array.isArray(one) && one.length > 0 && one.every(isOperator)) as
    | AnyOperator[]
    | undefined
  const [first] = listed ?? (operators.length === 1 ? operators : [])
  const kinds = [...exported.flat(), ...operators.map(({ kind }) => kind)]
  return {
    file,
    definitions: onePerCrd(file, unique(kinds.filter(isDefinition))),
    operators: listed ? unique([...listed, ...operators]) : operators,
    lease: first && (first.options.name ?? first.kind.kind.toLowerCase()),
  }
}

async function imported(file: string, path: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(path).href)
  } catch (error) {
    throw new Failure(`${file} cannot be loaded: ${messageOf(error)}`)
  }
}

function isDefinition(value: unknown): value is CustomResource {
  const it = value as Partial<CustomResource> | null | undefined
  return typeof it === 'object' && typeof it?.crd === 'function' && typeof it.crdYaml === 'function'
}

function isOperator(value: unknown): value is AnyOperator {
  const it = value as Partial<AnyOperator> | null | undefined
  return typeof it === 'object' && typeof it?.connect === 'function' && Array.isArray(it.kinds) && it.kind !== undefined
}

/** Versions of a kind that stand in another's CRD have none of their own. */
function onePerCrd(file: string, definitions: readonly CustomResource[]): CustomResource[] {
  const byName = Map.groupBy(definitions, definition => definition.crd().metadata.name)
  return [...byName].map(([name, all]) => {
    const stored = all.filter(definition => definition.crd().spec.versions.some(({ storage }) => storage))
    const [one, other] = stored
    if (!one) throw new Failure(`${file}: of the CRD ${name} no version is stored: one definition needs storage: true`)
    if (other)
      throw new Failure(
        `${file}: the CRD ${name} is defined twice: list one in \`versions\` of the other, with storage: false`,
      )
    return one
  })
}

function unique<T>(all: readonly T[]): T[] {
  return [...new Set(all)]
}
