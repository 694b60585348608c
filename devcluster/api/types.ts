/**
 * The shapes that the parts of the embedded API server share: objects, requests, and the table of resources.
 */
import type { Duplex, Readable, Writable } from 'node:stream'
import type { OwnerReference } from '../../controller/kube/kind.ts'
import type { FieldError } from './problems.ts'
import type { Schema } from './schema/schema.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

export interface Meta {
  name: string
  namespace?: string
  generateName?: string
  uid: string
  resourceVersion: string
  generation?: number
  creationTimestamp: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: string[]
  ownerReferences?: OwnerReference[]
  managedFields?: ManagedFieldsEntry[]
}

export interface ManagedFieldsEntry {
  manager?: string
  operation?: 'Apply' | 'Update'
  apiVersion?: string
  time?: string
  fieldsType?: 'FieldsV1'
  fieldsV1?: Json
  subresource?: string
}

/** Any object as it is on the wire. What is stored is never changed: a change is a new object. */
export interface Obj {
  apiVersion: string
  kind: string
  metadata: Meta
  // biome-ignore lint/suspicious/noExplicitAny: an object's own fields are what its schema says, which only the running server knows.
  [field: string]: any
}

/** Who asks. */
export interface User {
  readonly name: string
  readonly uid?: string | undefined
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined
}

export interface ApiRequest {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: URLSearchParams
  /** In lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
  readonly user: User
  readonly signal: AbortSignal
  /** Told what the caller should know besides the answer. */
  readonly warn?: ((text: string) => void) | undefined
}

export interface ApiResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  /** A stream's pieces are sent as they come; its end is the end of the answer. */
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>
}

/** A request about a resource, taken apart. */
export interface Asked {
  /** As RBAC names it: get, list, watch, create, update, patch, delete, deletecollection. */
  readonly verb: string
  readonly type: ResourceType
  readonly version: ServedVersion
  readonly subresource: string | undefined
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly request: ApiRequest
}

/** One row of the table of resources: a built-in one, or a CustomResourceDefinition's. */
export interface ResourceType {
  readonly group: string
  /** The plural. */
  readonly resource: string
  readonly kind: string
  readonly listKind: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  /** The first is the preferred one. */
  readonly versions: readonly ServedVersion[]
  /** Which of them objects are kept in. */
  readonly storage: string
  readonly strategy: Strategy
  /** Of a CustomResourceDefinition: its uid. */
  readonly custom?: string | undefined
}

export interface ServedVersion {
  readonly version: string
  readonly served: boolean
  readonly schema: Schema
  readonly columns: readonly Column[]
  /** Has `/status`: a write of the object leaves status alone, and the other way round. */
  readonly status: boolean
  readonly scale?: ScalePaths | undefined
  /** Names of the others: `log`, `exec`, `eviction`, `token`, `binding` … */
  readonly subresources: readonly string[]
  /** The text of the Warning header, where the version is deprecated. */
  readonly deprecated?: string | undefined
}

export interface ScalePaths {
  /** As in a CustomResourceDefinition: `.spec.replicas`. */
  readonly spec: string
  readonly status: string
  readonly selector?: string | undefined
}

export interface Column {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  readonly priority: number
  /** The cell of an object. */
  cell(object: Obj): Json
}

/** What is particular to a kind. All of it works on copies that may be changed in place. */
export interface Strategy {
  /** Defaults that the schema's own cannot say. */
  default?(object: Obj): void
  /** What the server sets or clears when an object is made, and when it is changed (by whoever writes: `status` if the write is to that subresource). */
  prepareForCreate?(object: Obj): void
  prepareForUpdate?(object: Obj, old: Obj, subresource: string | undefined): void
  /** What comes of keeping it and reading it back: nobody checks that. */
  settle?(object: Obj): void
  /** What its schema cannot say. */
  validate?(object: Obj, old: Obj | undefined): FieldError[]
  /** The same of a write to its status, where that is checked otherwise. */
  validateStatus?(object: Obj, old: Obj): FieldError[]
  /** Its metadata where it is shown without the rest, if that is not the same. */
  metadataAlone?(metadata: Meta): Meta
  /** Whether metadata.generation counts its changes (to all but metadata and status). */
  readonly hasGeneration: boolean
  /** Fields that a field selector may name, besides metadata.name and metadata.namespace. */
  readonly fields?: Readonly<Record<string, (object: Obj) => string>> | undefined
  /** Seconds that a deleted object stays for somebody to end what it stands for; 0: it goes at once. */
  gracePeriod?(object: Obj, asked: number | undefined): number
  /** How dependents are treated where the deletion does not say. Default `Background`. */
  readonly defaultPropagation?: 'Background' | 'Orphan' | undefined
  /** A finalizer that an object has from the first request to delete it. */
  readonly finalizer?: string | undefined
}

/** What the API server asks of the node that a pod is on. */
export interface PodRuntime {
  logs(pod: PodPlace, options: LogOptions, signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Rejects with an ApiError where the container does not run. */
  exec(pod: PodPlace, options: ExecOptions): Promise<ExecSession>
  /** Joins what runs already: its output from now on, its input where the container has one. Ends with the container. */
  attach(pod: PodPlace, options: Omit<ExecOptions, 'command'>): Promise<ExecSession>
  /** A connection to a port of the pod. */
  connect(pod: PodPlace, port: number): Promise<Duplex>
}

export interface PodPlace {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export interface LogOptions {
  readonly container: string
  readonly follow: boolean
  readonly previous: boolean
  readonly timestamps: boolean
  readonly tailLines?: number | undefined
  readonly limitBytes?: number | undefined
  readonly sinceSeconds?: number | undefined
  readonly sinceTime?: string | undefined
}

export interface ExecOptions {
  readonly container: string
  readonly command: readonly string[]
  readonly stdin: boolean
  readonly tty: boolean
}

export interface ExecSession {
  readonly stdin: Writable | undefined
  readonly stdout: Readable
  /** None with a terminal. */
  readonly stderr: Readable | undefined
  resize(width: number, height: number): void
  /** The exit code; 128 + n for a signal. */
  readonly exit: Promise<number>
  kill(): void
}
