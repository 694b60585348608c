/**
 * One exchange with the API server, as a function. Auth, retry, metrics and tracing are functions around it.
 *
 * Guarantee: a Send settles with the server's answer, whatever its status, or rejects with a ShipmateError; never anything else.
 */

/** What a request is about: for error messages, metrics and spans; the server never sees it. */
export interface Target {
  /** The verb as RBAC names it: get, list, watch, create, update, patch, delete, deletecollection. */
  readonly verb: string
  readonly group: string
  /** The plural; empty for a URL that is no resource (discovery, health). */
  readonly resource: string
  readonly subresource?: string | undefined
  readonly namespace?: string | undefined
  readonly name?: string | undefined
}

export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path and query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | undefined
  readonly target: Target
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for the whole exchange; for a stream, until its first byte may come (its headers). Default 30 s. */
  readonly deadline?: number | undefined
  /** Milliseconds that are left of the call whose second try, or a later one, this is: it ends by then, too. */
  readonly left?: number | undefined
  /** The body is handed over piece by piece as it comes, on a connection of its own. */
  readonly stream?: boolean | undefined
}

export interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The whole body; empty for a stream with a status below 400. */
  readonly text: string
  /** The body of a stream, as it comes. Leaving the loop closes the connection. */
  readonly chunks?: AsyncIterable<Uint8Array>
}

export type Send = (request: Request) => Promise<Response>
export type Interceptor = (next: Send) => Send

/** Milliseconds that an exchange has. @param own where the call names no deadline */
export function timeFor({ deadline, left }: Request, own: number): number {
  return Math.min(deadline ?? own, left ?? Number.POSITIVE_INFINITY)
}

/** Puts interceptors around `send`; the first is the outermost. */
export function intercept(send: Send, ...interceptors: Interceptor[]): Send {
  return interceptors.reduceRight((next, interceptor) => interceptor(next), send)
}

/** `list pods in namespace x`, for messages. */
export function describeTarget(target: Target): string {
  const resource =
    target.resource === '' ? 'the server' : `${target.resource}${target.group === '' ? '' : `.${target.group}`}`
  const part = target.subresource ? `/${target.subresource}` : ''
  const name = target.name ? ` ${target.name}` : ''
  const where = target.namespace ? ` in namespace ${target.namespace}` : ''
  return `${target.verb} ${resource}${part}${name}${where}`
}
