/**
 * What every request is answered with: the store, the table of resources, and the parts that are put in from outside.
 */
import type { Clock } from '../../../shared/clock.ts'
import type { Resources } from '../resources/resources.ts'
import type { Store } from '../store/store.ts'
import type { Tokens } from '../tokens.ts'
import type { ApiRequest, ApiResponse, Asked, Json, Obj, PodRuntime, ResourceType, User } from '../types.ts'

/** What RBAC decides about. `resource` is undefined for a path that is no resource. */
export interface Attributes {
  readonly verb: string
  readonly group: string
  readonly version: string
  readonly resource: string | undefined
  readonly subresource: string | undefined
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly path: string
}

/** Metadata of a list. */
export interface ListMeta {
  resourceVersion?: string
  continue?: string
  remainingItemCount?: number
}

export interface Hooks {
  /** Whether somebody may. Default: everybody may everything. */
  authorize?: ((attributes: Attributes, user: User) => Promise<{ allowed: boolean; reason: string }>) | undefined
  /** Mutating admission; answers the object as it is to be. `old` is undefined for what is new. */
  mutate?: ((object: Obj, old: Obj | undefined, asked: Asked) => Promise<Obj>) | undefined
  /** Validating admission; throws an ApiError. `object` is undefined for a deletion. */
  admit?: ((object: Obj | undefined, old: Obj | undefined, asked: Asked) => Promise<void>) | undefined
  /** Objects in another version. Default: their apiVersion is changed and nothing else. */
  convert?: ((objects: readonly Obj[], type: ResourceType, toVersion: string) => Promise<readonly Obj[]>) | undefined
  /** A Table of objects. */
  table?: ((objects: readonly Obj[], asked: Asked, metadata: ListMeta, withColumns: boolean) => Json) | undefined
  /** Asked first, for documents and the like. */
  readonly routes: ((request: ApiRequest) => Promise<ApiResponse | undefined>)[]
}

export interface Context {
  readonly store: Store
  readonly resources: Resources
  /** By the name of the node. */
  readonly runtimes: Map<string, PodRuntime>
  readonly hooks: Hooks
  readonly tokens: Tokens
  readonly clock: Clock
  /** Ends every stream. */
  readonly closing: AbortSignal
  /** Told what nobody foresaw. */
  readonly onError: (error: unknown) => void
}

/** Where objects are kept. Two resources that are one have one place. */
export function shelfOf({ group, resource }: { group: string; resource: string }): string {
  return group === 'events.k8s.io' && resource === 'events' ? '/events' : `${group}/${resource}`
}

export const apiVersionOf = (group: string, version: string) => (group === '' ? version : `${group}/${version}`)
