/**
 * Whether a value is of its type. What does not conform can be neither compared nor applied.
 */
import type { Json } from '../types.ts'
import { fieldStep, stepText } from './elements.ts'
import { goSyntax, goText, goType } from './go-text.ts'
import { formOf, isMap, itemStep, type ListType, type MapType, type Type, treatedAs } from './typed.ts'

/** A mistake: where, and what. */
type Mistake = readonly [path: string, message: string]

const conformed = new WeakMap<object, Type>()

/** What is wrong with the value, in one text; undefined if it conforms. */
export function findMismatch(type: Type, value: Json, duplicates: 'allowed' | 'refused'): string | undefined {
  // What is stored never changes, so what conformed once does.
  if (duplicates === 'allowed' && conformed.get(value as object) === type) return undefined
  const mistakes: Mistake[] = []
  check(type, value, '', duplicates === 'allowed', mistakes)
  const texts = mistakes.map(([path, message]) => (path ? `${path}: ${message}` : message))
  if (texts.length === 0) {
    if (isMap(value)) conformed.set(value, type)
    return undefined
  }
  return texts.length === 1 ? texts[0] : ['errors:', ...texts.map(line => `  ${line}`)].join('\n')
}

function check(type: Type, value: Json, path: string, duplicates: boolean, mistakes: Mistake[]): void {
  if (value === null) return
  switch (treatedAs(type, formOf(type, value))) {
    case 'map':
      if (isMap(value)) checkMap(type.map as MapType, value, path, duplicates, mistakes)
      else mistakes.push([path, `expected map, got &{${goText(value)}}`])
      break
    case 'list':
      if (Array.isArray(value)) checkList(type.list as ListType, value, path, duplicates, mistakes)
      else mistakes.push([path, `expected list, got &{${goText(value)}}`])
      break
    case 'scalar': {
      const wrong = scalarMistake(type.scalar, value)
      if (wrong) mistakes.push([path, wrong])
    }
  }
}

function checkMap(
  map: MapType,
  value: { [field: string]: Json },
  path: string,
  duplicates: boolean,
  mistakes: Mistake[],
): void {
  for (const [name, inner] of Object.entries(value)) {
    const type = map.field(name)?.type ?? map.element
    if (!type) {
      mistakes.push([`${path}${stepText(fieldStep(name))}`, 'field not declared in schema'])
      return
    }
    check(type, inner, `${path}.${name}`, duplicates, mistakes)
  }
}

function checkList(list: ListType, value: Json[], path: string, duplicates: boolean, mistakes: Mistake[]): void {
  const seen = new Set<string>()
  for (const [i, item] of value.entries()) {
    let step = `i:${i}`
    if (list.associative) {
      try {
        step = itemStep(list, item)
      } catch (error) {
        mistakes.push([path, `element ${i}: ${(error as Error).message}`])
        return
      }
      if (seen.has(step) && !duplicates) mistakes.push([path, `duplicate entries for key ${stepText(step)}`])
      seen.add(step)
    }
    // The text of a step is needed for a mistake alone.
    const before = mistakes.length
    check(list.element, item, '', duplicates, mistakes)
    for (let m = before; m < mistakes.length; m++) {
      const [inner, message] = mistakes[m] as Mistake
      mistakes[m] = [`${path}${stepText(step)}${inner}`, message]
    }
  }
}

function scalarMistake(scalar: Type['scalar'], value: Json): string | undefined {
  switch (scalar) {
    case 'numeric':
      return typeof value === 'number' ? undefined : `expected numeric (int or float), got ${goType(value)}`
    case 'string':
      return typeof value === 'string'
        ? undefined
        : `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got &{${goText(value)}}`
    default:
      return typeof value === 'object' ? `expected any scalar, got &{${goText(value)}}` : undefined
  }
}
