/**
 * An answer without what no two servers share: uids, times, resource versions, addresses and random names become what they stand for.
 */

import { isLintOfPods, withoutKnown } from './known.ts'

/** Of one server in one sequence: the n-th uid, and the n-th version, that it showed. */
export interface Seen {
  readonly uids: Map<string, string>
  readonly versions: Map<string, string>
}

export const nothingSeen = (): Seen => ({ uids: new Map(), versions: new Map() })

const uid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const time = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g
const address = /\b(10\.96|10\.0|127\.96)\.\d+\.\d+\b/g
const token = /kube-api-access-[a-z0-9]{5}/g
const nodePort = /\b(\d+):3\d{4}\//g
const age = /^\d+s$/
/** In a message: other numbers there may be the same by chance. */
const version = /(?<=ResourceVersion in (?:the precondition|record) \()\d+/g

export function normal(value: unknown, seen: Seen): unknown {
  learn(value, seen)
  return unordered(shown(value, seen, ''))
}

/** A refusal for several reasons without their order, which is by chance for some. Each is told as a cause; the message repeats them. */
function unordered(answer: unknown): unknown {
  const { body } = answer as {
    body?: { reason?: string; message?: string; details?: { causes?: { field?: string }[] } }
  }
  const causes = body?.details?.causes
  if (!causes || causes.length === 0) return answer
  const sorted = [...new Set(causes.map(cause => JSON.stringify(cause)))].sort()
  const message = sorted.length === 1 ? body.message : body?.message?.replace(/( is invalid: \[|conflicts).*/s, '$1…')
  return { ...(answer as object), body: { ...body, message, details: { ...body.details, causes: sorted } } }
}

const remember = (map: Map<string, string>, key: string, kind: string) => {
  if (!map.has(key)) map.set(key, `<${kind} ${map.size + 1}>`)
}

function learn(value: unknown, seen: Seen): void {
  if (value === null || typeof value !== 'object') return
  if (Array.isArray(value)) {
    for (const item of value) learn(item, seen)
    return
  }
  const { uid: id, resourceVersion } = value as { uid?: unknown; resourceVersion?: unknown }
  if (typeof id === 'string' && /^[0-9a-f-]{36}$/.test(id)) remember(seen.uids, id, 'uid')
  if (typeof resourceVersion === 'string' && 'creationTimestamp' in value) {
    remember(seen.versions, resourceVersion, 'version')
  }
  for (const item of Object.values(value)) learn(item, seen)
}

function shown(value: unknown, seen: Seen, key: string): unknown {
  if (typeof value === 'string') return textOf(value, seen, key)
  if (key === 'nodePort' && typeof value === 'number') return '<port>'
  if (value === null && (key === 'items' || key === 'rows')) return []
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) {
    const items = value.filter(item => key !== 'warnings' || !isLintOfPods(item)).map(item => shown(item, seen, ''))
    // They are in the order of their times.
    return key === 'managedFields'
      ? items
          .map(item => [managerOf(item), item])
          .sort()
          .map(([, item]) => item)
      : items
  }
  // A list has the version of the whole server.
  const isList = ('items' in value || 'rows' in value) && 'metadata' in value
  const isColumn = 'priority' in value && 'format' in value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, item]) => [name, isList && name === 'metadata' ? listMeta(item) : shown(item, seen, name)])
      .filter(([name]) => !(isColumn && name === 'description')),
  )
}

/** Which fields it has: their values are each server's own. */
const listMeta = (metadata: object) => Object.keys(metadata).sort().join()

function managerOf(entry: unknown): string {
  const { manager, operation, apiVersion, subresource } = entry as Record<string, string>
  return [operation, manager, apiVersion, subresource].join()
}

function textOf(text: string, { uids, versions }: Seen, key: string): string {
  if (key === 'resourceVersion') return versions.get(text) ?? text
  return sortedLines(withoutKnown(text))
    .replace(uid, id => uids.get(id) ?? '<uid>')
    .replace(time, '<time>')
    .replace(address, '<address>')
    .replace(token, 'kube-api-access-<random>')
    .replace(nodePort, '$1:<port>/')
    .replace(/nodePort: \{(\w+) \d+\}/, 'nodePort: {$1 <port>}')
    .replace(age, '<age>')
    .replace(version, number => versions.get(number) ?? number)
}

/** Mistakes of an apply are lines. */
function sortedLines(text: string): string {
  const [head = '', ...lines] = text.split('\n')
  return head.endsWith('errors:') ? [head, ...lines.sort()].join('\n') : text
}

/** The first few places where two values differ, as `path: a, b`. */
export function differences(a: unknown, b: unknown, path = ''): string[] {
  if (Object.is(a, b)) return []
  const isTree = (value: unknown) => value !== null && typeof value === 'object'
  if (!isTree(a) || !isTree(b) || Array.isArray(a) !== Array.isArray(b)) {
    return [`${path || '(all)'}: ${brief(a)} here, ${brief(b)} there`]
  }
  const keys = new Set([...Object.keys(a as object), ...Object.keys(b as object)])
  return [...keys].flatMap(key =>
    differences(
      (a as Record<string, unknown>)[key],
      (b as Record<string, unknown>)[key],
      path ? `${path}.${key}` : key,
    ),
  )
}

function brief(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > 1200 ? `${text.slice(0, 1200)}…` : text
}
