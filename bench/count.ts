/**
 * Numbers among the flags of a benchmark.
 */

/** Reads a flag's number; throws a sentence where it is none, or less than `least`. */
export function counting<Flag extends string>(values: object): (flag: Flag, least?: number) => number {
  return (flag, least = 1) => {
    const text = String((values as Record<string, unknown>)[flag])
    if (!/^\d+$/.test(text) || Number(text) < least)
      throw new Error(`--${flag} takes a number from ${least}, not ${text}`)
    return Number(text)
  }
}
