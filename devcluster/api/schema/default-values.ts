/** A default of a definition's schema is a value of it: known fields alone, and valid. */
import type { FieldError } from '../problems.ts'
import { applyDefaults } from './defaults.ts'
import { walk } from './prune.ts'
import type { Schema } from './schema.ts'
import { validate } from './validate.ts'

export function checkDefault(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = []
  const unknown: string[] = []
  walk({ schema, isRoot: false, keeps: false }, schema.default, '', unknown)
  if (unknown.length > 0) {
    errors.push({
      mistake: 'FieldValueInvalid',
      field: path,
      value: schema.default,
      detail: 'must not have unknown fields',
    })
  }
  for (const error of validate(schema, applyDefaults(schema, schema.default))) {
    const field = error.field === '' ? path : error.field === '<nil>' ? error.field : `${path}.${error.field}`
    errors.push({ ...error, field })
  }
  return errors
}
