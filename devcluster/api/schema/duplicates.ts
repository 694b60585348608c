/**
 * Keys that a JSON text says twice, by path. `JSON.parse` takes the last of them without a word, so the text itself is read; it has to be valid.
 */
import { child } from './values.ts'

/** Each path once, in the order of the text. */
export function findDuplicates(text: string): string[] {
  const found = new Set<string>()
  let expectsKey = false
  const open: { path: string; keys: Set<string> | undefined; index: number; key: string }[] = []
  // Strings, and the marks between values; numbers and words matter to nobody here.
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g)) {
    const top = open.at(-1)
    if (token === '{' || token === '[') {
      const path = !top ? '' : top.keys ? child(top.path, top.key) : `${top.path}[${top.index}]`
      open.push({ path, keys: token === '{' ? new Set() : undefined, index: 0, key: '' })
      expectsKey = token === '{'
    } else if (token === '}' || token === ']') {
      open.pop()
      expectsKey = false
    } else if (token === ',') {
      if (top && !top.keys) top.index++
      expectsKey = top?.keys !== undefined
    } else if (token === ':') {
      expectsKey = false
    } else if (expectsKey && top?.keys) {
      top.key = JSON.parse(token)
      if (top.keys.has(top.key)) found.add(child(top.path, top.key))
      top.keys.add(top.key)
      expectsKey = false
    }
  }
  return [...found]
}
