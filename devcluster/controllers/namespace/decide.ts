/**
 * What a namespace that is being deleted says of itself, from what is left in it. Pure.
 */
import type { V1NamespaceCondition } from '@kubernetes/client-node'
import type { Frozen, Wire } from '../../../controller/kube/kind.ts'
import { withCondition } from '../common/conditions.ts'

type Condition = Frozen<Wire<V1NamespaceCondition>>

/** What is left of a resource. */
export interface Remainder {
  /** `pods.`, `widgets.example.com`. */
  readonly resource: string
  readonly count: number
  readonly finalizers: readonly string[]
}

export interface Failure {
  readonly resource: string
  readonly message: string
}

export function conditionsOf(
  before: readonly Condition[] | undefined,
  remainders: readonly Remainder[],
  failures: readonly Failure[],
  now: string,
): Condition[] {
  const left = remainders.filter(({ count }) => count > 0)
  const counts = new Map<string, number>()
  for (const { finalizers } of left)
    for (const finalizer of finalizers) counts.set(finalizer, (counts.get(finalizer) ?? 0) + 1)
  const has = (n: number) => `has ${n} resource instances`
  const resources = left.map(({ resource, count }) => `${resource} ${has(count)}`).sort()
  const finalizers = [...counts].map(([name, n]) => `${name} in ${n} resource instances`).sort()
  const all: [string, boolean, string, string][] = [
    ['NamespaceDeletionDiscoveryFailure', false, 'ResourcesDiscovered', 'All resources successfully discovered'],
    [
      'NamespaceDeletionGroupVersionParsingFailure',
      false,
      'ParsedGroupVersions',
      'All legacy kube types successfully parsed',
    ],
    failures.length > 0
      ? [
          'NamespaceDeletionContentFailure',
          true,
          'ContentDeletionFailed',
          `Failed to delete all resource types, ${failures.length} remaining: ${failures.map(one => one.message).join(', ')}`,
        ]
      : [
          'NamespaceDeletionContentFailure',
          false,
          'ContentDeleted',
          'All content successfully deleted, may be waiting on finalization',
        ],
    left.length > 0
      ? [
          'NamespaceContentRemaining',
          true,
          'SomeResourcesRemain',
          `Some resources are remaining: ${resources.join(', ')}`,
        ]
      : ['NamespaceContentRemaining', false, 'ContentRemoved', 'All content successfully removed'],
    finalizers.length > 0
      ? [
          'NamespaceFinalizersRemaining',
          true,
          'SomeFinalizersRemain',
          `Some content in the namespace has finalizers remaining: ${finalizers.join(', ')}`,
        ]
      : ['NamespaceFinalizersRemaining', false, 'ContentHasNoFinalizers', 'All content-preserving finalizers finished'],
  ]
  return all.reduce<Condition[]>(
    (list, [type, isTrue, reason, message]) =>
      withCondition(list, { type, status: isTrue ? 'True' : 'False', reason, message }, now),
    [...(before ?? [])],
  )
}
