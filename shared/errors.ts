/**
 * The root of every error that Shipmate throws: a code from the one list in reasons.ts, and whether trying again can
 * help.
 */
import type { ErrorCode } from './reasons.ts'

/** What a retry of the same call would do: `never` helps, helps `later`, or helps after reading again (`fresh`). */
export type Retry = 'never' | 'later' | 'fresh'

export class ShipmateError extends Error {
  readonly code: ErrorCode
  readonly retry: Retry

  constructor(code: ErrorCode, message: string, retry: Retry, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
    this.retry = retry
  }
}

/** The text of whatever was thrown, for a person. Throws nothing itself. */
export function messageOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message || thrown.name : thrown)
  } catch {
    return typeof thrown
  }
}
