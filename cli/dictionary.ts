/**
 * The dictionary of types for which code can be generated: Kubernetes' own that have a name in `shipmate/kube`, those that the cluster serves, and those of
 * a file.
 *
 * Guarantee: of two with the same kind and group the last in that order counts, but for its name in `shipmate/kube`.
 */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { z } from 'zod'
import { createDiscovery } from '../controller/kube/discovery.ts'
import { defineKind, type Kind } from '../controller/kube/kind.ts'
import * as kinds from '../controller/kube/kinds.ts'
import { messageOf } from '../shared/errors.ts'
import { suggestion } from '../shared/nearest.ts'
import type { Cluster } from './cluster.ts'
import { Failure, Misuse } from './ending.ts'

export interface Type {
  /** What it is asked for by. */
  readonly type: string
  readonly kind: Kind
  /** Under which `shipmate/kube` exports it. */
  readonly exported?: string | undefined
  /** Other names. */
  readonly aliases: readonly string[]
}

/** What objects of an operator are never made of. */
const reviews = [kinds.SubjectAccessReview, kinds.TokenReview]

export function builtIn(): Type[] {
  return Object.entries(kinds as Record<string, Kind>)
    .filter(([, kind]) => !(reviews as Kind[]).includes(kind))
    .map(([exported, kind]) => ({ type: kind.kind, kind, exported, aliases: [kind.plural] }))
}

/** What can be created and patched of what the cluster serves, each in its group's preferred version. */
export async function served({ access }: Cluster, deadline: number): Promise<Type[]> {
  const groups = await createDiscovery(access.client).groups({ signal: AbortSignal.timeout(deadline) })
  const all = groups.flatMap(({ versions }) => versions.flatMap(version => version.kinds))
  const able = all.filter(({ verbs }) => verbs.includes('create') && verbs.includes('patch'))
  const preferred = Map.groupBy(able, kind => `${kind.kind}.${kind.group}`)
  return [...preferred.values()].flatMap(([first]) => {
    if (!first) return []
    const { group, version, kind, plural, namespaced, singular, shortNames } = first
    return [
      { type: kind, kind: { group, version, kind, plural, namespaced }, aliases: [plural, singular, ...shortNames] },
    ]
  })
}

const entry = z.strictObject({
  type: z.string().min(1).optional(),
  group: z
    .string()
    .regex(/^[a-z0-9.-]*$/)
    .default(''),
  version: z.string().regex(/^v[a-z0-9]+$/),
  kind: z.string().regex(/^[A-Z][A-Za-z0-9]*$/),
  plural: z
    .string()
    .regex(/^[a-z0-9-]+$/)
    .optional(),
  namespaced: z.boolean().optional(),
})

/** A list of `{ type, group, version, kind, plural, namespaced }`, in YAML or JSON; version and kind have to be there. */
export function fromFile(file: string): Type[] {
  let given: unknown
  try {
    given = parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Failure(`the dictionary ${file} cannot be read: ${messageOf(error).split('\n')[0]}`)
  }
  const { data, error } = z.array(entry).safeParse(given)
  if (error) {
    const [issue] = error.issues
    throw new Failure(
      `the dictionary ${file} has to be a list of { type, group, version, kind, plural, namespaced }: ${issue?.path.join('.')} ${issue?.message}`,
    )
  }
  return data.map(({ type, plural, namespaced, ...rest }) => {
    const kind = defineKind({ ...rest, ...(plural && { plural }), ...(namespaced !== undefined && { namespaced }) })
    return { type: type ?? kind.kind, kind, aliases: [kind.plural] }
  })
}

export function merged(...lists: readonly (readonly Type[])[]): Type[] {
  const all = new Map<string, Type>()
  for (const one of lists.flat()) {
    const key = `${one.kind.kind}.${one.kind.group}`
    const before = all.get(key)
    const exported = before?.kind.version === one.kind.version ? (one.exported ?? before.exported) : one.exported
    all.set(key, { ...one, exported, aliases: [...(before?.aliases ?? []), ...one.aliases] })
  }
  return named([...all.values()])
}

/** By kind, plural or short name, `.GROUP` after it where that is not enough; upper and lower case are the same. */
export function findType(dictionary: readonly Type[], asked: string): Type | undefined {
  const name = asked.toLowerCase()
  const matches = (candidate: string, { kind }: Type) =>
    [candidate, `${candidate}.${groupName(kind)}`].some(one => one.toLowerCase() === name)
  return (
    dictionary.find(one => matches(one.type, one)) ??
    dictionary.find(one => matches(one.kind.kind, one)) ??
    dictionary.find(one => one.aliases.some(alias => matches(alias, one)))
  )
}

export function unknownType(dictionary: readonly Type[], asked: string): Misuse {
  const near = suggestion(
    asked,
    dictionary.map(({ type }) => type),
  )
  return new Misuse(`the dictionary has no type "${asked}"${near}`)
}

/** The dictionary as a table. */
export function tableOf(dictionary: readonly Type[]): string {
  const rows = dictionary.map(({ type, kind }) => [type, groupName(kind), kind.version, kind.kind])
  const all = [['TYPE', 'GROUP', 'VERSION', 'KIND'], ...rows.toSorted(([a = ''], [b = '']) => a.localeCompare(b))]
  const widths = [0, 1, 2].map(column => Math.max(...all.map(row => row[column]?.length ?? 0)))
  return all.map(row => `${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}\n`).join('')
}

/** A kind that several groups have is asked for with its group, but for the first. */
function named(types: readonly Type[]): Type[] {
  const seen = new Set<string>()
  return types.map(one => {
    const isFirst = !seen.has(one.type)
    seen.add(one.type)
    return isFirst ? one : { ...one, type: `${one.type}.${groupName(one.kind)}` }
  })
}

/** The core group has no name of its own. */
export function groupName({ group }: Pick<Kind, 'group'>): string {
  return group || 'core'
}
