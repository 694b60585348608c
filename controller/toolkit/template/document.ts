/**
 * One object from the pieces of a template. A value is a word of letters and digits while the text is read as YAML; what the word stands for is put in
 * afterwards, where the word was found.
 *
 * So the structure is that of the template's own text, and a value is where its word was: alone in a plain scalar, the value itself; within more text or
 * quotes, or as a key, its text.
 */
import type { DocumentOptions, ParseOptions, Scalar, SchemaOptions } from 'yaml'
import { yaml } from '../libraries.ts'
import type { Piece, Template } from './liquid.ts'
import { placeOf, YamlTemplateError } from './problem.ts'
import { copyOut } from './scope.ts'

/** @param want `outline`: the values are not known yet, only the structure is looked at */
export function read(template: Template, pieces: readonly Piece[], want: 'object' | 'outline'): object {
  const { text, words, originOf, wordOf } = textOf(template, pieces)
  const fail = (offset: number, problem: string): never => {
    throw new YamlTemplateError(template.file, placeOf(template.text, originOf(offset)), problem)
  }
  const { isMap, isScalar, parseAllDocuments, visit } = yaml()
  const documents = parseAllDocuments(text, literals)
  for (const document of documents) {
    const [wrong] = [...document.errors, ...document.warnings]
    if (wrong) fail(wrong.pos[0], inWords(wrong.message, words))
  }
  const [document, second] = documents.filter(({ contents }) => contents !== null && !isNothing(contents))
  if (!document) return fail(0, 'there is no object in it')
  if (second) fail(second.range?.[0] ?? 0, 'a second object begins here; a template gives one')
  visit(document, {
    Scalar(key, node) {
      if (key === 'key' || !isPlain(node)) return
      const word = wordOf(node.value)
      if (word === undefined) return
      if (node.tag !== undefined && node.tag !== stringTag)
        fail(node.range?.[0] ?? 0, `${word.expression} has the tag ${node.tag}; only !!str can be there`)
      if (node.tag === undefined) node.value = word
    },
  })
  if (want === 'outline') {
    const { contents } = document
    if (!isMap(contents) && !(isScalar(contents) && contents.value instanceof Word)) notOne(contents?.toJSON())
    return {}
  }
  const filled = fill(document.toJS({ maxAliasCount: 100 }))
  if (typeof filled !== 'object' || filled === null || Array.isArray(filled)) return notOne(filled)
  return filled

  function notOne(given: unknown): never {
    return fail(document?.contents?.range?.[0] ?? 0, `it gives ${nounOf(given)}, not an object`)
  }

  function fill(node: unknown): unknown {
    if (node instanceof Word) return copyOut(node.value)
    if (typeof node === 'string') return textIn(node)
    if (Array.isArray(node)) return node.map(fill)
    if (typeof node !== 'object' || node === null) return node
    const filled: Record<string, unknown> = {}
    for (const [key, member] of Object.entries(node)) {
      const name = textIn(key)
      const [word] = wordsIn(key)
      if (name === '__proto__') throw problemAt(word, '__proto__ cannot be a key')
      if (Object.hasOwn(filled, name)) throw problemAt(word, `the key ${JSON.stringify(name)} is there twice`)
      filled[name] = fill(member)
    }
    return filled
  }

  function textIn(scalar: string): string {
    return scalar.replace(words, word => {
      const found = wordOf(word) as Word
      const { value, expression } = found
      if (typeof value === 'object')
        throw problemAt(found, `${expression} is ${nounOf(value)}, and stands where only text can`)
      return String(value)
    })
  }

  function wordsIn(scalar: string): Word[] {
    return [...scalar.matchAll(words)].map(([word]) => wordOf(word) as Word)
  }

  function problemAt(word: Word | undefined, problem: string): YamlTemplateError {
    return new YamlTemplateError(template.file, placeOf(template.text, word?.at ?? 0), problem)
  }
}

/** What a word stands for. */
class Word {
  readonly at: number
  readonly expression: string
  readonly value: unknown

  constructor({ at, expression, value }: Piece & { is: 'value' }) {
    this.at = at
    this.expression = expression
    this.value = value
  }
}

/** The text that is read as YAML, and how to find the way back from it. */
function textOf(template: Template, pieces: readonly Piece[]) {
  // A word that the template's text does not have: whatever looks like one is one.
  let stem = 'Value'
  while (template.text.includes(stem)) stem += 'X'
  const known = new Map<string, Word>()
  const starts: { readonly from: number; readonly at: number; readonly isText: boolean }[] = []
  let text = ''
  for (const piece of pieces) {
    starts.push({ from: text.length, at: piece.at, isText: piece.is === 'text' })
    if (piece.is === 'text') text += piece.text
    else {
      const word = `${stem}${known.size}Z`
      known.set(word, new Word(piece))
      text += word
    }
  }
  return {
    text,
    words: new RegExp(`${stem}\\d+Z`, 'g'),
    wordOf: (word: unknown) => (typeof word === 'string' ? known.get(word) : undefined),
    originOf(offset: number): number {
      const start = starts.findLast(({ from }) => from <= offset)
      return start ? start.at + (start.isText ? offset - start.from : 0) : 0
    },
  }
}

const stringTag = 'tag:yaml.org,2002:str'
const special = /^tag:yaml\.org,2002:(timestamp|binary|omap|pairs|set)$/

/** What is written in a template means what kubectl makes of it: `yes` is true and `0644` is octal, but `12:30` and `2026-01-01` are text. */
const literals = {
  version: '1.1',
  stringKeys: true,
  prettyErrors: false,
  customTags: (tags: (string | { tag: string; format?: string })[]) =>
    tags.filter(tag => typeof tag === 'string' || !(tag.format === 'TIME' || special.test(tag.tag))),
} as ParseOptions & DocumentOptions & SchemaOptions

const isPlain = ({ type }: Scalar) => type === 'PLAIN'

/** As after the last `---`. */
function isNothing(contents: unknown): boolean {
  return yaml().isScalar(contents) && contents.value === null && (contents.source ?? '') === ''
}

/** YAML's complaint, without words that stand for values. */
function inWords(message: string, words: RegExp): string {
  return message.replace(words, '{{ … }}')
}

function nounOf(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
