/**
 * JSON merge patch (RFC 7386): maps are merged, null removes, all else replaces.
 */
import { badRequest } from '../problems.ts'
import type { Json, Obj } from '../types.ts'
import { isMap } from './typed.ts'

export function mergePatch(document: Obj, patch: unknown): Obj {
  if (!isMap(patch)) throw badRequest(wrongPatch(patch))
  return merged(document as unknown as { [field: string]: Json }, patch) as unknown as Obj
}

function wrongPatch(patch: unknown): string {
  if (patch === null) return 'Invalid JSON Patch'
  const kind = Array.isArray(patch) ? 'array' : typeof patch === 'boolean' ? 'bool' : typeof patch
  return `error decoding patch: json: cannot unmarshal ${kind} into Go value of type map[string]interface {}`
}

function merged(document: { [field: string]: Json }, patch: { [field: string]: Json }): { [field: string]: Json } {
  const out = { ...document }
  for (const [name, value] of Object.entries(patch)) {
    const before = Object.hasOwn(out, name) ? out[name] : undefined
    if (value === null) delete out[name]
    else if (isMap(before) && isMap(value)) out[name] = merged(before, value)
    // Where a value that is no map stands, the server prunes nulls only if it stood where a map was not.
    else out[name] = isMap(before) ? value : withoutNulls(value)
  }
  return out
}

function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isMap(value)) return value
  const kept = Object.entries(value).filter(([, inner]) => inner !== null)
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutNulls(inner)]))
}
