/**
 * A WebSocket to a subresource of a pod, with the credentials, certificates and proxy of every other call.
 *
 * Guarantees: a refusal at the door is a class of errors.ts, with the server's words; refused credentials are asked for
 * anew once; opening it ends by its deadline or its signal, and leaves nothing behind when it fails.
 */
import type { IncomingMessage } from 'node:http'
import type { connect as connectTcp, Socket } from 'node:net'
import { WebSocket } from 'ws'
import { systemClock } from '../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import { abortError, Channels, type ChannelsOptions } from './channels.ts'
import { dial } from './dial.ts'
import { errorOf, Forbidden, type KubeError, Unauthorized, Unavailable } from './errors.ts'
import type { Ref } from './kind.ts'
import { Pod } from './kinds.ts'
import type { Credentials, CredentialsSource } from './kubeconfig.ts'
import type { Response, Target } from './transport.ts'
import { pathOf } from './url.ts'

export interface OpenOptions extends ChannelsOptions {
  /** The subresource's parameters; one may stand several times. */
  readonly query: URLSearchParams
  /** Subprotocols, the one we like best first. */
  readonly protocols: readonly string[]
  /** Milliseconds until the server must have agreed. Default 30,000. */
  readonly openDeadline?: number | undefined
}

/** Opens a subresource of a pod. Without a namespace in `ref`, the pod is in that of the credentials. */
export async function openChannels(
  source: CredentialsSource,
  ref: Ref,
  subresource: string,
  options: OpenOptions,
): Promise<Channels> {
  const { signal, clock = systemClock, openDeadline = 30_000 } = options
  const asked = podTarget(ref, subresource)
  const stop = new AbortController()
  const abort = () => stop.abort(abortError(asked, signal))
  const late = () => stop.abort(failure('DeadlineExceeded', asked, `not open within ${openDeadline} ms`))
  const timer = clock.after(openDeadline, late)
  signal?.addEventListener('abort', abort, { once: true })
  if (signal?.aborted) abort()

  async function open(credentials: Credentials): Promise<Channels> {
    const target = { ...asked, namespace: ref.namespace ?? credentials.namespace }
    const path = `${pathOf(Pod, target)}?${options.query}`
    return upgrade(await dial(credentials, target, stop.signal), credentials, path, target, options, stop.signal)
  }
  try {
    const credentials = await ask(source, asked, stop.signal)
    try {
      return await open(credentials)
    } catch (error) {
      if (!(error instanceof Unauthorized)) throw error
      source.refused(credentials)
      return await open(await ask(source, asked, stop.signal))
    }
  } finally {
    timer.cancel()
    signal?.removeEventListener('abort', abort)
  }
}

/** What an error is about. The verb is RBAC's: every WebSocket begins as a GET. */
export function podTarget(ref: Ref, subresource: string): Target {
  return { verb: 'get', group: Pod.group, resource: Pod.plural, subresource, namespace: ref.namespace, name: ref.name }
}

/** The credentials of the moment. A plugin that is asked for them may take its time: leaving does not wait for it. */
function ask(source: CredentialsSource, target: Target, stop: AbortSignal): Promise<Credentials> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(stop.reason)
    if (stop.aborted) return abort()
    stop.addEventListener('abort', abort, { once: true })
    const done = () => stop.removeEventListener('abort', abort)
    Promise.resolve(source.current())
      .then(resolve, cause => {
        if (cause instanceof ShipmateError) return reject(cause)
        reject(
          new Unavailable('Unavailable', target, `no credentials: ${messageOf(cause)}`, { mayHaveActed: false, cause }),
        )
      })
      .finally(done)
  })
}

/** The WebSocket's handshake on a connection that stands. */
function upgrade(
  socket: Socket,
  credentials: Credentials,
  path: string,
  target: Target,
  options: OpenOptions,
  stop: AbortSignal,
): Promise<Channels> {
  return new Promise((resolve, reject) => {
    const url = new URL(credentials.server + path)
    url.protocol = url.protocol === 'http:' ? 'ws:' : 'wss:'
    const websocket = new WebSocket(url, [...options.protocols], {
      createConnection: (() => socket) as typeof connectTcp,
      headers: { 'user-agent': `shipmate (${process.platform}/${process.arch})`, ...credentials.headers },
      perMessageDeflate: false,
      maxPayload: 16 << 20,
    })
    const fail = (error: Error) => {
      stop.removeEventListener('abort', abort)
      reject(error)
      websocket.terminate()
      socket.destroy()
    }
    const abort = () => fail(stop.reason)
    stop.addEventListener('abort', abort, { once: true })
    websocket.on('error', error => {
      // Errors of the network have a code, those of the handshake have none.
      const code = 'code' in error ? 'Unavailable' : 'Garbled'
      fail(failure(code, target, `the WebSocket was not opened: ${messageOf(error)}`, error))
    })
    websocket.on('unexpected-response', async (_request, answer) => {
      const status = answer.statusCode ?? 0
      const text = await textOf(answer)
      if (status < 400) return fail(failure('Garbled', target, `HTTP status ${status} instead of a WebSocket`))
      fail(refusal(target, { status, headers: answer.headers, text }))
    })
    websocket.on('open', () => {
      stop.removeEventListener('abort', abort)
      websocket.removeAllListeners()
      resolve(new Channels(websocket, target, options))
    })
  })
}

function failure(code: 'Unavailable' | 'DeadlineExceeded' | 'Garbled', target: Target, why: string, cause?: unknown) {
  return new Unavailable(code, target, why, { mayHaveActed: true, cause })
}

/**
 * The error for an answer that is no WebSocket. The server asks for the verb `get`, newer ones for `create` as well, of which
 * they say no more than "is forbidden": the missing rule is named all the same.
 */
function refusal(target: Target, response: Response): KubeError | Unavailable {
  const error = errorOf({ method: 'GET', path: '', target }, response)
  if (!(error instanceof Forbidden)) return error
  const said = error.answer.message ?? ''
  const isMute = /is forbidden:\s*$/.test(said)
  const verb = isMute ? 'create' : / cannot (\w+) resource/.exec(said)?.[1]
  if (verb === undefined) return error
  const words = `the user cannot create resource "${target.resource}/${target.subresource}"`
  return new Forbidden(
    error.status,
    { ...target, verb },
    isMute ? { ...error.answer, message: `${said.trim()} ${words}` } : error.answer,
  )
}

/** The beginning of an answer, which is all there is but for a page of some proxy's. */
async function textOf(answer: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      pieces.push(piece)
      length += piece.length
      if (length > 64 << 10) break
    }
  } catch {
    // Cut short: what came says enough, and the status everything.
  }
  return Buffer.concat(pieces).toString()
}
