/**
 * The children that one reconciliation looks after, by index, in the order in which they may be created. Made anew for each reconciliation.
 *
 * Guarantees: an index is there once; what depends on another is registered after it, so there are no circles.
 */
import { ShipmateError } from '../../shared/errors.ts'
import type { Ref, Snapshot } from '../kube/kind.ts'
import type { Expected } from './expected.ts'
import type { AnyResource } from './resource.ts'

export interface Entry<C extends object> {
  readonly resource: AnyResource<C>
  readonly ref: Ref
  /** `Deployment sample`. */
  readonly index: string
  /** Those that must be ready before this one is created or changed. */
  readonly after: readonly string[]
  /** As it is on the server; undefined if it is not there, or was not asked for yet. */
  peer: Snapshot | undefined
  isFetched: boolean
  /** It was deleted in this reconciliation, so that nothing waits for it. */
  isUnwished: boolean
  /** As it should be; undefined until it was mutated. */
  expected: Expected | undefined
}

export interface Registry<C extends object> {
  add(entry: Entry<C>): void
  get(index: string): Entry<C> | undefined
  /** By what declared it, where it was registered once. */
  of(resource: AnyResource<C>): Entry<C> | undefined
  /** In the order of their registration, so that each comes after those it depends on. */
  all(): Entry<C>[]
}

export function createRegistry<C extends object>(): Registry<C> {
  const entries = new Map<string, Entry<C>>()
  return {
    add(entry) {
      const other = entries.get(entry.index)
      if (other) throw new ShipmateError('Misuse', `${entry.index} is registered twice`, 'never')
      for (const index of entry.after) {
        if (!entries.has(index))
          throw new ShipmateError(
            'Misuse',
            `${entry.index} comes after ${index}, which is not registered before it`,
            'never',
          )
      }
      entries.set(entry.index, entry)
    },
    get: index => entries.get(index),
    of: resource => [...entries.values()].find(entry => entry.resource === resource),
    all: () => [...entries.values()],
  }
}
