/**
 * Initial data of an object from a YAML template and values: `yamlTemplate(new URL('./server.yaml', import.meta.url), cr => ({ … }))`.
 *
 * The template is Liquid (`{{ name }}`, `{% for … %}`, `{% if … %}`) in YAML. Guarantees:
 * - A value never changes the structure around it, whatever it is: no character of it is in the text that is read as YAML.
 * - `key: {{ value }}` gives the value as it is: a number, a text that looks like a number, a list, an object. Within quotes or other text it is text.
 * - A value that is missing, or that has no place where it stands, is an error with file, line and column; so is YAML that is not one object.
 * - The file is read once, here; what can be wrong whatever the values are is found here too, and not in the first reconciliation.
 * - The same values give the same object, and each call its own copy.
 */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import { suggestion } from '../../shared/nearest.ts'
import { read } from './template/document.ts'
import { compile } from './template/liquid.ts'
import { placeOf, YamlTemplateError } from './template/problem.ts'
import { scopeOf } from './template/scope.ts'

/** A file, by its URL or by its path from the working directory; or the text itself, with a name for messages. */
export type TemplateSource = string | URL | { readonly text: string; readonly name?: string | undefined }

/**
 * A function from a custom resource to initial data. Every name that the template uses must be among the values; one that is undefined may be asked
 * for by `{% if %}` and `| default:`, and nowhere else. What it answers is taken for `O`: the server checks it.
 */
export function yamlTemplate<C, O extends object = object>(
  source: TemplateSource,
  values: (cr: C) => Readonly<Record<string, unknown>>,
): (cr: C) => O {
  const { name, text } = textOf(source)
  const template = compile(name, text)
  // Without tags the structure is the same whatever the values are.
  if (!template.branches) read(template, template.outline(), 'outline')
  return cr => {
    const given = values(cr)
    const known = Object.keys(given)
    for (const used of template.names) {
      if (!Object.hasOwn(given, used.name))
        throw new YamlTemplateError(name, used, `there is no value ${used.name}${suggestion(used.name, known)}`)
    }
    return read(template, template.render(scopeOf(name, given)), 'object') as O
  }
}

function textOf(source: TemplateSource): { name: string; text: string } {
  if (typeof source === 'object' && 'text' in source) return { name: source.name ?? 'the template', text: source.text }
  if (source instanceof URL && source.protocol !== 'file:')
    throw new ShipmateError('Misuse', `a template is a file, not ${source.protocol}//…`, 'never')
  const path = source instanceof URL ? fileURLToPath(source) : source
  const near = relative('', path)
  const name = near.startsWith('..') ? path : near
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (error) {
    throw new ShipmateError('Misuse', `the template cannot be read: ${messageOf(error)}`, 'never', { cause: error })
  }
  try {
    return { name, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch (error) {
    throw new YamlTemplateError(name, placeOf('', 0), 'it is not UTF-8', { cause: error })
  }
}
