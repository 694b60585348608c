/**
 * The fields of which a lifecycle's shape is made, and how they are told in its CRD.
 *
 * Guarantee: what is said for the CRD alone (defaults, rules) changes nothing of what a schema accepts.
 */
import * as z from 'zod/mini'
import { durationPattern } from '../duration.ts'

/** What is said of a field in the CRD alone: its default there, its rules in CEL, what a list or a map is. */
interface InCrd {
  readonly default?: unknown
  readonly rules?: readonly { readonly rule: string; readonly message: string }[]
  readonly maxLength?: number
  readonly namesUnchecked?: boolean
  readonly 'x-kubernetes-list-type'?: 'map' | 'set'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
}

export const described = <T extends z.core.$ZodType>(
  schema: T,
  description: string | undefined,
  inCrd: InCrd = {},
): T => {
  z.globalRegistry.add(schema, { ...(description !== undefined && { description }), ...inCrd })
  return schema
}

export const oneOf = (kinds: readonly string[]): InCrd => ({
  rules: [
    {
      rule: `[${kinds.map(kind => `has(self.${kind})`).join(', ')}].exists_one(given, given)`,
      message: `exactly one of ${kinds.join(', ')} has to be given`,
    },
  ],
})
/** The names of a map are checked by validate.ts: a rule of the API server's would cost too much. */
export const named = <T extends z.core.$ZodType>(schema: T) => described(schema, undefined, { namesUnchecked: true })
export const byName: InCrd = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }

export const name = described(
  z
    .string()
    .check(
      z.regex(
        /^[A-Za-z]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$/,
        'a name has letters, digits, "-" and "_", at most 63, and begins with a letter',
      ),
    ),
  undefined,
  { maxLength: 63 },
)
export const paramName = z
  .string()
  .check(
    z.regex(
      /^[A-Za-z_][A-Za-z0-9_.-]{0,62}$/,
      'a parameter\'s name has letters, digits, "_", "-" and ".", at most 63, and begins with a letter or "_"',
    ),
  )
export const duration = z.string().check(z.regex(durationPattern, 'a duration is written as 200ms, 30s or 1h30m'))
export const text = (longest: number) => z.string().check(z.minLength(1), z.maxLength(longest))
export const count = (least: number, most: number) => z.int().check(z.gte(least), z.lte(most))
export const variable = z.string().check(z.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'a variable has letters, digits and "_"'))
