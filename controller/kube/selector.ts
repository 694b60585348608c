/**
 * Selectors, evaluated as the server does. Pure.
 */
import type { Live } from './kind.ts'
import { type Labels, selectorOf } from './url.ts'

export type Matcher = (labels: Labels) => boolean

/** Whether an object is selected, as far as that can be told here; undefined where only the server can. */
export function selectionOf(selection: { labels?: string | Labels | undefined; fields?: string | Labels | undefined }) {
  const labels = matcherOf(selection.labels)
  const text = selectorOf(selection.fields)
  const fields = text === undefined || isOfPlace.test(text) ? matcherOf(text) : undefined
  if (!labels || !fields) return undefined
  return ({ metadata }: Live): boolean =>
    labels(metadata.labels ?? {}) &&
    fields({ 'metadata.name': metadata.name, 'metadata.namespace': metadata.namespace ?? '' })
}

/** Fields that every kind has and that never change. Of the others only the server knows which can be selected by. */
const isOfPlace = /^\s*metadata\.name(space)?\s*(=|==|!=)[^,]*(,\s*metadata\.name(space)?\s*(=|==|!=)[^,]*)*$/

/** Whether labels are selected; undefined for a selector that cannot be understood here. */
export function matcherOf(selector: string | Labels | undefined): Matcher | undefined {
  if (selector === undefined) return () => true
  if (typeof selector !== 'string') {
    const wished = Object.entries(selector)
    return labels => wished.every(([name, value]) => labels[name] === value)
  }
  const requirements = split(selector).map(requirement)
  return requirements.every(one => one !== undefined) ? labels => requirements.every(one => one(labels)) : undefined
}

/** At commas, but for those in parentheses. */
function split(selector: string): string[] {
  return selector.trim() === '' ? [] : selector.split(/,(?![^(]*\))/).map(part => part.trim())
}

const name = String.raw`([\w./-]+)`
const forms: [RegExp, (name: string, values: readonly string[]) => Matcher][] = [
  [new RegExp(`^${name}$`), name => labels => name in labels],
  [new RegExp(`^!\\s*${name}$`), name => labels => !(name in labels)],
  [
    new RegExp(`^${name}\\s*==?\\s*([\\w.-]*)$`),
    (name, [value]) =>
      labels =>
        labels[name] === value,
  ],
  // What has no such label is not equal to anything.
  [
    new RegExp(`^${name}\\s*!=\\s*([\\w.-]*)$`),
    (name, [value]) =>
      labels =>
        labels[name] !== value,
  ],
  [
    new RegExp(`^${name}\\s+in\\s*\\(([^()]*)\\)$`),
    (name, values) => labels => name in labels && values.includes(labels[name] as string),
  ],
  [
    new RegExp(`^${name}\\s+notin\\s*\\(([^()]*)\\)$`),
    (name, values) => labels => !(name in labels && values.includes(labels[name] as string)),
  ],
]

function requirement(text: string): Matcher | undefined {
  for (const [form, matcher] of forms) {
    const found = form.exec(text)
    if (found)
      return matcher(
        found[1] as string,
        (found[2] ?? '').split(',').map(value => value.trim()),
      )
  }
  return undefined
}
