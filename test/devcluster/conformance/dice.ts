/** Chance that follows from a seed alone. */
import { uniformInt } from 'pure-rand/distribution/uniformInt'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'

/** A number below n. */
export type Dice = (n: number) => number

export function diceOf(seed: number): Dice {
  const generator = xoroshiro128plus(seed)
  return n => uniformInt(generator, 0, n - 1)
}

export const one = <T>(dice: Dice, ...of: readonly T[]): T => of[dice(of.length)] as T
export const some = <T>(dice: Dice, ...of: readonly T[]): T[] => of.filter(() => dice(2) === 0)
/** Now and then: one time in n. */
export const rarely = (dice: Dice, n: number) => dice(n) === 0

type Part = Record<string, unknown>

/** Each field by chance, one time in two. */
export const maybe = (dice: Dice, fields: Record<string, () => unknown>): Part =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(() => dice(2) === 0)
      .map(([name, make]) => [name, make()]),
  )
