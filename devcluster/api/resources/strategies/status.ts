/**
 * Kinds whose status is written by itself: a new object has none, and a change of the object leaves it alone.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Strategy } from '../../types.ts'

export const unchangedStatus: Required<Pick<Strategy, 'prepareForCreate' | 'prepareForUpdate'>> = {
  prepareForCreate: object => {
    object.status = {}
  },
  prepareForUpdate: (object, old, subresource) => {
    if (subresource === undefined) object.status = structuredClone(old.status)
  },
}

export function same(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(a ?? null, b ?? null)
}
