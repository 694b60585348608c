/**
 * Who says what has become of a run that nobody saw end. Pure.
 *
 * Guarantee: `by` of each word is who first said it, whatever the writer claims.
 */
import type { Op } from '../app/view.ts'

type Words = NonNullable<Op['spec']['settle']>

export function signed(words: Words, before: Words | undefined, user: string): Words {
  const known = new Map(before?.map(word => [word.run, word]))
  return words.map(word => {
    const old = known.get(word.run)
    const { by: _, ...said } = word
    const by = old ? old.by : user
    return by === undefined ? said : { ...said, by: by.slice(0, longestName) }
  })
}

/** As long as the schema permits. */
const longestName = 256
