/**
 * Label selectors, and the labels that they are made of.
 */
import type { FieldError } from '../../problems.ts'
import { labelValue, qualifiedName } from '../../schema/names.ts'
import { list } from '../strategies/lists.ts'
import { forbidden, invalid, required, ruled } from './mistakes.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client sent.
type Any = any

/** Of the labels at `field`; the field of each is that of all. */
export const validateLabels = (labels: Any, field: string): FieldError[] =>
  Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...ruled(field, key, qualifiedName),
    ...ruled(field, value, labelValue),
  ])

export const validateAnnotations = (annotations: Any, field: string): FieldError[] =>
  Object.keys(annotations ?? {}).flatMap(key =>
    qualifiedName(key.toLowerCase()).map(detail => invalid(field, key, detail)),
  )

export function validateSelector(selector: Any, field: string): FieldError[] {
  if (!selector) return []
  return [
    ...validateLabels(selector.matchLabels, `${field}.matchLabels`),
    ...list(selector.matchExpressions).flatMap((one, at) =>
      validateRequirement(one, `${field}.matchExpressions[${at}]`),
    ),
  ]
}

const comparing: Readonly<Record<string, 'several' | 'none' | 'one' | undefined>> = {
  In: 'several',
  NotIn: 'several',
  Exists: 'none',
  DoesNotExist: 'none',
}

/** One of a label selector; nodes may be compared by numbers as well. */
export function validateRequirement({ key = '', operator = '', values = [] }: Any, at: string, ofNodes = false) {
  const errors: FieldError[] = []
  const takes = comparing[operator] ?? (ofNodes && (operator === 'Gt' || operator === 'Lt') ? 'one' : undefined)
  if (takes === undefined) errors.push(invalid(`${at}.operator`, operator, 'not a valid selector operator'))
  if (takes === 'several' && values.length === 0)
    errors.push(required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
  if (takes === 'none' && values.length > 0)
    errors.push(forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
  if (takes === 'one' && values.length !== 1)
    errors.push(required(`${at}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
  errors.push(...ruled(`${at}.key`, key, qualifiedName))
  // What a node's label is compared with may be anything.
  if (ofNodes) return errors
  for (const [index, value] of (values as string[]).entries())
    errors.push(...ruled(`${at}.values[${index}]`, value, labelValue))
  return errors
}

/** Whether a selector can be used at all: one with a mistake selects nothing, and is told once more where it stands. */
export const isUsable = (selector: Any): boolean => validateSelector(selector, '').length === 0
