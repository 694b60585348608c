/**
 * What is wrong with a field of a built-in kind, in the server's words.
 */
import type { FieldError } from '../../problems.ts'

export const required = (field: string, detail?: string): FieldError => ({
  mistake: 'FieldValueRequired',
  field,
  detail,
})

export const invalid = (field: string, value: unknown, detail: string): FieldError => ({
  mistake: 'FieldValueInvalid',
  field,
  value,
  detail,
})

export const forbidden = (field: string, detail: string): FieldError => ({
  mistake: 'FieldValueForbidden',
  field,
  detail,
})

export const duplicate = (field: string, value: unknown): FieldError => ({
  mistake: 'FieldValueDuplicate',
  field,
  value,
})

export const notFound = (field: string, value: unknown): FieldError => ({ mistake: 'FieldValueNotFound', field, value })

export function notSupported(field: string, value: unknown, allowed: readonly string[]): FieldError {
  const detail = `supported values: ${allowed.map(one => JSON.stringify(one)).join(', ')}`
  return { mistake: 'FieldValueNotSupported', field, value, detail }
}

/** Where there is a value, and it is none of these. */
export const oneOf = (field: string, value: unknown, allowed: readonly string[]): FieldError[] =>
  value === undefined || allowed.includes(value as string) ? [] : [notSupported(field, value, allowed)]

const negative = 'must be greater than or equal to 0'

export const nonNegative = (field: string, value: unknown): FieldError[] =>
  typeof value === 'number' && value < 0 ? [invalid(field, value, negative)] : []

/** A name that has to follow a rule of names.ts. */
export const ruled = (field: string, value: unknown, rule: (name: string) => string[]): FieldError[] =>
  rule(String(value ?? '')).map(detail => invalid(field, value ?? '', detail))

export const port = (field: string, value: unknown): FieldError[] =>
  typeof value === 'number' && value >= 1 && value <= 65_535
    ? []
    : [invalid(field, value ?? 0, 'must be between 1 and 65535, inclusive')]

export const immutable = (field: string, value: unknown): FieldError =>
  invalid(field, value ?? null, 'field is immutable')

/** A number of pods, or a percentage. */
export function amount(field: string, value: unknown): FieldError[] {
  if (typeof value === 'number') return nonNegative(field, value)
  if (typeof value !== 'string' || isPercentage(value)) return []
  return [
    invalid(
      field,
      value,
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    ),
  ]
}

const isPercentage = (value: string) => /^[0-9]+%$/.test(value)

/** Of a percentage; a number may be anything. */
export const atMostAll = (field: string, value: unknown): FieldError[] =>
  typeof value === 'string' && isPercentage(value) && Number.parseInt(value, 10) > 100
    ? [invalid(field, value, 'must not be greater than 100%')]
    : []

/** Whether that are none: what is no percentage counts as 0, too. */
export const isNone = (value: unknown): boolean =>
  typeof value === 'string' ? !isPercentage(value) || Number.parseInt(value, 10) === 0 : (value ?? 0) === 0
