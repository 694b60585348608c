/**
 * How a reconciliation ends, and what follows from it. Pure.
 */
import { inspect } from 'node:util'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import { TooManyRequests, Unavailable } from '../kube/errors.ts'

/**
 * What a reconcile function returns: nothing, when it is done until something happens; or when to come back at the
 * latest.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement is one that is done.
export type Result = void | { readonly requeueAfter: number }

/** Trying again cannot help until the object changes: it is not retried. */
export class TerminalError extends ShipmateError {
  constructor(message: string, options?: ErrorOptions) {
    super('Terminal', message, 'never', options)
  }
}

/** Failed, and is to be tried again after so many milliseconds: who throws it keeps the growing delay itself. `cause` is what failed. */
export class RetryAfter extends ShipmateError {
  readonly after: number

  constructor(cause: unknown, after: number) {
    super(cause instanceof ShipmateError ? cause.code : 'Failed', messageOf(cause), 'later', { cause })
    this.after = after
  }
}

export type Outcome =
  | { readonly is: 'success' }
  | { readonly is: 'comeBack'; readonly after: number }
  /** Somebody else was faster: read again, decide again. No error. */
  | { readonly is: 'outdated'; readonly error: ShipmateError }
  | { readonly is: 'failed'; readonly error: unknown; readonly after?: number | undefined; readonly panic: boolean }
  /** Failed, and says itself when to try again. */
  | { readonly is: 'throttled'; readonly error: unknown; readonly after: number; readonly panic: boolean }
  | { readonly is: 'terminal'; readonly error: TerminalError }
  /** The work was called off: the process stops, or no longer leads. */
  | { readonly is: 'cancelled' }

export function outcomeOf(result: Result): Outcome {
  if (result === undefined || result === null) return { is: 'success' }
  const after = result.requeueAfter
  if (typeof after !== 'number' || !(after >= 0)) {
    return outcomeOfError(
      new TypeError(`requeueAfter is ${inspect(after, { depth: 0 })}; it must be milliseconds, 0 or more`),
      false,
    )
  }
  return Number.isFinite(after) ? { is: 'comeBack', after } : { is: 'success' }
}

export function outcomeOfError(error: unknown, cancelled: boolean): Outcome {
  if (error instanceof TerminalError) return { is: 'terminal', error }
  if (error instanceof RetryAfter)
    return { is: 'throttled', error: error.cause, after: error.after, panic: isPanic(error.cause) }
  if (error instanceof ShipmateError) {
    if (error.code === 'NotLeading' || (cancelled && error.code === 'Aborted')) return { is: 'cancelled' }
    if (error.retry === 'fresh') return { is: 'outdated', error }
    const after = error instanceof TooManyRequests || error instanceof Unavailable ? error.retryAfter : undefined
    return { is: 'failed', error, after, panic: false }
  }
  if (cancelled) return { is: 'cancelled' }
  return { is: 'failed', error, panic: isPanic(error) }
}

/** The program is wrong, not the world: what the language itself throws, or what is no error at all. */
function isPanic(error: unknown): boolean {
  if (error instanceof ShipmateError) return false
  if (!(error instanceof Error)) return true
  // The language names no cause; `fetch` throws a TypeError that does, when the network fails.
  if (error.cause !== undefined) return false
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError
}
