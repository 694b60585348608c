/**
 * What a schema does not know is dropped, and its paths are told. Pure: `prune` answers a copy.
 *
 * Where `x-kubernetes-preserve-unknown-fields` stands, unknown fields stay as they are, but known ones below are pruned by their own schemas again.
 */
import { standing } from './object-meta.ts'
import type { Schema } from './schema.ts'
import { child, copy, isObject, type JsonObject, propertyOf, set, valuesOf } from './values.ts'

export const prune = <T>(schema: Schema, value: T): T => walk({ schema, isRoot: true, keeps: false }, value, '') as T

/** Where the walk is: at a schema (none: nothing is known here), at the root or in an object that is kept whole. */
export interface Place {
  readonly schema: Schema | undefined
  readonly isRoot: boolean
  readonly keeps: boolean
}

/** @param found gets the path of each field that is dropped. */
export function walk(place: Place, value: unknown, path: string, found?: string[]): unknown {
  const { schema } = place
  const keeps = place.keeps || schema?.['x-kubernetes-preserve-unknown-fields'] === true
  if (Array.isArray(value)) {
    const items: Place = { schema: schema?.items, isRoot: false, keeps }
    return value.map((item, index) => walk(items, item, `${path}[${index}]`, found))
  }
  if (!isObject(value)) return value
  const kept: JsonObject = {}
  for (const key in value) {
    const below = fieldOf(place, key)
    if (below) {
      const inner = walk({ schema: below.schema, isRoot: false, keeps: false }, value[key], child(path, key), found)
      set(kept, key, below.isMeta ? tidied(inner) : inner)
    } else if (keeps) set(kept, key, copy(value[key]))
    else found?.push(child(path, key))
  }
  return kept
}

/** Metadata is decoded and written anew: what is empty is not there. */
function tidied(metadata: unknown): unknown {
  if (!isObject(metadata)) return metadata
  const full = (value: unknown) =>
    value !== null && value !== '' && !(typeof value === 'object' && Object.keys(value ?? {}).length === 0)
  return Object.fromEntries(
    Object.entries(metadata)
      .filter(([, value]) => full(value))
      .map(([key, value]) => [key, key === 'labels' || key === 'annotations' ? texts(value) : value]),
  )
}

const texts = (map: unknown) =>
  isObject(map) ? Object.fromEntries(Object.entries(map).map(([key, value]) => [key, value ?? ''])) : map

interface Below {
  readonly schema: Schema | undefined
  readonly isMeta?: boolean
}

function fieldOf({ schema, isRoot }: Place, key: string): Below | undefined {
  if (!schema) return undefined
  if (isRoot || schema['x-kubernetes-embedded-resource']) {
    const known = standing(schema, key)
    if (known) return { schema: known, isMeta: key === 'metadata' }
  }
  const property = propertyOf(schema, key)
  if (property) return { schema: property }
  // A map of anything knows its keys, and nothing that is below them.
  return schema.additionalProperties ? { schema: valuesOf(schema) } : undefined
}
