/**
 * Why an object is refused, as data, and as sentences for who wrote it. Pure.
 *
 * Guarantee: what kubectl prints names the field, its value and what would be accepted.
 */
import { shown } from '../../../shared/nearest.ts'

export interface Problem {
  /** `spec.parts[0].name`; absent where it is about the object as a whole. */
  readonly field?: string | undefined
  /** What is accepted there: `has to be odd`, `may not become smaller than 3`. Without a field: a whole sentence. */
  readonly message: string
  /** What stands in the field. Default: as it is in the object. */
  readonly value?: unknown
}

/** A line of a Status, as the server itself makes them: kubectl prints `FIELD: MESSAGE` for each. */
export interface Cause {
  readonly reason: string
  readonly field: string
  readonly message: string
}

/** `spec.size is 4, but has to be odd` */
export function sentenceOf(problem: Problem, object: unknown): string {
  const { field, message } = problem
  if (field === undefined) return message
  const value = held(problem, object)
  return value === undefined ? `${field} is missing, but ${message}` : `${field} is ${shown(value)}, but ${message}`
}

export function causeOf(problem: Problem, object: unknown): Cause {
  const { field, message } = problem
  if (field === undefined) return { reason: 'FieldValueInvalid', field: 'object', message }
  const value = held(problem, object)
  if (value === undefined) return { reason: 'FieldValueRequired', field, message: `Required value: ${message}` }
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${shown(value)}: ${message}` }
}

function held(problem: Problem, object: unknown): unknown {
  return 'value' in problem ? problem.value : valueAt(object, problem.field ?? '')
}

/** What stands at `spec.parts[0].name`, or at `metadata.labels["a.b/c"]`; undefined where nothing does. */
function valueAt(object: unknown, field: string): unknown {
  const steps = [...field.matchAll(/\[(?:"([^"]*)"|([^\]]*))\]|([^.[\]]+)/g)]
  return steps.reduce<unknown>((at, [, quoted, bracketed, name]) => {
    const key = quoted ?? bracketed ?? name ?? ''
    return typeof at === 'object' && at !== null && Object.hasOwn(at, key)
      ? (at as Record<string, unknown>)[key]
      : undefined
  }, object)
}
