/**
 * What an operator looks after: a kind of child, and how it follows from the custom resource.
 *
 * - `resource`: OKT's ResourceObject. It is created and deleted; once it is there, it is left as it is.
 * - `mutable`: OKT's MutableResourceObject. It is created, and kept as the custom resource wishes it.
 *
 * A declaration holds no state: the same one serves any number of custom resources at once.
 */
import type { CachedClient } from '../kube/cached.ts'
import type { Applied, DraftMeta, Kind, Snapshot, Wire } from '../kube/kind.ts'
import type { Logger } from '../runtime/index.ts'
import type { Wanted } from './conditions.ts'
import type { HashablePart } from './hash.ts'
import type { Readiness } from './readiness.ts'

/** An object that may be changed, before it is applied. Its parts (`spec`, `data` …) are those of its initial data. */
export type Editable<T extends object> = {
  apiVersion: string
  kind: string
  metadata: DraftMeta & { name: string; labels: Record<string, string>; annotations: Record<string, string> }
} & { -readonly [K in Exclude<keyof Wire<T>, 'apiVersion' | 'kind' | 'metadata'>]-?: NonNullable<Wire<T>[K]> }

/** What an object begins with: as an object literal, or as a template renders it. The name may be left out. */
export type InitialData<T extends object> = Omit<Applied<T>, 'metadata'> & { readonly metadata?: Applied['metadata'] }

/** What a child's own finalizer gets. */
export interface Release<C extends object, T extends object> {
  /** The child, which is being deleted, or whose custom resource is. */
  readonly object: Snapshot<T>
  readonly cr: Snapshot<C>
  readonly client: CachedClient
  readonly log: Logger
  readonly signal: AbortSignal
  /** Finalizers of others that hold it. */
  readonly heldBy: readonly string[]
  /** Tells a person, through an Event on the custom resource. */
  event(type: 'Normal' | 'Warning', reason: string, note: string): void
  /** A condition of the custom resource, as the context has it. */
  condition(wanted: Wanted): void
  /** Not yet, and nothing failed: it stays, and is looked at again when something changes. */
  waitFor(reason: string, message: string): void
}

/** What a child's state says in its custom resource. */
export interface Reflection {
  readonly conditions?: readonly Wanted[] | undefined
  /** Fields of the status; undefined takes one away. */
  readonly status?: Readonly<Record<string, unknown>> | undefined
}

export interface ResourceOptions<C extends object, T extends object> {
  /**
   * What its finalizer is called by, where several declarations of one kind have one: it stands behind a dot in the child's own, so that a child finds its hook
   * whatever else has changed. It is for good: children that are being deleted under another wait for that one. Lower-case letters, digits and `-`.
   */
  readonly id?: string | undefined
  /** Its name. Default: that of the custom resource. */
  readonly name?: string | ((cr: Snapshot<C>) => string) | undefined
  /** Where it is. Default: where the custom resource is. Elsewhere it cannot have it as its owner. */
  readonly namespace?: string | ((cr: Snapshot<C>) => string) | undefined
  /** What it begins with, from the custom resource: `yamlTemplate(…)`, or an object. */
  readonly mutateWithInitialData: (cr: Snapshot<C>) => InitialData<T>
  /** Makes the custom resource its controlling owner, so that it goes with it, and is pruned. Default true. */
  readonly owner?: boolean | undefined
  /** Take over an object of that name that somebody else has made. Default false: that is an error. */
  readonly adopt?: boolean | undefined
  /**
   * Its kind may be absent from the cluster, as that of another operator: then it is left out, counts as ready, and is made as soon as the CRD is there.
   * `client.isServed(KIND)` tells. Default false: without the kind nothing is done at all.
   */
  readonly optional?: boolean | undefined
  /** Whether it does its work, where the kind itself does not tell. Default: as kstatus has it. */
  ready?(live: Snapshot<T>, cr: Snapshot<C>): boolean | Readiness
  /** What its state says in the custom resource, each time; `live` is undefined while it is not there. Default: nothing but whether it is ready. */
  reflect?(live: Snapshot<T> | undefined, cr: Snapshot<C>): Reflection
  /** Called before it goes, by whatever way; it is held until this succeeds and waits for nothing. */
  finalizer?(release: Release<C, T>): Promise<void> | void
}

export interface MutableOptions<C extends object, T extends object> extends ResourceOptions<C, T> {
  /** Puts the custom resource's values into it. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most have nothing to return.
  mutateWithCR?(object: Editable<T>, cr: Snapshot<C>): { readonly requeueAfter: number } | undefined | void
  /**
   * Which parts count: while these are as wished, nothing is written. Default: every field that is applied.
   * Whatever is chosen, all of it is applied when something is written.
   */
  getHashableRef?(object: Editable<T>, cr: Snapshot<C>): readonly HashablePart[]
  /**
   * What to do about a change of a field that the server does not let change: `true` deletes the object and creates it anew, `Orphan` does so and
   * leaves its dependents (a StatefulSet's pods) alone. Only what the server would accept beside the old one, a full quota included, takes its place.
   * Default false: an error names the field.
   */
  readonly recreate?: boolean | 'Orphan' | undefined
}

export interface ResourceObject<C extends object = object, T extends object = object> {
  readonly kind: Kind<T>
  readonly isMutable: boolean
  readonly options: MutableOptions<C, T>
}

/** One of any kind. */
// biome-ignore lint/suspicious/noExplicitAny: a list of children has many kinds, and each is used with its own alone.
export type AnyResource<C extends object> = ResourceObject<C, any>

/** A child that is created and deleted, and otherwise left alone. @param of the custom resource's kind */
export function resource<C extends object, T extends object>(
  kind: Kind<T>,
  _of: Kind<C>,
  options: ResourceOptions<C, T>,
): ResourceObject<C, T> {
  return { kind, isMutable: false, options }
}

/** A child that is kept as the custom resource wishes it. @param of the custom resource's kind */
export function mutable<C extends object, T extends object>(
  kind: Kind<T>,
  _of: Kind<C>,
  options: MutableOptions<C, T>,
): ResourceObject<C, T> {
  return { kind, isMutable: true, options }
}
