/**
 * Objects that depend on values, as the text of a template of Helm's.
 *
 * Each is printed as YAML with marks in it, which then become actions of the template. An expression is printed as JSON, which is YAML whatever is in it: no value of a user's
 * can break out of its place.
 */
import { stringify } from 'yaml'
import { Expression, Repeat, When } from './expression.ts'

export function templateOf(sources: readonly unknown[]): string {
  return sources.map(documentOf).join('')
}

function documentOf(source: unknown): string {
  if (source instanceof When) return around(`if ${source.condition.go}`, documentOf(source.content))
  if (source instanceof Repeat) return around(`range $item := ${source.list.go}`, documentOf(source.each))
  const marks: string[] = []
  const printed = stringify(marked(source, marks), { lineWidth: 0 })
  const actions = printed
    .split('\n')
    .map(line => line.replace(/^\s*(?:- )?(shipmateStep\d+)(?:: null)?$/, '$1'))
    .join('\n')
    .replace(/shipmate(?:Mark|Step)(\d+)/g, (_, index) => marks[Number(index)] ?? '')
  return `---\n${actions}`
}

const around = (opening: string, text: string) => `{{- ${opening} }}\n${text}{{- end }}\n`

/** The same with each expression, condition and repetition replaced by a mark; `marks` has what each becomes. */
function marked(source: unknown, marks: string[]): unknown {
  if (source instanceof Expression) return mark(`{{ toJson (${source.go}) }}`, marks)
  if (Array.isArray(source)) return source.flatMap(one => markedItems(one, marks))
  if (typeof source !== 'object' || source === null) return source
  const fields = Object.entries(source).flatMap(([key, field]): [string, unknown][] => {
    if (!(field instanceof When)) return [[key, marked(field, marks)]]
    const opening = step(`if ${field.condition.go}`, marks)
    return [
      [opening, null],
      [key, marked(field.content, marks)],
      [step('end', marks), null],
    ]
  })
  return Object.fromEntries(fields)
}

function markedItems(source: unknown, marks: string[]): unknown[] {
  if (source instanceof When || source instanceof Repeat) {
    const [opening, inner] =
      source instanceof When
        ? [`if ${source.condition.go}`, source.content]
        : [`range $item := ${source.list.go}`, source.each]
    return [step(opening, marks), ...markedItems(inner, marks), step('end', marks)]
  }
  return [marked(source, marks)]
}

function mark(action: string, marks: string[]): string {
  return `shipmateMark${marks.push(action) - 1}`
}

/** One that has a line to itself. */
function step(action: string, marks: string[]): string {
  return `shipmateStep${marks.push(`{{- ${action} }}`) - 1}`
}
