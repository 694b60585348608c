/**
 * Letting children go: those that are being deleted, those that nothing asks for any more, and all of them when the custom resource goes.
 *
 * Guarantees: a child that carries our finalizer is let go once its hook has succeeded, and where nobody knows its hook any more, when the custom resource goes,
 * with an Event; a child that cannot go is named. Only children that this operator has made are touched.
 */
import { NotFound } from '../kube/errors.ts'
import { type Kind, keyOf, kindKey, type Snapshot } from '../kube/kind.ts'
import type { Surroundings } from './care.ts'
import { findRef } from './expected.ts'
import { hasFinalizer, isBeingDeleted, removeFinalizer } from './finalizers.ts'
import { isMadeBy } from './ownership.ts'
import type { Entry } from './registry.ts'
import type { AnyResource, Release } from './resource.ts'

interface Child {
  readonly kind: Kind
  readonly child: Snapshot
}

export interface Releasing<C extends object> {
  /** A registered child is being deleted: its own finalizer runs, and it is waited for. */
  leave(entry: Entry<C>, peer: Snapshot): Promise<void>
  prune(): Promise<void>
  releaseAll(): Promise<void>
  /** Takes our finalizer off every child, whatever its hook says. */
  letGo(): Promise<void>
  held(): string[]
}

/** Said, since the server would leave a Job's pods where they are. */
export const withDependents = { propagation: 'Background' } as const

export function createReleasing<C extends object>(around: Surroundings<C>): Releasing<C> {
  const { cr, client, log, signal, results, registry, childFinalizer, maker } = around

  async function release(resource: AnyResource<C> | undefined, { kind, child }: Child, on: string): Promise<void> {
    try {
      const call: Release<C, object> = { object: child, cr, client, log, signal, event: around.event }
      await resource?.options.finalizer?.(call)
      await takeOff(kind, child)
      results.add({ code: 'Released', on })
    } catch (error) {
      results.add({ code: 'ReleaseFailed', on, error })
    }
  }

  async function takeOff(kind: Kind, child: Snapshot): Promise<void> {
    await removeFinalizer(client, kind, child, childFinalizer).catch(error => {
      // Let go already: the cache may show it a moment longer.
      if (!(error instanceof NotFound)) throw error
    })
  }

  /** Children that this operator has made for this custom resource, of every kind; or of those that can be read now. */
  function made(kinds = around.kinds): Child[] {
    return kinds.flatMap(kind =>
      client
        .owned(kind, cr as Snapshot)
        .filter(child => isMadeBy(child, maker.operator) || hasFinalizer(child, childFinalizer))
        .map(child => ({ kind, child })),
    )
  }

  /** Without optional ones that are not served, or not to us. */
  function readable(): Kind[] {
    return around.kinds.filter(kind => client.isRead(kind) || !around.optionalKinds.includes(kind))
  }

  /** Registered ones without an owner reference, as far as they are there. */
  function unowned(): Child[] {
    return registry.all().flatMap(({ resource: { kind, options }, peer }) => {
      return peer && options.owner === false ? [{ kind, child: peer }] : []
    })
  }

  /** Those that carry our finalizer, also without an owner reference: nobody else would let them go. */
  async function carrying(): Promise<Child[]> {
    const known = new Set([...around.declared, ...registry.all().map(({ resource }) => resource)])
    const others = [...known].filter(({ options }) => options.owner === false && options.finalizer)
    const found = others.map(async one => {
      const ref = findRef(one, cr)
      return { kind: one.kind, child: ref && (await client.find(one.kind, ref)) }
    })
    return [...made(), ...(await Promise.all(found))].flatMap(({ kind, child }, i, all) => {
      const isAgain = all.findIndex(other => other.child?.metadata.uid === child?.metadata.uid) !== i
      return child && !isAgain && hasFinalizer(child, childFinalizer) ? [{ kind, child }] : []
    })
  }

  /** Whose hook is to be run for a child; undefined where nobody knows. */
  function declarationOf({ kind, child }: Child): AnyResource<C> | undefined {
    const key = keyOf(child.metadata)
    const registered = registry
      .all()
      .find(({ resource, ref }) => kindKey(resource.kind) === kindKey(kind) && keyOf(ref) === key)
    const sameKind = around.declared.filter(one => kindKey(one.kind) === kindKey(kind) && one.options.finalizer)
    const named = sameKind.find(one => {
      const ref = findRef(one, cr)
      return ref && keyOf(ref) === key
    })
    return registered?.resource ?? named ?? (sameKind.length === 1 ? sameKind[0] : undefined)
  }

  return {
    async leave(entry, peer) {
      const child = { kind: entry.resource.kind, child: peer }
      if (hasFinalizer(peer, childFinalizer)) await release(entry.resource, child, entry.index)
      else results.add({ code: 'Leaving', on: entry.index, note: heldBy(peer) })
    },
    async prune() {
      // What is to take its place may have failed.
      const isSound = !results.operations.some(({ error }) => error !== undefined)
      const wanted = new Set(registry.all().map(({ resource, ref }) => `${kindKey(resource.kind)} ${keyOf(ref)}`))
      for (const { kind, child } of made(readable())) {
        if (wanted.has(`${kindKey(kind)} ${keyOf(child.metadata)}`) || !isMadeBy(child, maker.operator)) continue
        const on = `${kind.kind} ${child.metadata.name}`
        try {
          if (!isBeingDeleted(child)) {
            if (!isSound) continue
            await client.delete(kind, child, withDependents)
            results.add({ code: 'Pruned', on })
          } else if (hasFinalizer(child, childFinalizer)) {
            const declaration = declarationOf({ kind, child })
            if (declaration) await release(declaration, { kind, child }, on)
          }
        } catch (error) {
          results.add({ code: 'DeleteFailed', on, error })
        }
      }
    },
    async releaseAll() {
      for (const one of await carrying()) {
        const { kind, child } = one
        const on = `${kind.kind} ${child.metadata.name}`
        const declaration = declarationOf(one)
        if (!declaration?.options.finalizer)
          around.event(
            'Warning',
            'ReleasedUnasked',
            `${on} is let go without its finalizer, which nothing declares now`,
          )
        await release(declaration, one, on)
      }
    },
    async letGo() {
      for (const { kind, child } of await carrying()) await takeOff(kind, child)
    },
    held: () =>
      [...made(readable()), ...unowned()].flatMap(one => {
        const { kind, child } = one
        const isKnown = declarationOf(one) !== undefined
        const by = isBeingDeleted(child) ? heldBy(child, isKnown ? childFinalizer : undefined) : undefined
        return by === undefined ? [] : [`${kind.kind} ${child.metadata.name} ${by}`]
      }),
  }
}

/** Which finalizers hold an object that is being deleted, but for one that is handled. */
function heldBy({ metadata }: Snapshot, handled?: string): string | undefined {
  const others = (metadata.finalizers ?? []).filter(one => one !== handled)
  return others.length > 0 ? `is being deleted, and held by the finalizer ${others.join(', ')}` : undefined
}
