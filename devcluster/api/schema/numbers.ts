/**
 * Ranges of numbers. A bound that is no number of the value's own type is a mistake too, told with the value's.
 */
import type { FieldError } from '../problems.ts'
import type { Schema } from './schema.ts'
import { isInteger } from './values.ts'

const nowhere = (detail: string): FieldError => ({ mistake: 'FieldValueInvalid', field: '<nil>', value: '', detail })

/** What is wrong, and how many of the bounds it was held against. */
export function checkNumber(
  schema: Schema,
  type: string | undefined,
  format: string,
  value: number,
  path: string,
): { errors: FieldError[]; held: number } {
  const errors: FieldError[] = []
  let held = 0
  const invalid = (detail: string, shown: unknown = value) =>
    errors.push({ mistake: 'FieldValueInvalid', field: path, value: shown, detail })
  const outOfRange = (given: number, what: string) => {
    if (fitsRange(given, type, format)) return
    const of = format ? `with format ${format}` : '(default format)'
    errors.push(nowhere(`${what} value must be of type ${type} ${of} in ${path}`))
  }
  outOfRange(value, 'Checked')
  // A whole number is compared as one, with what is left of a bound that is none.
  const asValue = (bound: number) => (isInteger(value) && fitsRange(bound, type, format) ? Math.trunc(bound) : bound)
  const { multipleOf } = schema
  const minimum = schema.minimum === undefined ? undefined : asValue(schema.minimum)
  const maximum = schema.maximum === undefined ? undefined : asValue(schema.maximum)
  if (multipleOf !== undefined) {
    held++
    outOfRange(multipleOf, 'MultipleOf')
    const factor = asValue(multipleOf)
    if (factor <= 0) invalid(`factor MultipleOf declared for ${path} must be positive: ${factor}`, factor)
    else if (!isMultiple(value, factor)) invalid(`${path} in body should be a multiple of ${multipleOf}`)
  }
  if (maximum !== undefined) {
    held++
    outOfRange(schema.maximum ?? maximum, 'Maximum boundary')
    const exclusive = schema.exclusiveMaximum === true
    if (exclusive ? value >= maximum : value > maximum) {
      invalid(`${path} in body should be less than ${exclusive ? '' : 'or equal to '}${maximum}`)
    }
  }
  if (minimum !== undefined) {
    held++
    outOfRange(schema.minimum ?? minimum, 'Minimum boundary')
    const exclusive = schema.exclusiveMinimum === true
    if (exclusive ? value <= minimum : value < minimum) {
      invalid(`${path} in body should be greater than ${exclusive ? '' : 'or equal to '}${minimum}`)
    }
  }
  return { errors, held }
}

function fitsRange(value: number, type: string | undefined, format: string): boolean {
  if (type === 'integer') return isInteger(value) && (format !== 'int32' || (value >= -(2 ** 31) && value < 2 ** 31))
  return format !== 'float' || Math.abs(value) <= 3.4028234663852886e38
}

function isMultiple(value: number, factor: number): boolean {
  if (isInteger(value) && Number.isInteger(factor)) return value % factor === 0
  const quotient = value / factor
  return Math.abs(quotient) <= Number.MAX_SAFE_INTEGER && Math.abs(quotient - Math.round(quotient)) < 1e-9
}
