/**
 * A whole resource where the `spec` of a Lifecycle is wanted. Pure.
 *
 * Guarantee: a Lifecycle is as good as its `spec`, each part of which is told where it stands; any other kind is refused by its name.
 */
import type { Parsed } from './parse.ts'

export function specOf(parsed: Parsed): Parsed {
  const { value, locate } = parsed
  if (typeof value !== 'object' || value === null || !('kind' in value && 'apiVersion' in value)) return parsed
  const refused = (field: string, message: string): Parsed => ({
    ...parsed,
    value: undefined,
    problems: [{ ...locate([field]), message }],
  })
  if (value.kind !== 'Lifecycle')
    return refused('kind', `this is a whole ${String(value.kind)}; a Lifecycle is wanted, or its \`spec\` alone`)
  if (!('spec' in value)) return refused('kind', 'this Lifecycle has no `spec`')
  return { value: value.spec, problems: [], locate: path => locate(['spec', ...path]) }
}
