/**
 * The history of a template, as ControllerRevisions: which one is current, which one is wished, which ones may go. Pure.
 *
 * Guarantee: the same template is the same revision, and going back to an old one gives that one the highest number.
 */
import type { V1ControllerRevision } from '@kubernetes/client-node'
import { controllerReference } from '../../../controller/kube/cached.ts'
import type { Draft, Snapshot } from '../../../controller/kube/kind.ts'
import { canonicalJson } from '../../../shared/canonical.ts'
import { shortHash } from './hash.ts'
import type { Template } from './pods.ts'

export type Revision = Snapshot<V1ControllerRevision>

/** What a set's history comes to. */
export interface History {
  /** The revision of the template as it is now: one that is there, or one to be made. */
  readonly update: { readonly name: string; readonly hash: string; readonly template: Template }
  readonly create?: Draft<V1ControllerRevision> | undefined
  /** An old revision that is wished again: its new number. */
  readonly renumber?: { readonly revision: Revision; readonly to: number } | undefined
  readonly collisions: number
}

interface Owner {
  readonly set: Snapshot
  readonly template: Template
  /** The label of a revision that holds its hash. */
  readonly hashLabel: string
  readonly collisions: number
}

export function historyOf({ set, template, hashLabel, collisions }: Owner, all: readonly Revision[]): History {
  const revisions = sorted(all)
  const data = { spec: { template: { $patch: 'replace', ...template } } }
  const text = canonicalJson(data)
  const equal = revisions.filter(one => canonicalJson(one.data ?? null) === text)
  const next = (revisions.at(-1)?.revision ?? 0) + 1
  const same = equal.at(-1)
  if (same) {
    const update = { name: same.metadata.name, hash: same.metadata.labels?.[hashLabel] ?? '', template }
    const isLast = same === revisions.at(-1)
    return { update, collisions, ...(isLast ? {} : { renumber: { revision: same, to: next } }) }
  }
  const taken = new Set(revisions.map(one => one.metadata.name))
  let count = collisions
  let hash = shortHash(data, count)
  while (taken.has(`${set.metadata.name}-${hash}`)) hash = shortHash(data, ++count)
  const name = `${set.metadata.name}-${hash}`
  const { annotations, namespace } = set.metadata
  const create: Draft<V1ControllerRevision> = {
    metadata: {
      name,
      namespace,
      labels: { ...template.metadata?.labels, [hashLabel]: hash },
      ...(annotations ? { annotations } : {}),
      ownerReferences: [controllerReference(set)],
    },
    data,
    revision: next,
  }
  return { update: { name, hash, template }, create, collisions: count }
}

/** Those beyond the limit that nothing uses, oldest first. */
export function dispensable(all: readonly Revision[], live: ReadonlySet<string>, limit: number): Revision[] {
  const history = sorted(all).filter(one => !live.has(one.metadata.name))
  return history.slice(0, Math.max(history.length - limit, 0))
}

export function templateOf(revision: Revision): Template {
  const { $patch: _, ...template } = (revision.data as { spec: { template: Template & { $patch?: string } } }).spec
    .template
  return template
}

function sorted(revisions: readonly Revision[]): Revision[] {
  return revisions.toSorted(
    (a, b) => a.revision - b.revision || (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? -1 : 1),
  )
}
