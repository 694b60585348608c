/**
 * Chance that can be had again: the same seed draws the same numbers (mulberry32).
 */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/** So many of them, in their order. */
export function some<T>(all: readonly T[], most: number, random: () => number): T[] {
  const left = [...all.keys()]
  while (left.length > most) left.splice(Math.floor(random() * left.length), 1)
  return left.map(index => all[index] as T)
}
