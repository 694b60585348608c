/** All that a custom resource is held against, in the server's order: its schema, then the rules, unless its shape is too wrong for them. */
import type { FieldError } from '../problems.ts'
import { rulesBlocked, validateRules } from './rules.ts'
import type { Schema } from './schema.ts'
import { validate } from './validate.ts'

export function validateCustom(schema: Schema, value: unknown, old?: unknown): FieldError[] {
  const errors = validate(schema, value, { old })
  const blocked = rulesBlocked(schema, errors)
  return [...errors, ...(blocked ? [blocked] : validateRules(schema, value, old))]
}
