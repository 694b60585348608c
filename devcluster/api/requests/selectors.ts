/**
 * Label and field selectors: what a list or a watch is narrowed to. Pure; throws in the server's words.
 */
import { badRequest } from '../problems.ts'
import type { Obj, ResourceType } from '../types.ts'

export type Matcher = (object: Obj) => boolean

type Labels = Readonly<Record<string, string>>
type Requirement = (labels: Labels) => boolean

const refuse = (why: string) => badRequest(`unable to parse requirement: ${why}`)

/** Undefined where everything fits. */
function labelMatcher(selector: string | null): Matcher | undefined {
  if (!selector || selector.trim() === '') return undefined
  const requirements = parseLabels(selector)
  return ({ metadata: { labels = {} } }) => requirements.every(fits => fits(labels))
}

const token = /\s*(?:(!=|==|=|!|\(|\)|,|<|>)|([^\s!=(),<>]+))/y

function tokens(text: string): { word: boolean; text: string }[] {
  const found: { word: boolean; text: string }[] = []
  token.lastIndex = 0
  for (;;) {
    const match = token.exec(text)
    if (!match) return found
    found.push({ word: match[2] !== undefined, text: (match[1] ?? match[2]) as string })
  }
}

function parseLabels(selector: string): Requirement[] {
  const all = tokens(selector)
  let at = 0
  const peek = () => all[at]
  const next = () => all[at++]
  const requirements: Requirement[] = []
  for (;;) {
    requirements.push(requirement())
    const after = next()
    if (!after) return requirements
    if (after.text !== ',' || after.word) throw refuse(`found '${after.text}', expected: ',' or 'end of string'`)
    if (!peek()) throw refuse("found '', expected: identifier after ','")
  }

  function requirement(): Requirement {
    const negated = peek()?.text === '!' && !peek()?.word
    if (negated) next()
    const key = next()
    if (!key?.word) throw refuse(`found '${key?.text ?? ''}', expected: !, identifier, or 'end of string'`)
    checkKey(key.text)
    if (negated) return labels => labels[key.text] === undefined
    const operator = peek()
    if (!operator || (operator.text === ',' && !operator.word)) return labels => labels[key.text] !== undefined
    next()
    if (operator.word ? operator.text === 'in' || operator.text === 'notin' : false) {
      const values = list()
      const wanted = operator.text === 'in'
      return labels => {
        const value = labels[key.text]
        return value === undefined ? !wanted : values.has(value) === wanted
      }
    }
    if (operator.text === '=' || operator.text === '==') {
      const value = word()
      checkValue(key.text, value)
      return labels => labels[key.text] === value
    }
    if (operator.text === '!=') {
      const value = word()
      checkValue(key.text, value)
      return labels => labels[key.text] !== value
    }
    if (operator.text === '<' || operator.text === '>') {
      const value = word(true)
      if (!/^-?\d+$/.test(value)) {
        throw refuse(
          `values[0]: Invalid value: ${JSON.stringify(value)}: for 'Gt', 'Lt' operators, the value must be an integer`,
        )
      }
      return labels => {
        const label = labels[key.text]
        if (label === undefined || !/^-?\d+$/.test(label)) return false
        return operator.text === '<' ? BigInt(label) < BigInt(value) : BigInt(label) > BigInt(value)
      }
    }
    throw refuse(`found '${operator.text}', expected: in, notin, =, ==, !=, gt, lt`)
  }

  /** One value; none is the empty one. */
  function word(isRequired = false): string {
    const value = peek()
    if (!value || (value.text === ',' && !value.word)) {
      if (isRequired) throw refuse(`found '${value?.text ?? ''}', expected: identifier`)
      return ''
    }
    if (!value.word) throw refuse(`found '${value.text}', expected: identifier`)
    next()
    return value.text
  }

  function list(): Set<string> {
    const open = next()
    if (open?.text !== '(' || open.word) throw refuse(`found '${open?.text ?? ''}' expected: '('`)
    const values = new Set<string>()
    for (;;) {
      const value = next()
      if (value?.word) {
        values.add(value.text)
        const after = next()
        if (after?.text === ')') return values
        if (after?.text !== ',') throw refuse(`found '${after?.text ?? ''}', expected: ',' or ')'`)
      } else if (value?.text === ')') {
        values.add('')
        return values
      } else if (value?.text === ',') values.add('')
      else throw refuse(`found '${value?.text ?? ''}', expected: ',', ')' or identifier`)
    }
  }
}

const keyForm = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/

function checkKey(key: string): void {
  const slash = key.lastIndexOf('/')
  const name = slash < 0 ? key : key.slice(slash + 1)
  if (keyForm.test(name) && name.length <= 63) return
  const detail =
    name.length > 63
      ? 'name part must be no more than 63 characters'
      : "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
  throw refuse(`<nil>: Invalid value: ${JSON.stringify(key)}: ${detail}`)
}

function checkValue(key: string, value: string): void {
  if (value === '' || (keyForm.test(value) && value.length <= 63)) return
  const detail =
    value.length > 63
      ? 'must be no more than 63 characters'
      : "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
  throw refuse(`values[0][${key}]: Invalid value: ${JSON.stringify(value)}: ${detail}`)
}

/** Undefined where everything fits. Also the name that alone can fit, if there is one. */
function fieldMatcher(
  selector: string | null,
  type: ResourceType,
): { matches: Matcher; name: string | undefined } | undefined {
  if (!selector || selector.trim() === '') return undefined
  let only: string | undefined
  const terms = splitTerms(selector).map(term => {
    const found = /^((?:\\.|[^=!\\])*?)(!=|==|=)((?:.|\n)*)$/.exec(term)
    if (!found) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`)
    const [, field = '', operator, raw = ''] = found
    const value = raw.replace(/\\([\\,=])/g, '$1')
    const read = fieldOf(type, field)
    if (field === 'metadata.name' && operator !== '!=') only = value
    return operator === '!=' ? (object: Obj) => read(object) !== value : (object: Obj) => read(object) === value
  })
  return { matches: object => terms.every(fits => fits(object)), name: only }
}

function splitTerms(selector: string): string[] {
  const terms = selector.match(/(?:\\.|[^\\,])+/g) ?? []
  return terms.filter(term => term !== '')
}

function fieldOf(type: ResourceType, field: string): (object: Obj) => string {
  if (field === 'metadata.name') return object => object.metadata.name
  if (field === 'metadata.namespace' && (type.namespaced || type.custom === undefined)) {
    return object => object.metadata.namespace ?? ''
  }
  const own = type.strategy.fields?.[field]
  if (own) return own
  if (type.resource === 'jobs') throw badRequest(`field label "${field}" not supported for Job`)
  if (type.custom !== undefined || type.strategy.fields) throw badRequest(`field label not supported: ${field}`)
  throw badRequest(`"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`)
}

/** Both in one. */
export function matcherOf(query: URLSearchParams, type: ResourceType): Matcher | undefined {
  const labels = labelMatcher(query.get('labelSelector'))
  const fields = fieldMatcher(query.get('fieldSelector'), type)?.matches
  if (!labels || !fields) return labels ?? fields
  return object => labels(object) && fields(object)
}
