/**
 * The steps of a path in a set of fields, as FieldsV1 writes them: `f:name`, `k:{"name":"a"}`, `v:"x"`, `i:0`. A step's text is what it is known by:
 * two steps are equal when their texts are.
 */
import type { Json } from '../types.ts'

type Element =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'key'; readonly fields: readonly (readonly [string, Json])[] }
  | { readonly kind: 'value'; readonly value: Json }
  | { readonly kind: 'index'; readonly index: number }

const rank = { field: 0, key: 1, value: 2, index: 3 }

const simple = /^[\w ./:-]*$/
const special = /[<>&\u2028\u2029]/g

/** JSON with the escapes that Go's encoder adds. */
export function goJson(value: Json): string {
  if (typeof value === 'string' && simple.test(value)) return `"${value}"`
  const text = JSON.stringify(value)
  return text.replace(special, found => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

export const fieldStep = (name: string): string => `f:${name}`
export const valueStep = (value: Json): string => `v:${goJson(value)}`
/** Of an item of a list with keys; the fields need no order. */
export function keyStep(fields: readonly (readonly [string, Json])[]): string {
  if (fields.length === 1) {
    const [[name, value]] = fields as [readonly [string, Json]]
    return `k:{${goJson(name)}:${goJson(value)}}`
  }
  const sorted = [...fields].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `k:{${sorted.map(([name, value]) => `${goJson(name)}:${goJson(value)}`).join(',')}}`
}

// Steps repeat in every object of a kind, so what they say is read once. The bound keeps a long run small.
const most = 50_000
const elements = new Map<string, Element>()

function elementOf(step: string): Element {
  let element = elements.get(step)
  if (!element) {
    if (elements.size >= most) elements.clear()
    element = read(step)
    elements.set(step, element)
  }
  return element
}

function read(step: string): Element {
  const rest = step.slice(2)
  switch (step[0]) {
    case 'k':
      return { kind: 'key', fields: Object.entries(JSON.parse(rest) as Record<string, Json>) }
    case 'v':
      return { kind: 'value', value: JSON.parse(rest) as Json }
    case 'i':
      return { kind: 'index', index: Number(rest) }
    default:
      return { kind: 'field', name: rest }
  }
}

/**
 * A step from outside in the form that steps are known by here; undefined for a kind that nobody knows.
 * Throws where it cannot be read.
 */
export function canonicalStep(text: string): string | undefined {
  if (text.length < 2) throw new Error('key must be 2 characters long:')
  if (text[1] !== ':') throw new Error(`missing colon: ${text}`)
  const rest = text.slice(2)
  switch (text[0]) {
    case 'f':
      return text
    case 'k':
      return keyStep(Object.entries(JSON.parse(rest) as Record<string, Json>))
    case 'v':
      return valueStep(JSON.parse(rest) as Json)
    case 'i':
      if (!/^[-+]?\d+$/.test(rest)) throw new Error(`invalid index: ${rest}`)
      return `i:${Number(rest)}`
    default:
      return undefined
  }
}

/** The order of steps in FieldsV1: fields, keys, values, indices. */
export function compareSteps(left: string, right: string): number {
  if (left === right) return 0
  if (left[0] === 'f' && right[0] === 'f') return left < right ? -1 : 1
  const a = elementOf(left)
  const b = elementOf(right)
  if (a.kind !== b.kind) return rank[a.kind] - rank[b.kind]
  if (a.kind === 'key' && b.kind === 'key') return compareKeys(a.fields, b.fields)
  if (a.kind === 'value' && b.kind === 'value') return compareValues(a.value, b.value)
  if (a.kind === 'index' && b.kind === 'index') return a.index - b.index
  return 0
}

function compareKeys(a: readonly (readonly [string, Json])[], b: readonly (readonly [string, Json])[]): number {
  for (let i = 0; ; i++) {
    const left = a[i]
    const right = b[i]
    if (!left || !right) return a.length - b.length
    if (left[0] !== right[0]) return left[0] < right[0] ? -1 : 1
    const order = compareValues(left[1], right[1])
    if (order !== 0) return order
  }
}

const kinds = ['number', 'string', 'boolean', 'object']

function compareValues(a: Json, b: Json): number {
  if (typeof a !== typeof b) return kinds.indexOf(typeof a) - kinds.indexOf(typeof b)
  if (typeof a === 'number') return a - (b as number)
  if (typeof a === 'string' || typeof a === 'boolean') return a === b ? 0 : a < (b as typeof a) ? -1 : 1
  const left = goJson(a)
  const right = goJson(b)
  return left === right ? 0 : left < right ? -1 : 1
}

/** A path as people read it: `.spec.containers[name="a"].image`. */
export const pathText = (path: readonly string[]): string => path.map(stepText).join('')

export function stepText(step: string): string {
  const element = elementOf(step)
  switch (element.kind) {
    case 'field':
      return `.${element.name}`
    case 'key':
      return `[${element.fields.map(([name, value]) => `${name}=${valueText(value)}`).join(',')}]`
    case 'value':
      return `[=${valueText(element.value)}]`
    case 'index':
      return `[${element.index}]`
  }
}

function valueText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(valueText).join(',')}]`
  if (value !== null && typeof value === 'object') {
    return Object.entries(value)
      .map(([name, inner]) => `${name}=${valueText(inner)}`)
      .join('')
  }
  return JSON.stringify(value)
}
