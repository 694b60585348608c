/**
 * Changes values inside a YAML text, and leaves every byte alone that says something else: comments, quotes, indentation, order. Pure.
 *
 * Maps are changed key by key and lists by the names of their items; what is added is written in the style of what is around it.
 */
import { isDeepStrictEqual } from 'node:util'
import {
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  stringify,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'

export interface Splice {
  readonly start: number
  readonly end: number
  readonly text: string
}

type Values = Readonly<Record<string, unknown>>

/** It cannot be done in place. */
export class CannotSplice extends Error {}

/** Puts all of them into a text; they must not overlap. */
export function spliced(source: string, splices: readonly Splice[]): string {
  let text = source
  for (const { start, end, text: next } of splices.toSorted((a, b) => b.start - a.start))
    text = text.slice(0, start) + next + text.slice(end)
  return text
}

/** What makes the value at a path `after`. @param before its value now */
export function splicesAt(
  source: string,
  root: unknown,
  path: readonly (string | number)[],
  before: unknown,
  after: unknown,
): Splice[] {
  let node = root
  let head = 0
  for (const key of path) {
    const pair = isMap(node) ? node.items.find(one => keyOf(one) === key) : undefined
    const next = isSeq(node) ? node.items[Number(key)] : pair?.value
    if (!next || isAlias(next)) throw new CannotSplice(`${key} comes from elsewhere by an alias`)
    head = lineAfter(source, pair ? pair.key : next)
    node = next
  }
  return splicesOf(source, node, before, after, head)
}

/** What makes the node's value `after`. @param before its value now @param head where the line ends behind which its content stands */
function splicesOf(source: string, node: unknown, before: unknown, after: unknown, head: number): Splice[] {
  if (isDeepStrictEqual(before, after)) return []
  if (isMap(node) && isValues(before) && isValues(after)) return ofMap(source, node, before, after, head)
  if (isSeq(node) && isNamed(before) && isNamed(after)) return ofSeq(source, node, before, after, head)
  if (!isScalar(node) || typeof after === 'object')
    throw new CannotSplice('a value stands there in a way that cannot be changed in place')
  const [start, end] = rangeOf(node)
  return [{ start, end, text: scalarText(after, source[start] === '"') }]
}

function ofMap(source: string, node: YAMLMap, before: Values, after: Values, head: number): Splice[] {
  const pairs = new Map(node.items.map(pair => [keyOf(pair), pair]))
  const order = Object.keys(after)
  const changed = order.flatMap((key, at): Splice[] => {
    const pair = pairs.get(key)
    if (isDeepStrictEqual(before[key], after[key])) return []
    if (pair && before[key] !== undefined) return ofPair(source, node, pair, before[key], after[key])
    if (before[key] !== undefined) throw new CannotSplice(`${key} comes from elsewhere by an alias`)
    const next = order.slice(at + 1).find(one => pairs.has(one))
    return [insertPair(source, node, key, after[key], next === undefined ? undefined : pairs.get(next), head)]
  })
  const gone = Object.keys(before).filter(key => after[key] === undefined)
  return merged([
    ...changed,
    ...gone.map(key => {
      const pair = pairs.get(key)
      if (!pair || node.flow) throw new CannotSplice(`${key} cannot be removed in place`)
      return { start: lineStart(source, rangeOf(pair.key)[0]), end: lineAfter(source, pair), text: '' }
    }),
  ])
}

/** Of a key that is there. */
function ofPair(source: string, map: YAMLMap, pair: Pair, before: unknown, after: unknown): Splice[] {
  const { value } = pair
  const isEmpty =
    value === null || (isScalar(value) && value.value === null) || (isCollection(value) && value.items.length === 0)
  if (isAlias(value)) throw new CannotSplice(`${keyOf(pair)} is an alias`)
  if (!isEmpty) return splicesOf(source, value, before, after, lineAfter(source, pair.key))
  if (typeof after !== 'object' || map.flow) {
    const [start, end] = value === null ? [rangeOf(pair.key)[1], rangeOf(pair.key)[1]] : rangeOf(value as Node)
    return [
      { start, end, text: value === null ? `: ${flow(source, after)}` : spaced(source, start, flow(source, after)) },
    ]
  }
  // The whole line anew, with a block below it.
  const start = lineStart(source, rangeOf(pair.key)[0])
  const from = rangeOf(pair.key)[0]
  return [
    {
      start: from,
      end: lineAfter(source, pair),
      text: block(source, { [keyOf(pair)]: after }, from - start).trimStart(),
    },
  ]
}

function insertPair(
  source: string,
  map: YAMLMap,
  key: string,
  value: unknown,
  next: Pair | undefined,
  head: number,
): Splice {
  const last = map.items.at(-1)
  if (map.flow) {
    const at = last ? endOf(last) : rangeOf(map)[0] + 1
    return { start: at, end: at, text: `${last ? ', ' : ''}${flow(source, { [key]: value }).slice(1, -1)}` }
  }
  const column = columnOf(source, rangeOf(map)[0])
  const previous = next ? map.items[map.items.indexOf(next) - 1] : last
  const at = previous ? lineAfter(source, previous) : head
  return lines(source, at, block(source, { [key]: value }, column))
}

function ofSeq(
  source: string,
  node: YAMLSeq,
  before: readonly Values[],
  after: readonly Values[],
  head: number,
): Splice[] {
  const names = before.map(({ name }) => name)
  const kept = after.filter(({ name }) => names.includes(name)).map(({ name }) => name)
  if (
    !isDeepStrictEqual(
      kept,
      names.filter(name => kept.includes(name)),
    )
  )
    throw new CannotSplice('items change their places')
  const found: Splice[] = []
  for (const [at, item] of before.entries()) {
    const next = after.find(({ name }) => name === item['name'])
    const own = node.items[at] as Node
    if (next) found.push(...splicesOrWhole(source, node, own, item, next))
    else if (node.flow) throw new CannotSplice('an item of a list in brackets goes')
    else found.push({ start: lineStart(source, rangeOf(own)[0]), end: lineAfter(source, own), text: '' })
  }
  let previous: Node | undefined
  for (const item of after) {
    const at = names.indexOf(item['name'])
    if (at >= 0) previous = node.items[at] as Node
    else found.push(insertItem(source, node, item, previous, head))
  }
  return merged(found)
}

/** An item that is Shipmate's own is written anew where it cannot be changed piece by piece. */
function splicesOrWhole(source: string, seq: YAMLSeq, node: Node, before: Values, after: Values): Splice[] {
  try {
    return splicesOf(source, node, before, after, lineAfter(source, node))
  } catch (error) {
    if (!(error instanceof CannotSplice) || isAlias(node) || !isOwn(after)) throw error
    const [start, end] = rangeOf(node)
    if (seq.flow || (isCollection(node) && node.flow)) return [{ start, end, text: flow(source, after) }]
    const item = itemText(source, [after], columnOf(source, rangeOf(seq)[0]))
    return [{ start: lineStart(source, start), end: lineAfter(source, node), text: item }]
  }
}

function insertItem(source: string, seq: YAMLSeq, item: Values, previous: Node | undefined, head: number): Splice {
  if (seq.flow) {
    const at = previous ? rangeOf(previous)[1] : rangeOf(seq)[0] + 1
    const text = flow(source, item)
    return { start: at, end: at, text: previous ? `, ${text}` : seq.items.length > 0 ? `${text}, ` : text }
  }
  const at = previous ? lineAfter(source, previous) : head
  return lines(source, at, itemText(source, [item], columnOf(source, rangeOf(seq)[0])))
}

/** Those that begin at the same place become one, in their order. */
function merged(splices: readonly Splice[]): Splice[] {
  const all: Splice[] = []
  for (const splice of splices.toSorted((a, b) => a.start - b.start)) {
    const last = all.at(-1)
    if (last && last.start === splice.start && last.end === last.start)
      all[all.length - 1] = { ...splice, text: last.text + splice.text }
    else if (last && last.start === splice.start && splice.end === splice.start)
      all[all.length - 1] = { ...last, text: splice.text + last.text }
    else all.push(splice)
  }
  return all
}

const yamlOptions = { lineWidth: 0, version: '1.1', aliasDuplicateObjects: false } as const

/** On one line, in brackets. */
function flow(source: string, value: unknown): string {
  const isJson = /^\s*[[{]/.test(source)
  if (isJson) return JSON.stringify(value)
  return stringify(value, { ...yamlOptions, collectionStyle: 'flow', flowCollectionPadding: false }).trimEnd()
}

/** Away from the colon before it. */
function spaced(source: string, at: number, text: string): string {
  return source[at - 1] === ':' ? ` ${text}` : text
}

/** A block, as many columns in, that ends with a line's end. */
function block(source: string, value: Values, column: number): string {
  return indented(stringify(value, { ...yamlOptions, indentSeq: indentsLists(source) }), column)
}

function itemText(source: string, items: readonly Values[], column: number): string {
  return indented(stringify(items, { ...yamlOptions, indentSeq: indentsLists(source) }), column)
}

function indented(text: string, column: number): string {
  return text.replace(/^(?=.)/gm, ' '.repeat(column))
}

/** Whether the items of a list stand further in than its key: as the text's first list has it. */
function indentsLists(source: string): boolean {
  const [, key = '', dash = ' '] =
    /^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?: *(?:#[^\n]*)?\n)*( *)- /m.exec(source) ?? []
  return dash.length > key.length
}

/** Whole lines at the beginning of a line; where the text has no last line's end, it gets one. */
function lines(source: string, at: number, text: string): Splice {
  const isOpen = at > 0 && source[at - 1] !== '\n'
  return { start: at, end: at, text: isOpen ? `\n${text.replace(/\n$/, '')}` : text }
}

/** The beginning of the line after the one in which something ends. */
function lineAfter(source: string, something: unknown): number {
  const end = endOf(something)
  if (source[end - 1] === '\n') return end
  const newline = source.indexOf('\n', end)
  return newline < 0 ? source.length : newline + 1
}

/** Where the last of its text is; a comment behind it does not count. */
function endOf(something: unknown): number {
  if (isPair(something)) return something.value === null ? endOf(something.key) : endOf(something.value)
  if (isCollection(something) && !something.flow && something.items.length > 0) return endOf(something.items.at(-1))
  return rangeOf(something as Node)[1]
}

function lineStart(source: string, at: number): number {
  return source.lastIndexOf('\n', at - 1) + 1
}

/** In the line of its own beginning; tags and anchors may stand before. */
function columnOf(source: string, at: number): number {
  return at - lineStart(source, at)
}

function rangeOf(node: unknown): readonly [number, number, number] {
  const range = (node as Node | null)?.range
  if (!range) throw new CannotSplice('a value has no place of its own')
  return range
}

function keyOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : ''
}

function scalarText(value: unknown, quoted: boolean): string {
  return quoted ? JSON.stringify(value) : stringify(value, yamlOptions).trimEnd()
}

function isValues(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isNamed(value: unknown): value is readonly Values[] {
  if (!Array.isArray(value) || !value.every(item => isValues(item) && typeof item['name'] === 'string')) return false
  return new Set(value.map(({ name }) => name)).size === value.length
}

function isOwn({ name }: Values): boolean {
  return String(name).startsWith('shipmate-')
}
