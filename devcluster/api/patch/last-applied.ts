/**
 * The annotation of kubectl's client-side apply: what it says was applied may be taken over without a conflict, and it follows what is applied.
 */
import type { Json, Obj } from '../types.ts'
import { compare } from './compare.ts'
import { findMismatch } from './conform.ts'
import { goJson } from './elements.ts'
import { fieldsOf } from './fields-of.ts'
import { difference, type FieldSet } from './fieldset.ts'
import type { Typed } from './ownership.ts'

const annotation = 'kubectl.kubernetes.io/last-applied-configuration'
const largest = 256 * 1024

/** The fields that are still as they were last applied; undefined where nothing says so. */
export function allowedConflicts(live: Typed): FieldSet | undefined {
  const text = (live.value as unknown as Obj).metadata?.annotations?.[annotation]
  if (!text || findMismatch(live.type, live.value, 'refused')) return undefined
  let last: Json
  try {
    last = JSON.parse(text) as Json
  } catch {
    return undefined
  }
  if ((last as unknown as Obj)?.apiVersion !== live.apiVersion) return undefined
  if (findMismatch(live.type, last, 'refused')) return undefined
  const { added, modified, removed } = compare(live.type, last, live.value)
  return [modified, added, removed].reduce(difference, fieldsOf(live.type, last))
}

/** The object with the annotation as what was applied now says, if it has one. */
export function withLastApplied(object: Obj, applied: Obj): Obj {
  const annotations = object.metadata.annotations ?? {}
  if (!annotations[annotation]) return object
  const { [annotation]: _, ...others } = applied.metadata.annotations ?? {}
  const plain = { ...applied, metadata: { ...applied.metadata, annotations: others } }
  if (!applied.metadata.annotations) delete (plain.metadata as { annotations?: unknown }).annotations
  const { [annotation]: __, ...rest } = annotations
  const value = `${goJson(sorted(plain as unknown as Json))}\n`
  const next = { ...annotations, [annotation]: value }
  const size = Object.entries(next).reduce(
    (sum, [name, text]) => sum + Buffer.byteLength(name) + Buffer.byteLength(text),
    0,
  )
  return { ...object, metadata: { ...object.metadata, annotations: size > largest ? rest : next } }
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, sorted(inner)]),
  )
}
