/**
 * The API server as one function from request to answer. `listen.ts` puts HTTPS around it, `send.ts` a client of the same process.
 */

import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { type Clock, systemClock, timeOf } from '../../shared/clock.ts'
import { discovery } from './documents/discovery.ts'
import { tableOf } from './documents/table.ts'
import { metadataOf } from './requests/answer.ts'
import type { Attributes, Context, Hooks } from './requests/context.ts'
import { handle } from './requests/handle.ts'
import { lasting } from './requests/namespaces.ts'
import { createResources, type Resources } from './resources/resources.ts'
import { createStore, type Store } from './store/store.ts'
import { createTokens, type Tokens } from './tokens.ts'
import type { ApiRequest, ApiResponse, Json, PodRuntime, User } from './types.ts'

export interface ApiOptions extends Partial<Omit<Hooks, 'routes'>> {
  /** The SQLite file that all is kept in. Default: memory alone. */
  readonly file?: string | undefined
  /** Changes that are remembered of each resource. Default 10,000. */
  readonly history?: number | undefined
  /** Default: all built-in ones. */
  readonly resources?: Resources | undefined
  readonly routes?: Hooks['routes'] | undefined
  readonly clock?: Clock | undefined
  /** Told what went wrong inside. Default: nobody is. */
  readonly onError?: ((error: unknown) => void) | undefined
}

/** A request that was answered: who did what, for whoever wants to know. */
export interface Answered extends Attributes {
  readonly user: User
  readonly code: number
  readonly request: ApiRequest
  /** When it came, in ms since the epoch. */
  readonly received: number
}

export interface Api extends AsyncDisposable {
  handle(request: ApiRequest): Promise<ApiResponse>
  /** Takes over a connection that asks for a WebSocket: exec, attach, portforward. */
  upgrade(
    request: ApiRequest,
    incoming: import('node:http').IncomingMessage,
    socket: Duplex,
    head: Buffer,
  ): Promise<void>
  readonly resources: Resources
  readonly store: Store
  /** By the name of the node. */
  readonly runtimes: Map<string, PodRuntime>
  readonly hooks: Hooks
  readonly tokens: Tokens
  readonly clock: Clock
  /** Calls back after every answer; answers how to end that. */
  onRequest(listener: (answered: Answered) => void): () => void
  /** Ends every stream. */
  close(): Promise<void>
}

export function createApi(options: ApiOptions = {}): Api {
  const { file, history, clock = systemClock, onError = () => {} } = options
  const store = createStore({ file, history })
  const resources = options.resources ?? createResources()
  const listeners = new Set<(answered: Answered) => void>()
  const closing = new AbortController()
  const hooks: Hooks = { ...hooksOf(options), routes: [...(options.routes ?? []), ...documents(resources)] }
  const runtimes = new Map<string, PodRuntime>()
  const tokens = createTokens(store)
  const context: Context = { store, resources, runtimes, hooks, tokens, clock, closing: closing.signal, onError }
  makeNamespaces(store, clock)

  async function close(): Promise<void> {
    if (closing.signal.aborted) return
    closing.abort()
    store.close()
  }
  return {
    store,
    resources,
    runtimes,
    hooks,
    tokens,
    clock,
    async handle(request) {
      const received = clock.now()
      const { response, attributes } = await handle(context, request)
      for (const listener of listeners)
        listener({ ...attributes, user: request.user, code: response.status, request, received })
      return response
    },
    async upgrade(request, incoming, socket, head) {
      const { upgrade } = await import('./requests/subresources/upgrade.ts')
      await upgrade(context, request, incoming, socket, head)
    },
    onRequest(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

function hooksOf({ authorize, mutate, admit, convert, table }: ApiOptions): Omit<Hooks, 'routes'> {
  return {
    authorize,
    mutate,
    admit,
    convert,
    table:
      table ??
      ((objects, asked, metadata, withColumns) =>
        tableOf(objects, asked.version, {
          metadataOf: object => metadataOf(object, asked),
          includeObject: asked.request.query.get('includeObject') ?? undefined,
          headless: !withColumns,
          metadata,
        }) as unknown as Json),
  }
}

/** Discovery, and OpenAPI once somebody asks for it. */
function documents(resources: Resources): Hooks['routes'] {
  const discover = discovery(resources)
  let describe: ((request: ApiRequest) => ApiResponse | undefined) | undefined
  return [
    async request => discover(request),
    async request => {
      if (!request.path.startsWith('/openapi')) return undefined
      describe ??= (await import('./documents/openapi.ts')).openapi(resources)
      return describe(request)
    },
  ]
}

function makeNamespaces(store: Store, clock: Clock): void {
  for (const name of [...lasting, 'kube-node-lease']) {
    if (store.get('/namespaces', undefined, name)) continue
    const object = {
      kind: 'Namespace',
      apiVersion: 'v1',
      metadata: {
        name,
        uid: randomUUID(),
        resourceVersion: '',
        creationTimestamp: timeOf(clock.now()),
        labels: { 'kubernetes.io/metadata.name': name },
      },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    }
    store.write('/namespaces', object, undefined)
  }
}
