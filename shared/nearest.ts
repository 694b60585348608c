/**
 * The name that was probably meant. Pure.
 */
import { distance } from 'fastest-levenshtein'

/** The known name nearest to `name`, if it is near enough to have been meant: no more than two letters differ, or a third of them; case does not count. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  if (name.length > 256) return undefined
  let best: string | undefined
  let least = (name.length < 4 ? Math.floor(name.length / 2) : Math.max(2, Math.floor(name.length / 3))) + 1
  for (const candidate of known) {
    const far = distance(name.toLowerCase(), candidate.toLowerCase())
    if (far < least) {
      least = far
      best = candidate
    }
  }
  return best
}

/** `; did you mean "x"?`, or when nothing is near `; there are a, b`. To be put after a sentence about `name`. */
export function suggestion(name: string, known: Iterable<string>): string {
  const names = [...known]
  const near = nearest(name, names)
  if (near !== undefined) return `; did you mean ${JSON.stringify(near)}?`
  if (names.length === 0) return '; there are none'
  const shown = names.slice(0, 12).join(', ')
  return names.length > 12 ? `; there are ${shown}, …` : `; there are ${shown}`
}

/** A value as it stands in a message: its JSON, cut when it is long. */
export function shown(value: unknown): string {
  let text: string
  try {
    text = JSON.stringify(value) ?? typeof value
  } catch {
    text = typeof value
  }
  return text.length > 100 ? `${text.slice(0, 97)}…` : text
}
