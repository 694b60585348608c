/**
 * The paths of printer columns, selectable fields and scales: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `.metadata.labels.a\.b`, `.spec.list[*].name`.
 */
type Step = (values: unknown[]) => unknown[]

/** All that a path leads to; nothing for a path that cannot be understood. */
export function jsonPath(path: string): (object: unknown) => unknown[] {
  const steps = parse(path)
  return object => (steps ?? [() => []]).reduce((values, step) => step(values), [object])
}

/** The one value of a path without lists. */
export function simplePath(path: string): (object: unknown) => unknown {
  const read = jsonPath(path)
  return object => read(object)[0]
}

/** The names of a path that consists of names alone: for writing to it. */
export function namesOf(path: string): string[] {
  return [...path.matchAll(/\.((?:\\.|[^.\\[\]])+)/g)].map(([, name = '']) => name.replace(/\\(.)/g, '$1'))
}

const token =
  /\.((?:\\.|[^.\\[\]])+)|\[(\*|-?\d+)\]|\[['"]([^'"]+)['"]\]|\[\?\(\s*@\.((?:\\.|[^=!<>\s])+)\s*(==|!=|<=|>=|<|>)\s*(?:"([^"]*)"|'([^']*)'|([^\s)]+))\s*\)\]/y

function parse(path: string): Step[] | undefined {
  const steps: Step[] = []
  const source = path.replace(/^\{(.*)\}$/, '$1')
  for (let at = 0; at < source.length; ) {
    // Set anew each time: a filter has a path of its own.
    token.lastIndex = at
    const found = token.exec(source)
    if (!found) return undefined
    at = token.lastIndex
    const [, name, index, quoted, field, operator, double, single, bare] = found
    if (name !== undefined) steps.push(child(name.replace(/\\(.)/g, '$1')))
    else if (quoted !== undefined) steps.push(child(quoted))
    else if (index === '*') steps.push(values => values.flatMap(all))
    else if (index !== undefined)
      steps.push(values => values.flatMap(value => (Array.isArray(value) ? some(value.at(Number(index))) : [])))
    else steps.push(filter(field ?? '', operator ?? '', double ?? single ?? literal(bare)))
  }
  return steps
}

function child(name: string): Step {
  if (name === '*') return values => values.flatMap(all)
  return values => values.flatMap(value => some((value as Record<string, unknown> | null | undefined)?.[name]))
}

function filter(field: string, operator: string, wanted: unknown): Step {
  const read = jsonPath(`.${field}`)
  return values =>
    values
      .flatMap(value => (Array.isArray(value) ? value : []))
      .filter(item => compare(read(item)[0], operator, wanted))
}

function compare(value: unknown, operator: string, wanted: unknown): boolean {
  if (operator === '==') return value === wanted
  if (operator === '!=') return value !== wanted
  if (typeof value !== typeof wanted || value === undefined) return false
  const [a, b] = [value as number, wanted as number]
  if (operator === '<') return a < b
  if (operator === '>') return a > b
  return operator === '<=' ? a <= b : a >= b
}

function literal(text: string | undefined): unknown {
  if (text === 'true' || text === 'false') return text === 'true'
  return text !== undefined && text.trim() !== '' && !Number.isNaN(Number(text)) ? Number(text) : text
}

function all(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  return value !== null && typeof value === 'object' ? Object.values(value) : []
}

function some(value: unknown): unknown[] {
  return value === undefined || value === null ? [] : [value]
}
