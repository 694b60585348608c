/**
 * One request and its answer on a pool of connections, bounded in time and size. Follows no redirect.
 *
 * Guarantee: it settles by its deadline or its signal, with an answer, whatever its status, or an HttpError that says whether the application may have acted.
 */
import { type Dispatcher, errors } from 'undici'
import type { Clock, Timer } from '../../../shared/clock.ts'
import { messageOf } from '../../../shared/errors.ts'
import { HttpError, type HttpFailure } from './http-error.ts'

export interface Call {
  readonly origin: string
  /** Path and query. */
  readonly path: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | undefined
  readonly signal: AbortSignal | undefined
  /** Milliseconds. */
  readonly deadline: number
  /** Bytes. */
  readonly maxBody: number
  /** For messages. */
  readonly url: string
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** So much is read of an answer that is none of success. */
const mostOfRefusal = 16 * 1024

export function exchange(pool: Dispatcher, call: Call, clock: Clock): Promise<HttpAnswer> {
  const { method, url, signal, deadline } = call
  return new Promise((resolve, reject) => {
    let control: Dispatcher.DispatchController | undefined
    let isOver = false
    let status = 0
    let headers: HttpAnswer['headers'] = {}
    let timer: Timer | undefined
    const body: Buffer[] = []
    let size = 0

    const finish = (settle: () => void) => {
      if (isOver) return
      isOver = true
      timer?.cancel()
      signal?.removeEventListener('abort', abort)
      settle()
    }
    const error = (failure: Pick<HttpFailure, 'code' | 'retry' | 'why' | 'cause'>) =>
      new HttpError({ method, url, mayHaveActed: control !== undefined, ...failure })
    const end = (reason: HttpError) => {
      finish(() => reject(reason))
      control?.abort(reason)
    }
    const answer = () => finish(() => resolve({ status, headers, text: new TextDecoder().decode(Buffer.concat(body)) }))
    const abort = () => end(error({ code: 'Aborted', retry: 'never', why: 'no longer wanted', cause: signal?.reason }))
    if (signal?.aborted) return abort()
    signal?.addEventListener('abort', abort, { once: true })
    const late = `no complete answer within ${Math.round(deadline)} ms`
    timer = clock.after(deadline, () => end(error({ code: 'DeadlineExceeded', retry: 'later', why: late })))

    pool.dispatch(
      { origin: call.origin, path: call.path, method, headers: call.headers, body: call.body ?? null },
      {
        onRequestStart(controller) {
          if (isOver) return controller.abort(new Error('the call is over'))
          control = controller
        },
        onResponseStart(_controller, code, received) {
          // A hint that comes before the answer.
          if (code < 200) return
          status = code
          headers = received
        },
        onResponseData(controller, chunk) {
          const isSuccess = status < 300
          const most = isSuccess ? call.maxBody : mostOfRefusal
          body.push(chunk.subarray(0, most - size))
          size += chunk.length
          if (size <= most) return
          if (isSuccess) {
            const why = `the answer is longer than ${most} bytes`
            return end(error({ code: 'Garbled', retry: 'never', why }))
          }
          answer()
          controller.abort(new Error('enough was read'))
        },
        onResponseEnd: answer,
        onResponseError: (_controller, cause) => finish(() => reject(error(failureOf(cause)))),
      },
    )
  })
}

function failureOf(cause: Error): Pick<HttpFailure, 'code' | 'retry' | 'why' | 'cause'> {
  const { code = '' } = cause as NodeJS.ErrnoException
  const words = messageOf(cause)
  const why = code && !words.includes(code) ? `${words} (${code})` : words
  if (cause instanceof errors.InvalidArgumentError) return { code: 'Misuse', retry: 'never', why, cause }
  if (cause instanceof errors.HTTPParserError || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH')
    return { code: 'Garbled', retry: 'later', why, cause }
  // A certificate that is not accepted will not be in a second either.
  const isUntrusted = /CERT|ERR_TLS|ERR_SSL|UNABLE_TO/.test(code)
  return { code: 'Unavailable', retry: isUntrusted ? 'never' : 'later', why, cause }
}
