/**
 * A typed client for any kind. What it sends and returns is the JSON on the wire: no field is ever dropped or renamed.
 *
 * Every call takes `signal` and `deadline`; every refusal is a class of errors.ts.
 */
import { errorOf, Unavailable } from './errors.ts'
import { type Applied, apiVersionOf, type Draft, type Kind, type Live, type Ref } from './kind.ts'
import type { Request, Response, Send, Target } from './transport.ts'
import { type Labels, pathOf, queryOf, selectorOf } from './url.ts'
import { decodeWatch, type WatchEvent } from './watch.ts'

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for the whole call, retries and waits between them included. Default 30,000. */
  readonly deadline?: number | undefined
}

export interface Selection {
  /** Default: all namespaces. */
  readonly namespace?: string | undefined
  readonly labels?: string | Labels | undefined
  readonly fields?: string | Labels | undefined
}

export interface ListOptions extends CallOptions, Selection {
  /** Objects a page. Default 500. */
  readonly pageSize?: number | undefined
  /** `'0'`: any version that the server has at hand. Default: the newest. */
  readonly resourceVersion?: string | undefined
}

export interface Page<T extends object> {
  readonly items: Live<T>[]
  readonly resourceVersion: string
  /** Present while there are more pages. */
  readonly continue?: string | undefined
}

export interface WatchOptions extends Selection {
  readonly signal?: AbortSignal | undefined
  /** Begin after this version. Absent: the newest. */
  readonly resourceVersion?: string | undefined
  /** First every object that exists, then a bookmark marked as the end of these. */
  readonly sendInitialEvents?: boolean | undefined
  /** After so many seconds the server ends the watch. Default 290. */
  readonly timeoutSeconds?: number | undefined
  /** Only apiVersion, kind and metadata of each object. */
  readonly metadataOnly?: boolean | undefined
  /** Called when the server has accepted the watch. */
  readonly onOpen?: (() => void) | undefined
  /** Called with each piece that arrives, before it is understood: for a watchdog. */
  readonly onActivity?: (() => void) | undefined
}

export interface WriteOptions extends CallOptions {
  /** Who writes, as in managedFields. Default: the client's. */
  readonly fieldManager?: string | undefined
  /** Everything happens but the write. */
  readonly dryRun?: boolean | undefined
  /** What becomes of fields that the server does not know. The server's default is Warn. */
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict' | undefined
  readonly subresource?: string | undefined
}

export interface ApplyOptions extends WriteOptions {
  /** Take fields over from other managers instead of failing with Conflict. Default true, as a controller must. */
  readonly force?: boolean | undefined
}

export interface DeleteOptions extends CallOptions {
  /** Delete only this very object, at this version: else Conflict. */
  readonly preconditions?:
    | { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined }
    | undefined
  /** What becomes of its dependents. The server's default is Background for most kinds. */
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan' | undefined
  readonly gracePeriodSeconds?: number | undefined
  readonly dryRun?: boolean | undefined
}

/** A patch, by the way it is meant. */
export type Patch =
  | { readonly merge: object }
  | { readonly json: readonly JsonPatchOperation[] }
  | { readonly strategic: object }

export type JsonPatchOperation =
  | { op: 'add' | 'replace' | 'test'; path: string; value: unknown }
  | { op: 'remove'; path: string }
  | { op: 'move' | 'copy'; from: string; path: string }

export interface Scale {
  readonly replicas: number
  readonly observed: number
  /** The label selector of its pods, as a string. */
  readonly selector: string
}

export interface ClientOptions {
  /** Who writes, as in managedFields. Default `shipmate`. */
  readonly fieldManager?: string | undefined
  /** Where namespaced objects without a namespace are. Default `default`. */
  readonly namespace?: string | undefined
}

export class Client {
  readonly fieldManager: string
  readonly namespace: string
  readonly #send: Send

  constructor(send: Send, options: ClientOptions = {}) {
    this.#send = send
    this.fieldManager = options.fieldManager ?? 'shipmate'
    this.namespace = options.namespace ?? 'default'
  }

  /** The same client, writing under another name. */
  as(fieldManager: string): Client {
    return new Client(this.#send, { fieldManager, namespace: this.namespace })
  }

  async get<T extends object>(
    kind: Kind<T>,
    ref: Ref,
    options: CallOptions & { subresource?: string } = {},
  ): Promise<Live<T>> {
    return this.#object(
      kind,
      { verb: 'get', method: 'GET', ref: this.#place(kind, ref), subresource: options.subresource },
      options,
    )
  }

  /** Like get, but undefined where there is none. */
  async find<T extends object>(kind: Kind<T>, ref: Ref, options: CallOptions = {}): Promise<Live<T> | undefined> {
    const request = this.#request(kind, { verb: 'get', method: 'GET', ref: this.#place(kind, ref) }, options)
    const response = await this.#send(request)
    if (response.status === 404) return undefined
    return parsed(request, response)
  }

  /** All objects of a kind, however many pages that takes. */
  async list<T extends object>(kind: Kind<T>, options: ListOptions = {}): Promise<Live<T>[]> {
    const items: Live<T>[] = []
    for await (const page of this.pages(kind, options)) for (const item of page.items) items.push(item)
    return items
  }

  /** The same, page by page, all from one moment. */
  async *pages<T extends object>(kind: Kind<T>, options: ListOptions = {}): AsyncGenerator<Page<T>, void, undefined> {
    let token: string | undefined
    do {
      const page: Page<T> = await this.page(kind, { ...options, continue: token })
      yield page
      token = page.continue
    } while (token)
  }

  async page<T extends object>(
    kind: Kind<T>,
    options: ListOptions & { continue?: string | undefined } = {},
  ): Promise<Page<T>> {
    const query = {
      ...selection(options),
      limit: options.pageSize ?? 500,
      continue: options.continue,
      resourceVersion: options.continue ? undefined : options.resourceVersion,
    }
    const request = this.#request(kind, { verb: 'list', method: 'GET', namespace: options.namespace, query }, options)
    const list = await this.#answer<{
      items?: Live<T>[] | null
      metadata?: { resourceVersion?: string; continue?: string }
    }>(request)
    if (
      !list ||
      typeof list !== 'object' ||
      (list.items !== null && !Array.isArray(list.items)) ||
      !list.metadata?.resourceVersion
    ) {
      throw new Unavailable('Garbled', request.target, 'the answer is not a list', { mayHaveActed: false })
    }
    const apiVersion = apiVersionOf(kind)
    // Items of a list carry neither; watched and read ones do. One shape for all.
    const items = (list.items ?? []).map(item => Object.assign({ apiVersion, kind: kind.kind }, item))
    return { items, resourceVersion: list.metadata.resourceVersion, continue: list.metadata.continue || undefined }
  }

  /** Events as the server sends them. Ends when the server ends it; rejects when the connection fails or the server reports an error. */
  async *watch<T extends object>(
    kind: Kind<T>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    for await (const batch of this.watchBatches(kind, options)) yield* batch
  }

  /** The same, with events that arrived together kept together. */
  async *watchBatches<T extends object>(
    kind: Kind<T>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<T>[], void, undefined> {
    const query = {
      ...selection(options),
      watch: 1,
      allowWatchBookmarks: true,
      resourceVersion: options.resourceVersion,
      sendInitialEvents: options.sendInitialEvents || undefined,
      resourceVersionMatch: options.sendInitialEvents ? 'NotOlderThan' : undefined,
      timeoutSeconds: options.timeoutSeconds ?? 290,
    }
    const plain = this.#request(
      kind,
      { verb: 'watch', method: 'GET', namespace: options.namespace, query },
      { signal: options.signal },
    )
    const accept = options.metadataOnly ? metadataOnly : 'application/json'
    const request: Request = { ...plain, headers: { accept }, stream: true }
    const response = await this.#send(request)
    if (response.status >= 400 || !response.chunks) throw errorOf(request, response)
    options.onOpen?.()
    yield* decodeWatch<T>(request.target, response.chunks, options.onActivity)
  }

  async create<T extends object>(kind: Kind<T>, object: Draft<T>, options: WriteOptions = {}): Promise<Live<T>> {
    const namespace = this.#namespaceOf(kind, object.metadata)
    const call = {
      verb: 'create',
      method: 'POST' as const,
      namespace,
      body: typed(kind, object),
      name: object.metadata.name,
    }
    return this.#write(kind, call, options)
  }

  /** Replaces the whole object; with a resourceVersion in it, only if nobody else did. */
  async update<T extends object>(kind: Kind<T>, object: Draft<T>, options: WriteOptions = {}): Promise<Live<T>> {
    const ref = this.#place(kind, object.metadata as Ref)
    return this.#write(kind, { verb: 'update', method: 'PUT', ref, body: typed(kind, object) }, options)
  }

  async patch<T extends object>(kind: Kind<T>, ref: Ref, patch: Patch, options: WriteOptions = {}): Promise<Live<T>> {
    const [type, body] =
      'merge' in patch
        ? ['application/merge-patch+json', patch.merge]
        : 'json' in patch
          ? ['application/json-patch+json', patch.json]
          : ['application/strategic-merge-patch+json', patch.strategic]
    return this.#write(kind, { verb: 'patch', method: 'PATCH', ref: this.#place(kind, ref), body, type }, options)
  }

  /** Server-side apply: the fields given become ours, those we gave before and not now go. Creates what is not there. */
  async apply<T extends object>(kind: Kind<T>, object: Applied<T>, options: ApplyOptions = {}): Promise<Live<T>> {
    const ref = this.#place(kind, object.metadata as Ref)
    const body = typed(kind, object)
    const query = { force: options.force ?? true }
    return this.#write(
      kind,
      { verb: 'patch', method: 'PATCH', ref, body, type: 'application/apply-patch+yaml', query },
      options,
    )
  }

  /** The object as it was, or is while finalizers hold it; undefined where the server says only that it is gone. NotFound where there is none. */
  async delete<T extends object>(kind: Kind<T>, ref: Ref, options: DeleteOptions = {}): Promise<Live<T> | undefined> {
    const call = { verb: 'delete', method: 'DELETE' as const, ref: this.#place(kind, ref), body: deletion(options) }
    const answer = await this.#object<T>(kind, call, options)
    return (answer as { kind: string }).kind === 'Status' ? undefined : answer
  }

  /** Deletes all that are selected. */
  async deleteCollection(kind: Kind, options: DeleteOptions & Selection = {}): Promise<void> {
    const query = selection(options)
    const namespace = options.namespace
    await this.#object(
      kind,
      { verb: 'deletecollection', method: 'DELETE', namespace, query, body: deletion(options) },
      options,
    )
  }

  /** How many replicas are wished, of anything with a scale subresource. */
  async scale(kind: Kind, ref: Ref, options: CallOptions = {}): Promise<Scale> {
    return scaleOf(await this.get(kind, ref, { ...options, subresource: 'scale' }))
  }

  async setScale(kind: Kind, ref: Ref, replicas: number, options: CallOptions = {}): Promise<Scale> {
    const patch = { merge: { spec: { replicas } } }
    return scaleOf(await this.patch(kind, ref, patch, { ...options, subresource: 'scale' }))
  }

  /** Asks for a pod to go, as far as disruption budgets allow: TooManyRequests where they do not. */
  async evict(ref: Ref, options: DeleteOptions = {}): Promise<void> {
    const pods: Kind = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true }
    const place = this.#place(pods, ref)
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: place, deleteOptions: deletion(options) }
    await this.#write(
      pods,
      { verb: 'create', method: 'POST', ref: place, body },
      { ...options, subresource: 'eviction' },
    )
  }

  /** A token of a service account. */
  async token(
    ref: Ref,
    spec: { audiences?: string[]; expirationSeconds?: number } = {},
    options: CallOptions = {},
  ): Promise<{ token: string; expirationTimestamp: string }> {
    const accounts: Kind<{ status: { token: string; expirationTimestamp: string } }> = {
      ...{ group: '', version: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts', namespaced: true },
    }
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
    const call = { verb: 'create', method: 'POST' as const, ref: this.#place(accounts, ref), body }
    return (await this.#write(accounts, call, { ...options, subresource: 'token' })).status
  }

  /** Any GET that is no resource: discovery, version, health. */
  async raw(
    path: string,
    options: CallOptions & { accept?: string } = {},
  ): Promise<{ text: string; headers: Response['headers'] }> {
    const request: Request = {
      method: 'GET',
      path,
      headers: { accept: options.accept ?? 'application/json', 'accept-encoding': 'gzip' },
      target: { verb: 'get', group: '', resource: '', name: path },
      signal: options.signal,
      deadline: options.deadline,
    }
    const response = await this.#send(request)
    if (response.status >= 400) throw errorOf(request, response)
    return { text: response.text, headers: response.headers }
  }

  /** The text of a subresource as it comes: a container's log. */
  async *text(
    kind: Kind,
    ref: Ref,
    subresource: string,
    query: Parameters<typeof queryOf>[0],
    options: CallOptions = {},
  ): AsyncGenerator<Uint8Array> {
    const call: Call = { verb: 'get', method: 'GET', ref: this.#place(kind, ref), subresource, query }
    const request = { ...this.#request(kind, call, options), stream: true }
    const response = await this.#send(request)
    if (response.status >= 400 || !response.chunks) throw errorOf(request, response)
    yield* response.chunks
  }

  #write<T extends object>(kind: Kind<T>, call: Call, options: WriteOptions): Promise<Live<T>> {
    const query = {
      ...call.query,
      fieldManager: options.fieldManager ?? this.fieldManager,
      fieldValidation: options.fieldValidation,
      dryRun: options.dryRun ? 'All' : undefined,
    }
    return this.#object(kind, { ...call, query, subresource: options.subresource ?? call.subresource }, options)
  }

  #object<T extends object>(kind: Kind<T>, call: Call, options: CallOptions): Promise<Live<T>> {
    return this.#answer(this.#request(kind, call, options))
  }

  async #answer<A>(request: Request): Promise<A> {
    return parsed(request, await this.#send(request))
  }

  #request(kind: Kind, call: Call, options: CallOptions): Request {
    const namespace = call.ref?.namespace ?? call.namespace
    const name = call.ref?.name
    const target: Target = {
      verb: call.verb,
      group: kind.group,
      resource: kind.plural,
      subresource: call.subresource,
      namespace: kind.namespaced ? namespace : undefined,
      name: name ?? call.name,
    }
    const headers: Record<string, string> = { accept: 'application/json' }
    if (call.method === 'GET') headers['accept-encoding'] = 'gzip'
    if (call.body !== undefined) headers['content-type'] = call.type ?? 'application/json'
    return {
      method: call.method,
      path: pathOf(kind, { namespace, name, subresource: call.subresource }) + queryOf(call.query ?? {}),
      headers,
      body: call.body === undefined ? undefined : JSON.stringify(call.body),
      target,
      signal: options.signal,
      deadline: options.deadline,
    }
  }

  #place(kind: Kind, ref: Ref): Ref {
    const name = ref.name ?? ''
    return kind.namespaced ? { name, namespace: ref.namespace ?? this.namespace } : { name }
  }

  #namespaceOf(kind: Kind, at: { namespace?: string | undefined }): string | undefined {
    return kind.namespaced ? (at.namespace ?? this.namespace) : undefined
  }
}

const metadataOnly = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'

interface Call {
  readonly verb: string
  readonly method: Request['method']
  readonly ref?: Ref | undefined
  readonly name?: string | undefined
  readonly namespace?: string | undefined
  readonly subresource?: string | undefined
  readonly query?: Parameters<typeof queryOf>[0] | undefined
  readonly body?: object | undefined
  readonly type?: string | undefined
}

function selection(options: Selection) {
  return { labelSelector: selectorOf(options.labels), fieldSelector: selectorOf(options.fields) }
}

function typed(kind: Kind, object: object): object {
  return { ...object, apiVersion: apiVersionOf(kind), kind: kind.kind }
}

function deletion(options: DeleteOptions): object {
  return {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    preconditions: options.preconditions,
    propagationPolicy: options.propagation,
    gracePeriodSeconds: options.gracePeriodSeconds,
    dryRun: options.dryRun ? ['All'] : undefined,
  }
}

function scaleOf(object: object): Scale {
  const scale = object as { spec?: { replicas?: number }; status?: { replicas?: number; selector?: string } }
  return {
    replicas: scale.spec?.replicas ?? 0,
    observed: scale.status?.replicas ?? 0,
    selector: scale.status?.selector ?? '',
  }
}

function parsed<A>(request: Request, response: Response): A {
  if (response.status >= 400) throw errorOf(request, response)
  try {
    return JSON.parse(response.text) as A
  } catch (error) {
    throw new Unavailable('Garbled', request.target, 'the answer is not JSON', {
      mayHaveActed: request.method !== 'GET',
      cause: error,
    })
  }
}
