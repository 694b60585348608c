/**
 * Tries again what is safe to try again.
 *
 * Guarantee: a write is repeated only when the server certainly did not act on it: it was never sent, or it was turned away at the door
 * (429, 503 with Retry-After). Reads are repeated on any passing fault. Streams are not: whoever reads one knows where to go on. All tries
 * together end by the call's deadline, and none has more time than the first: where a dead connection was all that was wrong, the next try
 * finds another one as soon.
 */
import { type Backoff, delay } from '../../shared/backoff.ts'
import { type Clock, sleep, systemClock } from '../../shared/clock.ts'
import { Aborted, errorOf, retryAfterOf, TooManyRequests, Unavailable } from './errors.ts'
import type { Interceptor, Request, Response } from './transport.ts'

export interface RetryOptions {
  /** Tries in all. Default 5. */
  readonly tries?: number | undefined
  /** Between tries, unless the server says how long. Default 100 ms to 5 s. */
  readonly backoff?: Backoff | undefined
  /** For calls that name none: milliseconds for all tries and the waits between them. Default 30,000. */
  readonly deadline?: number | undefined
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
}

export function retry(options: RetryOptions = {}): Interceptor {
  const {
    tries = 5,
    backoff = { first: 100, longest: 5000 },
    deadline = 30_000,
    clock = systemClock,
    random = Math.random,
  } = options
  return next => async request => {
    if (request.stream) return next(request)
    const end = clock.monotonic() + (request.deadline ?? deadline)
    for (let attempt = 1; ; attempt++) {
      let response: Response | undefined
      let error: unknown
      try {
        response = await next(attempt === 1 ? request : { ...request, left: Math.max(end - clock.monotonic(), 1) })
        if (response.status !== 429 && response.status < 500) return response
        error = errorOf(request, response)
      } catch (thrown) {
        error = thrown
      }
      const asked = response && retryAfterOf(response)
      const wait = asked === undefined ? delay(backoff, attempt, random) : asked + 100 * random()
      // A wait that outlasts the call is the caller's to make.
      if (attempt < tries && isSafe(request, error) && clock.monotonic() + wait < end) {
        try {
          await sleep(clock, wait, request.signal)
        } catch (reason) {
          throw new Aborted(request.target, reason)
        }
      } else if (response) return response
      else throw error
    }
  }
}

/** A refusal of an eviction is a 429 too, but a decision, not a passing fault: a budget forbids it. */
function isSafe(request: Request, error: unknown): boolean {
  if (error instanceof TooManyRequests) return request.target.subresource !== 'eviction'
  if (!(error instanceof Unavailable)) return false
  return request.method === 'GET' || !error.mayHaveActed
}
