/** What a rule says besides its expression: its message, its reason, the field that it points at. */
import type { FieldError } from '../problems.ts'
import type { Schema, ValidationRule } from './schema.ts'
import { propertyOf, valuesOf } from './values.ts'

const reasons = ['FieldValueInvalid', 'FieldValueForbidden', 'FieldValueRequired', 'FieldValueDuplicate']

export function ruleMistakes({ rule, message, messageExpression, reason }: ValidationRule, at: string): FieldError[] {
  const errors: FieldError[] = []
  if (rule.trim() === '') {
    errors.push({ mistake: 'FieldValueRequired', field: `${at}.rule`, detail: 'rule is not specified' })
  }
  if (message !== undefined && message !== '' && message.trim() === '') {
    errors.push({
      mistake: 'FieldValueInvalid',
      field: `${at}.message`,
      value: message,
      detail: 'must be non-empty if specified',
    })
  } else if (message?.trim().includes('\n')) {
    errors.push({
      mistake: 'FieldValueInvalid',
      field: `${at}.message`,
      value: message,
      detail: 'must not contain line breaks',
    })
  } else if (rule.trim().includes('\n') && !message) {
    errors.push({
      mistake: 'FieldValueRequired',
      field: `${at}.message`,
      detail: 'message must be specified if rule contains line breaks',
    })
  }
  if (messageExpression !== undefined && messageExpression !== '' && messageExpression.trim() === '') {
    errors.push({
      mistake: 'FieldValueRequired',
      field: `${at}.messageExpression`,
      detail: 'messageExpression must be non-empty if specified',
    })
  }
  if (reason !== undefined && !reasons.includes(reason)) {
    const supported = reasons.toSorted().map(one => `"${one}"`)
    errors.push({
      mistake: 'FieldValueNotSupported',
      field: `${at}.reason`,
      value: reason,
      detail: `supported values: ${supported.join(', ')}`,
    })
  }
  return errors
}

/** A path such as `.spec.name` or `['a-b']` as fields are told, `.spec.name` or `.a-b`; undefined where it leads to none. */
export function fieldPathOf(schema: Schema, path: string): string | undefined {
  const steps = [...path.matchAll(/\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/g)]
  if (steps.length === 0 || steps.map(([step]) => step).join('') !== path) return undefined
  let at: Schema = schema
  let told = ''
  for (const [, name, quoted] of steps) {
    const key = name ?? (quoted ?? '').replace(/\\(['\\])/g, '$1')
    const property = propertyOf(at, key)
    const below = property ?? valuesOf(at)
    if (!below) return undefined
    told += property ? `.${key}` : `[${key}]`
    at = below
  }
  return told
}
