/**
 * Words that many objects have alike (images, conditions, authorities), kept once: of ten thousand apps most of what the cache holds is the same text.
 *
 * Guarantees: no object is changed but in which copy of equal strings it holds; what is kept for comparison is bounded, whatever passes by.
 */

/** So many different strings are compared with, twice at most. */
const most = 4096
/** A certificate is shorter. What is longer is hardly ever alike. */
const longest = 4096

/** Answers a function that makes an object share its strings with those before it. */
export function createAlike(): (object: object) => void {
  let recent = new Map<string, string>()
  let before = new Map<string, string>()

  const one = (text: string): string => {
    const known = recent.get(text)
    if (known !== undefined) return known
    const kept = before.get(text) ?? text
    // What many have comes again before so many others do, and is taken along; what one object has alone is forgotten.
    if (recent.size >= most) {
      before = recent
      recent = new Map()
    }
    recent.set(kept, kept)
    return kept
  }

  return function share(value: object): void {
    for (const [key, part] of Object.entries(value)) {
      if (typeof part === 'object' && part !== null) share(part)
      else if (typeof part === 'string' && part.length <= longest) (value as Record<string, unknown>)[key] = one(part)
    }
  }
}
