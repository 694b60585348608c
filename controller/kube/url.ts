/**
 * Where things are on the API server. Pure.
 */
import { ShipmateError } from '../../shared/errors.ts'
import { apiVersionOf, type Kind } from './kind.ts'

/** The path of a kind's collection (no name), an object, or a subresource of it. */
export function pathOf(
  kind: Kind,
  at: { namespace?: string | undefined; name?: string | undefined; subresource?: string | undefined },
): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
  const scope = kind.namespaced && at.namespace ? `/namespaces/${segment(kind, at.namespace)}` : ''
  const name = at.name === undefined ? '' : `/${segment(kind, at.name)}`
  return `${root}${scope}/${kind.plural}${name}${at.subresource ? `/${at.subresource}` : ''}`
}

/** `?a=1&b=2`, without what is undefined; empty if nothing is left. */
export function queryOf(parameters: Record<string, string | number | boolean | undefined>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, String(value))
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

export type Labels = Readonly<Record<string, string>>

/** A selector as the server reads it, from `{app: 'x'}` or as written. */
export function selectorOf(selector: string | Labels | undefined): string | undefined {
  if (selector === undefined || typeof selector === 'string') return selector || undefined
  const parts = Object.entries(selector).map(([name, value]) => `${name}=${value}`)
  return parts.length === 0 ? undefined : parts.join(',')
}

/** An empty name would turn a request for one object into one for all; a slash into one for another. */
function segment(kind: Kind, text: string): string {
  if (text === '' || text === '.' || text === '..' || text.includes('/') || !text.isWellFormed()) {
    throw new ShipmateError(
      'Misuse',
      `"${text}" is no name or namespace of a ${kind.kind} (${apiVersionOf(kind)})`,
      'never',
    )
  }
  return encodeURIComponent(text)
}
