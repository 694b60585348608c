/**
 * What a field accepts, in the words of a message and of the documentation. Pure.
 */
import { wanted } from '../../../shared/params/keywords.ts'
import type { StructuralSchema } from './structural.ts'

/** `string`, `integer or string`, `list of integer`, `map of string`, `anything`. */
export function typeName(schema: StructuralSchema): string {
  const orNull = schema.nullable ? ' or null' : ''
  if (schema['x-kubernetes-int-or-string']) return `integer or string${orNull}`
  switch (schema.type) {
    case undefined:
      return 'anything'
    case 'array':
      return `list of ${typeName(schema.items ?? {})}${orNull}`
    case 'object':
      return (schema.additionalProperties ? `map of ${typeName(schema.additionalProperties)}` : 'object') + orNull
    case 'string':
      return (schema.format ?? 'string') + orNull
    default:
      return schema.type + orNull
  }
}

const constraints = ['enum', 'minLength', 'maxLength', 'minimum', 'maximum', 'multipleOf', 'pattern'] as const
const sizes = ['minItems', 'maxItems', 'minProperties', 'maxProperties'] as const

/**
 * `1 or more`, `one of "a", "b"`: each constraint of a field, its rules included.
 * @param code how a pattern or an expression is written
 */
export function constraintsOf(schema: StructuralSchema, code = (text: string) => text): string[] {
  const { 'x-kubernetes-validations': rules = [], anyOf, oneOf, allOf } = schema
  const own = [...constraints, ...sizes].flatMap(keyword => {
    const held = schema[keyword]
    if (held === undefined) return []
    if (keyword === 'pattern') return wanted(keyword, code(String(held)))
    const isExclusive =
      (keyword === 'minimum' && schema.exclusiveMinimum) || (keyword === 'maximum' && schema.exclusiveMaximum)
    return wanted(isExclusive ? `exclusive${keyword === 'minimum' ? 'Minimum' : 'Maximum'}` : keyword, held)
  })
  const choice = anyOf ?? oneOf
  return [
    ...own,
    ...(allOf ?? []).flatMap(part => constraintsOf(part, code)),
    ...(choice ? [choice.map(one => constraintsOf(one, code).join(' and ')).join(', or ')] : []),
    ...rules.map(({ rule, message }) => message ?? code(rule)),
  ]
}

/** What would be accepted: `of type integer: 1 or more, 5 or less`. */
export function accepted(schema: StructuralSchema): string {
  const said = constraintsOf(schema)
  return `of type ${typeName(schema)}${said.length > 0 ? `: ${said.join(', ')}` : ''}`
}
