/**
 * The template engine, so set up that what it answers are pieces: parts of the template's own text, and values. The two are never joined here.
 *
 * Guarantee: a piece of text is a part of the template as its author wrote it. The engine is an interpreter; it makes no code, reads no other file, and
 * knows neither time nor chance.
 */
import type { Emitter, Liquid, Template as Node, Output, Parser } from 'liquidjs'
import { messageOf } from '../../../shared/errors.ts'
import { suggestion } from '../../../shared/nearest.ts'
import { liquid } from '../libraries.ts'
import { type Place, placeOf, YamlTemplateError } from './problem.ts'
import { copyOut } from './scope.ts'

export type Piece =
  /** The template's own text, from that offset on. */
  | { readonly is: 'text'; readonly at: number; readonly text: string }
  /** What an expression at that offset, `{{ … }}`, gave. */
  | { readonly is: 'value'; readonly at: number; readonly expression: string; readonly value: unknown }

export interface Template {
  readonly file: string
  readonly text: string
  /** The values that it uses, each with the first place where it does. */
  readonly names: readonly (Place & { readonly name: string })[]
  /** Whether the values decide which parts there are. */
  readonly branches: boolean
  render(scope: object): Piece[]
  /** Its pieces with no value known; for a template that does not branch. */
  outline(): Piece[]
}

/** Those that write nothing themselves but the template's text. */
const tags = ['assign', 'break', 'case', 'comment', 'continue', 'for', 'if', 'raw', 'unless', '#']

/** With these the same values could give something else the next time. */
const fickle = /^(date|date_to_.*|sample|shuffle)$/

/** How much may be made of values, in characters and items: a range such as (1..1000000000) ends here. */
const memoryLimit = 10_000_000

/** One for all: it holds nothing of any template. Made when the first is compiled. */
let known: Engine | undefined

interface Engine {
  readonly engine: Liquid
  readonly parse: (file: string, text: string) => Node[]
}

export function compile(file: string, text: string): Template {
  known ??= createEngine()
  const { engine, parse } = known
  const { analyzeSync, Context, Output, TokenKind, toValueSync } = liquid()
  const nodes = attempt(file, text, () => parse(file, text))
  const names = Object.entries(analyzeSync(nodes, { partials: false }).globals).map(([name, [first]]) => ({
    name,
    line: first?.location.row ?? 1,
    column: first?.location.col ?? 1,
  }))
  return {
    file,
    text,
    names,
    branches: nodes.some(node => node.token.kind === TokenKind.Tag),
    render: scope =>
      attempt(file, text, () => {
        const pieces = new Pieces()
        const context = new Context(scope, engine.options, { sync: true }, { liquid: engine })
        toValueSync(engine.renderer.renderTemplates(nodes, context, pieces))
        return pieces.all
      }),
    outline: () => {
      const pieces = new Pieces()
      for (const node of nodes) {
        if (node instanceof Output) pieces.write(pieceOf(node, undefined))
        else node.render(new Context(), pieces)
      }
      return pieces.all
    },
  }
}

function createEngine(): Engine {
  const { Liquid, Output, Parser, TokenKind } = liquid()
  const engine = new Liquid({ strictVariables: true, strictFilters: true, lenientIf: true, locale: 'en', memoryLimit })
  for (const name of Object.keys(engine.tags)) if (!tags.includes(name)) delete engine.tags[name]
  for (const name of Object.keys(engine.filters)) if (fickle.test(name)) delete engine.filters[name]

  class PieceParser extends Parser {
    override parseToken(...[token, rest]: Parameters<Parser['parseToken']>): ReturnType<Parser['parseToken']> {
      const node: Node = super.parseToken(token, rest)
      if (node instanceof Output) {
        const { value } = node
        node.render = function* (context, emitter) {
          const given: unknown = yield value.value(context, false)
          emitter.write(pieceOf(node, copyOut(given)))
        }
      } else if (token.kind === TokenKind.HTML) {
        const { trimLeft } = token as unknown as { trimLeft: number }
        const { str: text } = node as unknown as { str: string }
        node.render = (_context, emitter) => emitter.write({ is: 'text', at: token.begin + trimLeft, text })
      } else if ((token as unknown as { name: string }).name === 'raw') {
        const text = (node as unknown as { render(): string }).render()
        node.render = (_context, emitter) => emitter.write({ is: 'text', at: token.end, text })
      }
      return node as ReturnType<Parser['parseToken']>
    }
  }

  return { engine, parse: (file, text) => new PieceParser(engine).parse(text, file) }
}

/** Takes pieces alone, so that nothing else can get into the text. */
class Pieces implements Emitter {
  readonly all: Piece[] = []
  readonly buffer = ''

  write(piece: Piece): void {
    if (typeof piece !== 'object') throw new TypeError('only pieces can be written')
    this.all.push(piece)
  }
}

function pieceOf({ token }: Output, value: unknown): Piece {
  return { is: 'value', at: token.begin, expression: token.getText(), value }
}

/** The engine's errors as ours. */
function attempt<R>(file: string, text: string, run: () => R): R {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof liquid().LiquidError)) throw error
    const { token, originalError } = error as unknown as {
      token: { begin: number; getText(): string }
      originalError?: Error & { variableName?: string }
    }
    throw new YamlTemplateError(file, placeOf(text, token.begin), said(error, originalError, token.getText()), {
      cause: originalError ?? error,
    })
  }
}

function said(error: Error, original: (Error & { variableName?: string }) | undefined, where: string): string {
  if (original?.variableName !== undefined) return `${original.variableName} has no value`
  // The engine adds file and line to its words.
  const words = messageOf(original ?? error).replace(/, (file:.*, )?line:\d+, col:\d+$/, '')
  const tag = /^tag "(.*)" not found$/.exec(words)?.[1]
  if (tag !== undefined) return `there is no tag ${tag} here${suggestion(tag, tags)}`
  const filter = /^undefined filter: (.*)$/.exec(words)?.[1]
  if (filter !== undefined) return `there is no filter ${filter} here`
  return where.startsWith('{{') && original instanceof TypeError ? `${where} ${words}` : words
}
