/**
 * A configuration's text, YAML or JSON, as a value, with the place of each part for messages. Pure.
 *
 * Guarantees: the value is one that JSON can write; one document, no key twice, no tags, few aliases; never throws, whatever the text.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { jsonProblem } from '../../shared/canonical.ts'
import { messageOf } from '../../shared/errors.ts'

/** Longer texts are refused; a ConfigMap holds no more than 1 MiB. */
export const longestConfig = 1024 * 1024
/** A text may repeat no more of itself by aliases. */
const mostAliases = 100

export interface Place {
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
}

export interface TextProblem extends Place {
  readonly message: string
}

export interface Parsed {
  /** Undefined if there are problems. */
  readonly value: unknown
  readonly problems: readonly TextProblem[]
  /** Where a part stands: its key if it has one; of what is not there, whatever is around it. */
  locate(path: readonly (string | number)[]): Place
}

export function parseConfig(text: string): Parsed {
  const lines = new LineCounter()
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const failed = (message: string, offset = 0): Parsed => ({
    value: undefined,
    problems: [{ message, ...placeAt(offset) }],
    locate: () => ({ line: 1, column: 1 }),
  })
  if (text.length > longestConfig) return failed(`the text is longer than ${longestConfig} characters`)
  try {
    const document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      schema: 'core',
      stringKeys: true,
      uniqueKeys: true,
      version: '1.2',
    })
    const locate = (path: readonly (string | number)[]) => placeAt(offsetOf(document.contents, path))
    const wrong = [...document.errors, ...document.warnings].slice(0, 10)
    if (wrong.length > 0) {
      const problems = wrong.map(({ code, message, pos }) => ({ message: said[code] ?? message, ...placeAt(pos[0]) }))
      return { value: undefined, problems, locate }
    }
    const value: unknown = document.toJS({ maxAliasCount: mostAliases })
    const unfit = jsonProblem(value)
    if (!unfit) return { value, problems: [], locate }
    return { value: undefined, problems: [{ message: unfit.message, ...locate(unfit.path) }], locate }
  } catch (thrown) {
    return failed(messageOf(thrown))
  }
}

/** Where the library's own words would not help. */
const said: Record<string, string> = {
  DUPLICATE_KEY: 'the key stands here twice',
  MULTIPLE_DOCS: 'a second document begins; one is read',
  NON_STRING_KEY: 'a key has to be a text',
  RESOURCE_EXHAUSTION: 'nested too deeply',
}

function offsetOf(root: Node | null, path: readonly (string | number)[]): number {
  let node: unknown = root
  let offset = root?.range?.[0] ?? 0
  const seen = (found: unknown) => {
    const start = (found as Node | null)?.range?.[0]
    if (start !== undefined) offset = start
  }
  const anchors = new Map<string, Node>()
  for (const part of path) {
    if (isAlias(node)) node = anchorOf(root, node.source, anchors)
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part))
      if (!pair) break
      seen(pair.key)
      node = pair.value
    } else if (isSeq(node)) {
      node = node.items[Number(part)]
      if (node === undefined) break
      seen(node)
    } else break
  }
  return offset
}

function anchorOf(node: unknown, name: string, found: Map<string, Node>): Node | undefined {
  const look = (at: unknown): void => {
    if (isMap(at) || isSeq(at) || isScalar(at)) {
      if (at.anchor) found.set(at.anchor, at)
    }
    if (isMap(at)) for (const { value } of at.items) look(value)
    else if (isSeq(at)) for (const item of at.items) look(item)
  }
  if (found.size === 0) look(node)
  return found.get(name)
}
