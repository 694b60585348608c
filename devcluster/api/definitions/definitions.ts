/**
 * CustomResourceDefinitions become rows of the table when their names are accepted, and leave it with their last object.
 *
 * Guarantees: a definition that says Established is served. One that is deleted takes its objects along, and goes when the last of them has gone.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Clock, timeOf } from '../../../shared/clock.ts'
import { customResource } from '../resources/custom.ts'
import type { Resources } from '../resources/resources.ts'
import { cleanup } from '../resources/strategies/definition.ts'
import { Stale, type Store } from '../store/store.ts'
import type { Obj } from '../types.ts'
import { isEstablished, statusOf } from './names.ts'

const shelf = 'apiextensions.k8s.io/customresourcedefinitions'

export interface DefinitionsOptions {
  readonly store: Store
  readonly resources: Resources
  readonly clock: Clock
  /** Deletes an object as any client does: with its finalizers respected. */
  remove(path: string): Promise<void>
}

/** Keeps the table as the definitions say. Answers how to end that. */
export function keepDefinitions(options: DefinitionsOptions): () => void {
  const { store, resources } = options
  const watches = new Map<string, () => void>()
  const look = (crd: Obj) => {
    const now = store.get(shelf, undefined, crd.metadata.name)
    if (now?.metadata.uid !== crd.metadata.uid) {
      const isServed = resources.all().some(type => type.custom === crd.metadata.uid)
      if (isServed) resources.remove(crd.spec.group, crd.spec.names.plural)
      watches.get(crd.metadata.uid)?.()
      watches.delete(crd.metadata.uid)
      return
    }
    const settled = settle(options, now)
    if (settled && isEstablished(settled)) {
      const { group, names } = settled.spec
      if (resources.byKind(group, names.kind)?.custom !== settled.metadata.uid) store.begin(`${group}/${names.plural}`)
      resources.add(customResource(settled))
    }
    if (settled?.metadata.deletionTimestamp) empty(settled)
  }

  /** Deletes what there is, and lets the definition go when nothing is left. */
  const empty = (crd: Obj) => {
    const { group, names } = crd.spec
    const own = `${group}/${names.plural}`
    const release = () => {
      const now = store.get(shelf, undefined, crd.metadata.name)
      if (now?.metadata.uid !== crd.metadata.uid || store.page(own, { limit: 1 }).items.length > 0) return
      const finalizers = (now.metadata.finalizers ?? []).filter(one => one !== cleanup)
      if (finalizers.length === 0) store.remove(shelf, now)
      else if (finalizers.length !== now.metadata.finalizers?.length) {
        store.write(shelf, { ...now, metadata: { ...now.metadata, finalizers } }, now)
      }
    }
    if (!watches.has(crd.metadata.uid)) {
      watches.set(
        crd.metadata.uid,
        store.watch(own, undefined, store.revision, () => setImmediate(release)),
      )
      const version = (crd.spec.versions as { name: string; served: boolean }[]).find(one => one.served)?.name
      for (const { metadata } of store.page(own).items) {
        const place = metadata.namespace ? `/namespaces/${metadata.namespace}` : ''
        void options.remove(`/apis/${group}/${version}${place}/${names.plural}/${metadata.name}`).catch(() => undefined)
      }
    }
    release()
  }

  for (const crd of store.page(shelf).items) look(crd)
  const stop = store.watch(shelf, undefined, store.revision, ({ object, previous }) => {
    const subject = object ?? previous
    // After this change: others who watch must not hear of a later one first.
    if (subject) queueMicrotask(() => look(subject))
  })
  return () => {
    stop()
    for (const end of watches.values()) end()
  }
}

/** The definition with its status as it should be, stored; undefined if somebody changed it meanwhile, which comes as a change of its own. */
function settle({ store, resources, clock }: DefinitionsOptions, crd: Obj): Obj | undefined {
  const status = statusOf(crd, resources.all(), timeOf(clock.now()))
  if (isDeepStrictEqual(status, crd.status)) return crd
  try {
    return store.write(shelf, { ...crd, status }, crd)
  } catch (error) {
    if (error instanceof Stale) return undefined
    throw error
  }
}
