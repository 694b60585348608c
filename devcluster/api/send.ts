/**
 * A client's way to the API server in the same process: no sockets, no TLS, no copies but the text itself.
 */
import { Aborted, Unavailable } from '../../controller/kube/errors.ts'
import type { Request, Response, Send } from '../../controller/kube/transport.ts'
import type { Api } from './server.ts'
import type { ApiRequest, ApiResponse, User } from './types.ts'

/** May everything. */
export const admin: User = { name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] }

export function sendTo(api: Api, user: User = admin): Send {
  return async request => {
    const { signal, target } = request
    if (signal?.aborted) throw new Aborted(target, signal.reason)
    const stop = new AbortController()
    const abort = () => stop.abort(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    const done = () => signal?.removeEventListener('abort', abort)
    try {
      const response = await api.handle(toApi(request, user, stop.signal))
      if (signal?.aborted) throw new Aborted(target, signal.reason)
      if (typeof response.body === 'string' || response.body instanceof Uint8Array) {
        done()
        return whole(request, response)
      }
      if (!request.stream || response.status >= 400) return { ...head(response), text: await textOf(response) }
      return {
        ...head(response),
        text: '',
        chunks: chunksOf(response.body, stop, done, () => new Aborted(target, signal?.reason), signal),
      }
    } catch (error) {
      done()
      if (error instanceof Aborted) throw error
      throw new Unavailable('Unavailable', target, (error as Error).message, { mayHaveActed: true, cause: error })
    }
  }
}

function toApi({ method, path, headers = {}, body }: Request, user: User, signal: AbortSignal): ApiRequest {
  const at = path.indexOf('?')
  return {
    method,
    path: at < 0 ? path : path.slice(0, at),
    query: new URLSearchParams(at < 0 ? '' : path.slice(at + 1)),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    body: body === undefined ? new Uint8Array() : Buffer.from(body),
    user,
    signal,
  }
}

const head = ({ status, headers }: ApiResponse) => ({ status, headers })

function whole(request: Request, response: ApiResponse): Response {
  const text = response.body.toString()
  if (!request.stream || response.status >= 400) return { ...head(response), text }
  const once = (async function* () {
    yield Buffer.from(text)
  })()
  return { ...head(response), text: '', chunks: once }
}

async function textOf({ body }: ApiResponse): Promise<string> {
  let text = ''
  for await (const piece of body as AsyncIterable<string | Uint8Array>) text += piece.toString()
  return text
}

async function* chunksOf(
  body: AsyncIterable<string | Uint8Array>,
  stop: AbortController,
  done: () => void,
  aborted: () => Aborted,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const piece of body) yield typeof piece === 'string' ? Buffer.from(piece) : piece
    // An abort ends the body as any end does: whoever reads learns the difference here.
    if (signal?.aborted) throw aborted()
  } finally {
    done()
    stop.abort()
  }
}
