/**
 * What a server in Go does with zeros of a built-in type: which fields it leaves out, and which it always writes.
 */
import data from '../../data/zeros.json' with { type: 'json' }
import type { Schema } from '../schema/schema.ts'

interface Zeros {
  /** Fields that are left out where they are zero: not those that are pointers to a number. */
  readonly leftOut?: readonly string[]
  /** Fields that are always there, and what they are if nobody gave them. */
  readonly always?: Readonly<Record<string, Zero>>
}

type Zero = '' | 0 | false | null

const all = data as Readonly<Record<string, Zeros>>
const none: Zeros = {}

export const zerosOf = (schema: Schema): Zeros => all[schema['x-name'] ?? ''] ?? none
