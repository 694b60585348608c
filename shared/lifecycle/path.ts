/**
 * The way that an app came, as a short text: `>Start>(Running<>Servicing)x3>Running`. Pure.
 *
 * `>A` is a state that was entered, `(A<>B)x3` two states in turn, three times, `(A>B>C)x2` a longer round; rounds may hold rounds. `…` at the beginning: what
 * was before is no longer told.
 * Guarantees: what is told expands to the states in their order, the newest last; a text is never longer than `longestPath`; whatever text is given, the state is appended.
 */

/** In characters. Older parts are dropped. */
export const longestPath = 512

/** A state, or a round of several that was gone through so many times. */
type Part = string | Round
interface Round {
  readonly parts: readonly Part[]
  readonly times: number
}
interface Path {
  /** Whether it begins where the app began. */
  readonly isWhole: boolean
  readonly parts: readonly Part[]
}

/** The path with one more state; the same path if that is the state it ends with. */
export function appendToPath(path: string, state: string): string {
  const name = state.replaceAll(/[^\w.-]/g, '_').slice(0, 63)
  const before = parsePath(path) ?? { isWhole: false, parts: [] }
  if (name === '' || lastOf(before.parts) === name) return textOfPath(before)
  return textOfPath(shortened({ ...before, parts: compacted([...before.parts, name]) }))
}

/**
 * The states that a path tells, oldest first.
 * @param most so many of the newest at most
 */
export function expandPath(path: string, most = 10_000): { readonly isWhole: boolean; readonly states: string[] } {
  const parsed = parsePath(path)
  if (!parsed) return { isWhole: false, states: [] }
  const states: string[] = []
  const isAll = unroll(parsed.parts, states, most)
  return { isWhole: parsed.isWhole && isAll, states: states.reverse() }
}

/** Puts the states of the parts into `states`, newest first; false if there are more than `most`. */
function unroll(parts: readonly Part[], states: string[], most: number): boolean {
  for (const part of parts.toReversed()) {
    const times = typeof part === 'string' ? 1 : part.times
    for (let round = 0; round < times; round++) {
      if (states.length >= most) return false
      if (typeof part === 'string') states.push(part)
      else if (!unroll(part.parts, states, most)) return false
    }
  }
  return true
}

/** Folds what repeats at the end, until nothing does. */
function compacted(given: readonly Part[]): Part[] {
  let parts = [...given]
  for (let folded = fold(parts); folded; folded = fold(parts)) parts = folded
  return parts
}

function fold(parts: readonly Part[]): Part[] | undefined {
  const texts = parts.map(textOf)
  const isSame = (from: number, to: number, length: number) =>
    texts.slice(from, from + length).join('>') === texts.slice(to, to + length).join('>')
  for (let length = 1; length < parts.length; length++) {
    const begin = parts.length - length
    const previous = parts[begin - 1]
    if (typeof previous === 'object' && previous.parts.length === length) {
      if (previous.parts.map(textOf).join('>') === texts.slice(begin).join('>')) {
        return [...parts.slice(0, begin - 1), { ...previous, times: previous.times + 1 }]
      }
    }
    if (begin >= length && isSame(begin - length, begin, length)) {
      return [...parts.slice(0, begin - length), { parts: parts.slice(begin), times: 2 }]
    }
  }
  return undefined
}

/** Without as much of its beginning as makes it too long. */
function shortened(path: Path): Path {
  let { isWhole, parts } = path
  while (textOfPath({ isWhole, parts }).length > longestPath) {
    const [first, ...rest] = parts
    isWhole = false
    // One round that is too long by itself: its last time is told.
    parts = rest.length === 0 && typeof first === 'object' ? first.parts : rest
  }
  return { isWhole, parts }
}

function lastOf(parts: readonly Part[]): string | undefined {
  const last = parts.at(-1)
  return typeof last === 'object' ? lastOf(last.parts) : last
}

function textOfPath({ isWhole, parts }: Path): string {
  return (isWhole ? '' : '…') + parts.map(part => `>${textOf(part)}`).join('')
}

function textOf(part: Part): string {
  if (typeof part === 'string') return part
  const isPair = part.parts.length === 2 && part.parts.every(one => typeof one === 'string')
  return `(${part.parts.map(textOf).join(isPair ? '<>' : '>')})x${part.times}`
}

/** Undefined for what is no path. */
function parsePath(text: string): Path | undefined {
  const isWhole = !text.startsWith('…')
  const rest = isWhole ? text : text.slice(1)
  if (rest === '') return { isWhole, parts: [] }
  const tokens = [...rest.matchAll(/<>|[>()]|[\w.-]+/g)].map(([token]) => token)
  if (tokens.join('') !== rest || tokens[0] !== '>') return undefined
  const reader = { tokens, at: 1 }
  const parts = parseParts(reader)
  return parts && reader.at === tokens.length ? { isWhole, parts } : undefined
}

function parseParts(reader: { readonly tokens: readonly string[]; at: number }): Part[] | undefined {
  const parts: Part[] = []
  for (;;) {
    const token = reader.tokens[reader.at++]
    if (token === undefined || /^[><)]/.test(token)) return undefined
    if (token === '(') {
      const inner = parseParts(reader)
      const [close, times = ''] = [reader.tokens[reader.at], reader.tokens[reader.at + 1]]
      if (!inner || close !== ')' || !/^x[1-9]\d{0,14}$/.test(times)) return undefined
      reader.at += 2
      parts.push({ parts: inner, times: Number(times.slice(1)) })
    } else parts.push(token)
    const separator = reader.tokens[reader.at]
    if (separator !== '>' && separator !== '<>') return parts
    reader.at++
  }
}
