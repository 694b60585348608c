/**
 * `$(params.NAME)` in a declared text, replaced by what was given. Pure.
 *
 * Guarantees: what was given is never looked at again for references; it stays inside the one argument, URL part, header or JSON string in which the
 * reference stands. `$$(` is a literal `$(`. Nothing else is special: a `$(` that is not followed by `params.NAME)` stays as it is.
 */
import { canonicalJson } from '../canonical.ts'

/**
 * Where the text goes.
 * - `argument`: of a command, or a variable: as it is; NUL is refused.
 * - `url`: percent-encoded; a path segment `.` or `..` is refused, since it would lead to another path.
 * - `header`: as it is; line breaks and whatever else HTTP has no room for are refused.
 * - `body`: if the template begins with `{`, `[` or `"` and is JSON once each reference is replaced by `0`, then a reference inside a JSON string is escaped
 *   for it, and one outside becomes the value's JSON. Any other body gets it as it is: such a parameter wants a `pattern`.
 */
export type Mode = 'argument' | 'url' | 'header' | 'body'

/** A parameter's value cannot stand where the template puts it. Says which parameter, never its value, which may be a secret. */
export class TemplateError extends Error {
  readonly param: string

  constructor(param: string, message: string) {
    super(message)
    this.name = 'TemplateError'
    this.param = param
  }
}

const references = /\$\$\(|\$\(params\.([A-Za-z_][A-Za-z0-9_.-]*)\)/g
/** What looks like a reference and is none: `$(param.x)`, `$(params. x)`, `$(params)`. */
const mistaken = /\$\$\(|\$\(\s*param[^)]{0,64}\)?/gi

/** The parameters that a template names, in order, each once. */
export function referencesOf(template: string): string[] {
  const names = new Set<string>()
  for (const [, name] of template.matchAll(references)) if (name !== undefined) names.add(name)
  return [...names]
}

/** What stands in a template and was probably meant to be a reference. */
export function mistakenReferencesOf(template: string): string[] {
  const wrong: string[] = []
  for (const [text] of template.matchAll(mistaken)) {
    if (text !== '$$(' && !new RegExp(`^(?:${references.source})$`).test(text)) wrong.push(text)
  }
  return wrong
}

/**
 * The template with each reference replaced. A parameter that is absent (optional, not given) is empty in a header or a body, `null` where a JSON
 * value stands; in an argument or a URL it is an error, as it is in validation.
 *
 * @throws TemplateError
 */
export function expand(template: string, params: Readonly<Record<string, unknown>>, mode: Mode): string {
  if (!template.includes('$(')) return template
  const isJson = mode === 'body' && isJsonTemplate(template)
  const names: string[] = []
  const expanded = template.replace(references, (match, name: string | undefined, offset: number) => {
    if (name === undefined) return '$('
    names.push(name)
    const value = Object.hasOwn(params, name) ? params[name] : undefined
    if (isJson) return inJson(value, isInString(template, offset))
    if (value === undefined) {
      if (mode === 'header' || mode === 'body') return ''
      throw new TemplateError(name, `parameter ${name} was not given, and ${match} has no default`)
    }
    return placed(name, textOf(value), mode)
  })
  if (mode === 'url' && names.length > 0) refuseDotSegments(expanded, names)
  return expanded
}

/** A parameter's value as a text: a string as it is, anything else as canonical JSON. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : canonicalJson(value)
}

/** The variable in which a run finds a parameter. */
export function paramEnvName(name: string): string {
  return `SHIPMATE_PARAM_${name.toUpperCase().replace(/[^A-Z0-9]/g, '_')}`
}

/** The variable that names the file in which a run finds a secret parameter. */
export function paramFileEnvName(name: string): string {
  return `SHIPMATE_PARAM_FILE_${name.toUpperCase().replace(/[^A-Z0-9]/g, '_')}`
}

function placed(name: string, text: string, mode: Mode): string {
  switch (mode) {
    case 'argument':
      if (text.includes('\0')) throw new TemplateError(name, `parameter ${name} has a NUL, which no argument can hold`)
      return text
    case 'url':
      if (!text.isWellFormed()) throw new TemplateError(name, `parameter ${name} is not Unicode, as a URL has to be`)
      return encodeURIComponent(text)
    case 'header':
      if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) {
        throw new TemplateError(name, `parameter ${name} has a line break or another character that no header can hold`)
      }
      return text
    case 'body':
      return text
  }
}

function refuseDotSegments(url: string, names: string[]): void {
  const [path = ''] = url.replace(/^[a-z]+:\/\//i, '').split(/[?#]/)
  const segments = path.split(/[/\\]/).slice(1)
  const wrong = segments.find(segment => /^(?:\.|%2e){1,2}$/i.test(segment))
  if (wrong === undefined) return
  const who = names.length === 1 ? `parameter ${names[0]} makes` : `one of the parameters ${names.join(', ')} makes`
  throw new TemplateError(names[0] ?? '', `${who} the URL's path lead elsewhere, by a segment "${wrong}"`)
}

function inJson(value: unknown, inString: boolean): string {
  if (!inString) return value === undefined ? 'null' : canonicalJson(value)
  return value === undefined ? '' : JSON.stringify(textOf(value)).slice(1, -1)
}

function isJsonTemplate(template: string): boolean {
  if (!/^\s*[{["]/.test(template)) return false
  try {
    JSON.parse(template.replace(references, match => (match === '$$(' ? '$(' : '0')))
    return true
  } catch {
    return false
  }
}

/** Whether `offset` of a JSON text is inside a string. */
function isInString(template: string, offset: number): boolean {
  let inString = false
  for (let at = 0; at < offset; at++) {
    if (template[at] === '\\') at++
    else if (template[at] === '"') inString = !inString
  }
  return inString
}
