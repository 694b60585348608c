/**
 * What a kind of object is to the client: where it is served, and the TypeScript type of what is there.
 *
 * Types come from @kubernetes/client-node's models, corrected to what is really on the wire: times are strings, and no property is renamed.
 */

/** A kind, built-in or custom. `T` is the shape of its objects: spec, status, data. */
export interface Kind<T extends object = object> {
  /** The API group; empty for the core group. */
  readonly group: string
  readonly version: string
  readonly kind: string
  /** The name in URLs, as in `kubectl api-resources`. */
  readonly plural: string
  readonly namespaced: boolean
  /** Never set: carries the type. */
  readonly shape?: T
}

/** Declares a kind. `plural` defaults to the lower-case kind's, by the rule that Kubernetes' own tools use; `namespaced` to true. */
export function defineKind<T extends object>(kind: {
  group: string
  version: string
  kind: string
  plural?: string
  namespaced?: boolean
}): Kind<T> {
  return { plural: pluralOf(kind.kind.toLowerCase()), namespaced: true, ...kind }
}

/** The shape of a kind's objects: `ShapeOf<typeof Deployment>`. */
export type ShapeOf<K> = K extends Kind<infer T> ? T : never

function pluralOf(singular: string): string {
  if (singular.endsWith('s')) return `${singular}es`
  if (singular.endsWith('y')) return `${singular.slice(0, -1)}ies`
  return `${singular}s`
}

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

export interface ManagedFields {
  manager?: string
  operation?: string
  subresource?: string
  apiVersion?: string
  time?: string
  fieldsType?: string
  fieldsV1?: FieldsV1
}

/** A set of field paths, as server-side apply keeps them: `f:` a field, `k:` an item by key, `v:` an item by value, `.` the thing itself. */
export interface FieldsV1 {
  [path: string]: FieldsV1
}

/** Metadata that a writer may give. */
export interface DraftMeta {
  name?: string | undefined
  generateName?: string | undefined
  namespace?: string | undefined
  labels?: Record<string, string> | undefined
  annotations?: Record<string, string> | undefined
  finalizers?: string[] | undefined
  ownerReferences?: OwnerReference[] | undefined
  uid?: string | undefined
  resourceVersion?: string | undefined
}

/** Metadata of an object that the server has stored. */
export interface LiveMeta extends DraftMeta {
  name: string
  uid: string
  resourceVersion: string
  creationTimestamp: string
  generation?: number
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  managedFields?: ManagedFields[]
}

/** The key that a model's property has on the wire. */
type WireKey<K> = K extends `x_kubernetes_${infer R}` ? `x-kubernetes-${Dashed<R>}` : K extends `_${infer R}` ? R : K
type Dashed<S extends string> = S extends `${infer A}_${infer B}` ? `${A}-${Dashed<B>}` : S

/** What may be left out may also be given as undefined: JSON has neither. */
type Absent<T, K extends keyof T> = object extends Pick<T, K> ? undefined : never

/** A model as it is on the wire. */
export type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer U)[]
    ? Wire<U>[]
    : T extends object
      ? { [K in keyof T as WireKey<K>]: Wire<T[K]> | Absent<T, K> }
      : T

type Body<T> = Omit<Wire<T>, 'apiVersion' | 'kind' | 'metadata'>

/** An object as the server has it. */
export type Live<T extends object = object> = { apiVersion: string; kind: string; metadata: LiveMeta } & Body<T>

/** An object as a writer gives it: the server fills in the rest. */
export type Draft<T extends object = object> = {
  readonly apiVersion?: string | undefined
  readonly kind?: string | undefined
  readonly metadata: Frozen<DraftMeta>
} & Frozen<Body<T>>

/** An object as server-side apply takes it: the fields that the writer cares for, and no others. */
export type Partially<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [K in keyof T]?: Partially<T[K]> | undefined }
    : T
export type Applied<T extends object = object> = {
  readonly apiVersion?: string | undefined
  readonly kind?: string | undefined
  readonly metadata: Frozen<DraftMeta>
} & Partially<Frozen<Body<T>>>

/** An object that cannot be changed: what caches hand out. */
export type Frozen<T> = T extends readonly (infer U)[]
  ? readonly Frozen<U>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T
export type Snapshot<T extends object = object> = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Frozen<LiveMeta>
} & Frozen<Body<T>>

/** Where an object is: anything with a name and, for namespaced kinds, a namespace. */
export interface Ref {
  readonly name: string
  readonly namespace?: string | undefined
}

/** `group/version`, or `version` alone in the core group. */
export function apiVersionOf(kind: Kind): string {
  return kind.group === '' ? kind.version : `${kind.group}/${kind.version}`
}

/** `plural.group`, as RBAC and CRDs name it; the plural alone in the core group. */
export function resourceOf(kind: Kind): string {
  return kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
}

/** A string that is the same for the same kind, whoever declared it. */
export function kindKey(kind: Kind): string {
  return `${kind.group}/${kind.version}/${kind.plural}`
}

/** `namespace/name`, or `name` alone in cluster scope: the key of an object among those of its kind. */
export function keyOf(ref: Ref): string {
  return ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name
}

/** The inverse of keyOf. */
export function refOfKey(key: string): Ref {
  const slash = key.indexOf('/')
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
