/**
 * A call to an application that did not succeed.
 *
 * Guarantee: the message names method, URL, what went wrong and the beginning of the answer; of the URL it has neither query nor user.
 */
import { type Retry, ShipmateError } from '../../../shared/errors.ts'
import type { ErrorCode } from '../../../shared/reasons.ts'

export interface HttpFailure {
  readonly code: ErrorCode
  readonly retry: Retry
  readonly method: string
  /** Without query and user. */
  readonly url: string
  /** What went wrong, in words. */
  readonly why: string
  readonly mayHaveActed: boolean
  readonly status?: number | undefined
  readonly body?: string | undefined
  readonly retryAfter?: number | undefined
  readonly cause?: unknown
}

export class HttpError extends ShipmateError {
  readonly method: string
  readonly url: string
  /** Undefined where no answer came. */
  readonly status: number | undefined
  /** The beginning of the answer. */
  readonly body: string
  /** False: the application certainly did not act. True: it may have. */
  readonly mayHaveActed: boolean
  /** Milliseconds that the application asks to wait. */
  readonly retryAfter: number | undefined

  constructor(failure: HttpFailure) {
    const { code, retry, method, url, why, cause } = failure
    super(code, `${method} ${url}: ${why}`, retry, cause === undefined ? undefined : { cause })
    this.method = method
    this.url = url
    this.status = failure.status
    this.body = failure.body ?? ''
    this.mayHaveActed = failure.mayHaveActed
    this.retryAfter = failure.retryAfter
  }
}

const meanings: Record<number, [ErrorCode, Retry]> = {
  401: ['Unauthorized', 'later'],
  403: ['Forbidden', 'later'],
  404: ['NotFound', 'never'],
  405: ['MethodNotAllowed', 'never'],
  408: ['Unavailable', 'later'],
  // Not `fresh`: nothing that is read from the API server makes it right.
  409: ['Conflict', 'later'],
  422: ['Invalid', 'never'],
  429: ['TooManyRequests', 'later'],
}

/** What a status other than 2xx means, and whether trying again can help. */
export function meaningOf(status: number): [ErrorCode, Retry] {
  return meanings[status] ?? (status >= 500 ? ['Unavailable', 'later'] : ['BadRequest', 'never'])
}
