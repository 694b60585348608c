/**
 * From an object before and after to the JSON patch (RFC 6902) between them. Pure.
 *
 * Guarantees: carried out on `before` it gives `after`, as JSON has them; where nothing differs it is empty; a field is only named if something in it differs.
 */
import type { JsonPatchOperation } from '../../kube/client.ts'

export function patchBetween(before: unknown, after: unknown): JsonPatchOperation[] {
  return difference(plain(before), plain(after), '')
}

/** As it would be sent: members that are undefined are not there. */
function plain(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value))
}

function difference(before: unknown, after: unknown, path: string): JsonPatchOperation[] {
  if (Array.isArray(before) && Array.isArray(after)) return items(before, after, path)
  if (isMap(before) && isMap(after)) return members(before, after, path)
  return Object.is(before, after) ? [] : [{ op: 'replace', path, value: after }]
}

function members(before: Members, after: Members, path: string): JsonPatchOperation[] {
  const gone = Object.keys(before).filter(name => !Object.hasOwn(after, name))
  return [
    ...gone.map((name): JsonPatchOperation => ({ op: 'remove', path: below(path, name) })),
    ...Object.entries(after).flatMap(([name, value]): JsonPatchOperation[] =>
      Object.hasOwn(before, name)
        ? difference(before[name], value, below(path, name))
        : [{ op: 'add', path: below(path, name), value }],
    ),
  ]
}

/** By their places: what is appended is added, what is too many goes from the end. */
function items(before: readonly unknown[], after: readonly unknown[], path: string): JsonPatchOperation[] {
  const both = Math.min(before.length, after.length)
  const at = (index: number) => `${path}/${index}`
  return [
    ...after.slice(0, both).flatMap((value, index) => difference(before[index], value, at(index))),
    ...after.slice(both).map((value, index): JsonPatchOperation => ({ op: 'add', path: at(both + index), value })),
    ...before
      .slice(both)
      .map((_, index): JsonPatchOperation => ({ op: 'remove', path: at(before.length - 1 - index) })),
  ]
}

type Members = Readonly<Record<string, unknown>>

const isMap = (value: unknown): value is Members => typeof value === 'object' && value !== null && !Array.isArray(value)

const below = (path: string, name: string) => `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
