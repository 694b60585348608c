/**
 * Letting children go: those that are being deleted, those that nothing asks for any more, and all of them when the custom resource goes.
 *
 * Guarantees: a child that carries our finalizer is let go once the hook of the declaration that it names has succeeded, and where nothing declares that any more, when
 * the custom resource goes, with an Event; a child that cannot go is named. Only children that this operator has made are touched.
 */
import type { DeleteOptions } from '../kube/client.ts'
import { NotFound } from '../kube/errors.ts'
import { type Kind, keyOf, kindKey, type Snapshot } from '../kube/kind.ts'
import type { Surroundings } from './care.ts'
import { findRef } from './expected.ts'
import { childFinalizerOf, hasFinalizer, holdsOf, isBeingDeleted, removeFinalizer } from './finalizers.ts'
import { controllerOf, isMadeBy, madeFor, makerIndex } from './ownership.ts'
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
  /** Deletes what is owned, and registered ones without an owner. Answers what is still there, by name. */
  deleteAll(propagation?: Propagation): Promise<string[]>
  releaseAll(): Promise<void>
  /** Takes our finalizer off every child, whatever its hook says. */
  letGo(): Promise<void>
  held(): string[]
}

export type Propagation = NonNullable<DeleteOptions['propagation']>

/** Said, since the server would leave a Job's pods where they are. */
const withDependents = { propagation: 'Background' } as const

export function createReleasing<C extends object>(around: Surroundings<C>): Releasing<C> {
  const { cr, client, log, signal, results, registry, childFinalizer, maker } = around

  async function release(resource: AnyResource<C> | undefined, { kind, child }: Child, on: string): Promise<void> {
    try {
      const { event, condition } = around
      const ours = holdsOf(child, childFinalizer)
      const heldBy = (child.metadata.finalizers ?? []).filter(one => !ours.includes(one))
      let why: string | undefined
      const waitFor: Release<C, object>['waitFor'] = (reason, message) => {
        why = message
        around.waitFor(reason, message)
      }
      await resource?.options.finalizer?.({
        ...{ object: child, cr, client, log, signal, heldBy },
        event,
        condition,
        waitFor,
      })
      if (why !== undefined) return results.add({ code: 'Leaving', on, note: why })
      await takeOff(kind, child)
      results.add({ code: 'Released', on })
    } catch (error) {
      results.add({ code: 'ReleaseFailed', on, error })
    }
  }

  async function takeOff(kind: Kind, child: Snapshot): Promise<void> {
    await removeFinalizer(client, kind, child, ...holdsOf(child, childFinalizer)).catch(error => {
      // Let go already: the cache may show it a moment longer.
      if (!(error instanceof NotFound)) throw error
    })
  }

  /** Children that this operator has made for this custom resource, of every kind; or of those that can be read now. */
  function made(kinds = around.kinds): Child[] {
    return kinds.flatMap(kind =>
      client
        .owned(kind, cr as Snapshot)
        .filter(child => isMadeBy(child, maker) || isHeld(child))
        .map(child => ({ kind, child })),
    )
  }

  function isHeld(child: Snapshot): boolean {
    return holdsOf(child, childFinalizer).length > 0
  }

  /** Those without an owner, whatever their names and whoever registers them: only what they carry tells whose they are. */
  function unownedOf(kinds = around.kinds): Child[] {
    return kinds.flatMap(kind =>
      client
        .by(kind, makerIndex, madeFor(maker))
        .filter(child => !controllerOf(child) && isMadeBy(child, maker))
        .map(child => ({ kind, child })),
    )
  }

  /** Without optional ones that are not served, or not to us. */
  function readable(): Kind[] {
    return around.kinds.filter(kind => client.isRead(kind) || !around.optionalKinds.includes(kind))
  }

  /** What can be told of now. */
  function read(): Kind[] {
    return around.kinds.filter(kind => client.isRead(kind))
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
    const all = [...made(), ...unownedOf(), ...(await Promise.all(found))]
    return eachOnce(all.flatMap(({ kind, child }) => (child && isHeld(child) ? [{ kind, child }] : [])))
  }

  /** Whose hook is to be run for a child that we hold: that of the declaration that its finalizer names. Undefined where nothing declares that now. */
  function declarationOf({ kind, child }: Child): AnyResource<C> | undefined {
    const holds = holdsOf(child, childFinalizer)
    const isIt = ({ kind: other, options }: AnyResource<C>) =>
      kindKey(other) === kindKey(kind) && options.finalizer !== undefined
    const isNamed = (one: AnyResource<C>) =>
      isIt(one) && holds.includes(childFinalizerOf(childFinalizer, one.options.id))
    const registered = registry.all().filter(({ resource }) => isIt(resource))
    const itself = registered.find(({ ref }) => keyOf(ref) === keyOf(child.metadata))?.resource
    if (itself && isNamed(itself)) return itself
    const all = [...around.declared, ...registered.map(({ resource }) => resource)]
    const named = all.find(isNamed)
    if (named || !holds.includes(childFinalizer)) return named
    // It was made before its declaration had an `id`.
    const sameKind = around.declared.filter(isIt)
    return itself ?? (sameKind.length === 1 ? sameKind[0] : undefined)
  }

  return {
    async leave(entry, peer) {
      const child = { kind: entry.resource.kind, child: peer }
      const declaration = isHeld(peer) ? declarationOf(child) : undefined
      // Its own declaration has no hook any more.
      const { finalizer, id } = entry.resource.options
      const isFree = !finalizer && hasFinalizer(peer, childFinalizerOf(childFinalizer, id))
      if (declaration || isFree) await release(declaration, child, entry.index)
      else results.add({ code: 'Leaving', on: entry.index, note: heldBy(peer) })
    },
    async prune() {
      // What is to take its place may have failed.
      const isSound = !results.operations.some(({ error }) => error !== undefined)
      const wanted = new Set(registry.all().map(({ resource, ref }) => `${kindKey(resource.kind)} ${keyOf(ref)}`))
      for (const { kind, child } of made(readable())) {
        if (wanted.has(`${kindKey(kind)} ${keyOf(child.metadata)}`) || !isMadeBy(child, maker)) continue
        const on = `${kind.kind} ${child.metadata.name}`
        try {
          if (!isBeingDeleted(child)) {
            if (!isSound) continue
            await client.delete(kind, child, withDependents)
            results.add({ code: 'Pruned', on })
          } else if (isHeld(child)) {
            const declaration = declarationOf({ kind, child })
            if (declaration) await release(declaration, { kind, child }, on)
          }
        } catch (error) {
          results.add({ code: 'DeleteFailed', on, error })
        }
      }
    },
    async deleteAll(propagation = 'Background') {
      const all = eachOnce([...made().filter(({ child }) => isMadeBy(child, maker)), ...unowned()])
      const left: string[] = []
      for (const { kind, child } of all) {
        const on = `${kind.kind} ${child.metadata.name}`
        try {
          if (!isBeingDeleted(child)) {
            await client.delete(kind, child, { propagation })
            results.add({ code: 'Deleted', on })
          }
          const there = await client.find(kind, child.metadata)
          if (there?.metadata.uid === child.metadata.uid) left.push(on)
        } catch (error) {
          results.add({ code: 'DeleteFailed', on, error })
        }
      }
      return left
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
      eachOnce([...made(read()), ...unownedOf(read()), ...unowned()]).flatMap(one => {
        const { kind, child } = one
        if (!isBeingDeleted(child)) return []
        const holds = holdsOf(child, childFinalizer)
        const isKnown = holds.length > 0 && declarationOf(one) !== undefined
        const by = heldBy(child, isKnown ? holds : [])
        const help = isKnown || holds.length === 0 ? '' : `; ${hint(kind, holds[0] ?? '')}`
        return by === undefined ? [] : [`${kind.kind} ${child.metadata.name} ${by}${help}`]
      }),
  }

  /** What a person can do about a child whose hook nothing declares. */
  function hint(kind: Kind, hold: string): string {
    const id = hold.slice(childFinalizer.length + 1)
    const what = id === '' ? 'a finalizer' : `a finalizer and the id ${id}`
    return `nothing declares its hook: it takes a ${kind.kind} with ${what} in \`resources\``
  }
}

function eachOnce(children: readonly Child[]): Child[] {
  return [...new Map(children.map(one => [one.child.metadata.uid, one])).values()]
}

/** Which finalizers hold an object that is being deleted, but for those that are handled. */
function heldBy({ metadata }: Snapshot, handled: readonly string[] = []): string | undefined {
  const others = (metadata.finalizers ?? []).filter(one => !handled.includes(one))
  return others.length > 0 ? `is being deleted, and held by the finalizer ${others.join(', ')}` : undefined
}
