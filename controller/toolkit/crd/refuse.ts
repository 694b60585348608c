/**
 * How a definition is refused: with the place in it, why, and what to do.
 */
import { ShipmateError } from '../../../shared/errors.ts'

/** The names on the way to a field; `[]` is an item of a list, `*` a value under any name. */
export type FieldPath = readonly string[]

/** The way out where nothing else will do. */
export const preserveInstead =
  "let it hold anything with .meta({ 'x-kubernetes-preserve-unknown-fields': true }), so that only validate() checks it"

/** @throws ShipmateError with code Misuse: the field, then what is the matter with it */
export function refuse(path: FieldPath | string, why: string): never {
  throw new ShipmateError('Misuse', `${typeof path === 'string' ? path : textOfPath(path)}: ${why}`, 'never')
}

/** As a person writes it: `spec.parts[].name`. */
export function textOfPath(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    if (part === '[]') return `${text}[]`
    return text === '' ? part : `${text}.${part}`
  }, '')
}
