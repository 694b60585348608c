/**
 * Which fields of an object the server does not let change, when it refused a change. Pure.
 *
 * The server names the field for some kinds (a Deployment's selector), and for others only those that may change (a StatefulSet): then the fields are those in
 * which the wish differs from what is there.
 */
import type { Invalid } from '../kube/errors.ts'

/** The paths, as `spec.selector`; empty if the refusal is about something else, if only among others. */
export function immutableFields(refusal: Invalid, wished: object, live: object): string[] {
  const about = refusal.causes.filter(({ message = '' }) =>
    /immutable|forbidden: updates to|may not change|may not be changed|cannot change/i.test(message),
  )
  // What is wrong besides would be refused in a new object too.
  if (about.length > 0 && about.length < refusal.causes.length) return []
  if (about.length === 0 && !/field is immutable|updates to .* are forbidden/i.test(refusal.message)) return []
  const allowed = new Set([...refusal.message.matchAll(/'([A-Za-z.]+)'/g)].map(([, name]) => name ?? ''))
  const named = about.flatMap(({ field }) => (field && field !== 'spec' ? [field] : []))
  if (named.length > 0) return [...new Set(named)]
  const changed = differences(wished, live).filter(path => path.startsWith('spec.'))
  return changed.filter(path => ![...allowed].some(name => path === `spec.${name}` || path.startsWith(`spec.${name}.`)))
}

/** Where `live` does not have what is wished; what is not wished does not count. Maps are looked into, lists are not. */
function differences(wished: unknown, live: unknown, path = ''): string[] {
  if (isMap(wished) && isMap(live)) {
    return Object.entries(wished).flatMap(([name, value]) =>
      differences(value, Object.hasOwn(live, name) ? live[name] : undefined, path === '' ? name : `${path}.${name}`),
    )
  }
  return carries(wished, live) ? [] : [path]
}

/** Whether `live` has everything that is wished, and its lists nothing besides. */
export function carries(wished: unknown, live: unknown): boolean {
  if (wished === undefined || wished === null) return true
  if (Array.isArray(wished)) {
    return Array.isArray(live) && wished.length === live.length && wished.every((item, i) => carries(item, live[i]))
  }
  if (isMap(wished)) {
    return (
      isMap(live) &&
      Object.entries(wished).every(([name, value]) =>
        carries(value, Object.hasOwn(live, name) ? live[name] : undefined),
      )
    )
  }
  return wished === live
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
