/**
 * JSON patch (RFC 6902), with what the server's library does besides: negative indices count from the end, and `add` with a null makes a null.
 */
import { ApiError, badRequest } from '../problems.ts'
import { set } from '../schema/values.ts'
import type { Json, Obj } from '../types.ts'
import { deepEqual } from './compare.ts'

const mostOperations = 10_000

type Container = { [field: string]: Json } | Json[]

/** The document after all operations, or none of them. */
export function jsonPatch(document: Obj, body: unknown): Obj {
  if (!Array.isArray(body)) throw undecodable(body, '[]handlers.jsonPatchOp')
  for (const operation of body) {
    if (typeof operation !== 'object' || Array.isArray(operation)) {
      throw undecodable(operation, 'handlers.jsonPatchOp')
    }
  }
  if (body.length > mostOperations) {
    throw new ApiError(
      413,
      'RequestEntityTooLarge',
      `Request entity too large: The allowed maximum operations in a JSON patch is ${mostOperations}, got ${body.length}`,
    )
  }
  let root = structuredClone(document) as unknown as Json
  for (const operation of body as (Record<string, Json> | null)[]) root = carryOut(root, operation ?? {})
  return root as unknown as Obj
}

/** The server does not say which operation failed, nor why. */
const refused = () => new ApiError(422, 'Invalid', 'the server rejected our request due to an error in our request', {})

function carryOut(root: Json, operation: Record<string, Json>): Json {
  const path = textOf(operation['path'])
  const value = Object.hasOwn(operation, 'value') ? operation['value'] : undefined
  switch (operation['op']) {
    case 'add': {
      const [container, key] = find(root, path)
      add(container, key, structuredClone(value ?? null))
      return root
    }
    case 'remove': {
      const [container, key] = find(root, path)
      remove(container, key)
      return root
    }
    case 'replace': {
      if (path === '') {
        if (typeof value !== 'object' || value === null) throw refused()
        return structuredClone(value)
      }
      const [container, key] = find(root, path)
      if (Array.isArray(container)) container[indexIn(container, key)] = structuredClone(value ?? null)
      else set(container, key, structuredClone(value ?? null))
      return root
    }
    case 'move': {
      const [from, name] = find(root, textOf(operation['from']))
      const moved = get(from, name)
      remove(from, name)
      const [container, key] = find(root, path)
      add(container, key, moved ?? null)
      return root
    }
    case 'copy': {
      const [from, name] = find(root, textOf(operation['from']))
      const copied = structuredClone(get(from, name) ?? null)
      const [container, key] = find(root, path)
      add(container, key, copied)
      return root
    }
    case 'test':
      if (path === '') {
        if (!deepEqual(root, value)) throw refused()
        return root
      }
      test(root, path, value)
      return root
    default:
      throw refused()
  }
}

function test(root: Json, path: string, value: Json | undefined): void {
  const [container, key] = find(root, path)
  const found = get(container, key)
  // What is absent and what is null are the same here. Values are compared, where a real server compares texts: of a string with <, > or & it says that
  // it differs from itself unless the client escapes them as Go does.
  if (!deepEqual(found ?? null, value ?? null)) throw refused()
}

function textOf(value: Json | undefined): string {
  if (typeof value !== 'string') throw refused()
  return value
}

const unescaped = (part: string) => part.replace(/~[01]/g, found => (found === '~1' ? '/' : '~'))

/** The container that a path ends in, and the last part. */
function find(root: Json, path: string): [Container, string] {
  const parts = path.split('/')
  if (parts.length < 2) throw refused()
  let at = root as Container
  for (const part of parts.slice(1, -1)) {
    const next = get(at, unescaped(part))
    if (typeof next !== 'object' || next === null) throw refused()
    at = next
  }
  return [at, unescaped(parts.at(-1) as string)]
}

function get(container: Container, key: string): Json | undefined {
  if (Array.isArray(container)) return container[indexIn(container, key)]
  return Object.hasOwn(container, key) ? container[key] : undefined
}

function indexIn(list: Json[], key: string, size = list.length): number {
  if (!/^[-+]?\d+$/.test(key)) throw refused()
  const index = Number(key)
  if (index >= size || index < -size) throw refused()
  return index < 0 ? index + size : index
}

function add(container: Container, key: string, value: Json): void {
  if (!Array.isArray(container)) set(container, key, value)
  else if (key === '-') container.push(value)
  else container.splice(indexIn(container, key, container.length + 1), 0, value)
}

function remove(container: Container, key: string): void {
  if (Array.isArray(container)) container.splice(indexIn(container, key), 1)
  else if (!Object.hasOwn(container, key)) throw refused()
  else delete container[key]
}

const undecodable = (value: unknown, type: string) =>
  badRequest(`error decoding patch: json: cannot unmarshal ${jsonKind(value)} into Go value of type ${type}`)

function jsonKind(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}
