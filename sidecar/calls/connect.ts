/**
 * Why a connection did not come about. Pure.
 */
import { messageOf } from '../../shared/errors.ts'

export type ConnectFailure =
  /** Nobody listens there: the one failure that is an answer. */
  | 'refused'
  | 'timedOut'
  /** The name was not found. */
  | 'dns'
  /** There is no way there. */
  | 'unreachable'

/** Undefined for anything else. A name may stand for several addresses, each of which failed in its own way. */
export function connectFailure(error: Error): ConnectFailure | undefined {
  const errors: NodeJS.ErrnoException[] = error instanceof AggregateError ? error.errors : [error]
  const codes = errors.map(({ code = '' }) => code)
  // One address that has not answered may be where the server is.
  if (codes.includes('ETIMEDOUT')) return 'timedOut'
  if (codes.includes('ECONNREFUSED')) return 'refused'
  if (codes.some(code => /^(ENOTFOUND|ENODATA|ESERVFAIL|EAI_)/.test(code))) return 'dns'
  if (codes.some(code => /^(EHOST|ENET)|^EADDRNOTAVAIL$/.test(code))) return 'unreachable'
  return undefined
}

/** An AggregateError has no message of its own. */
export function connectMessage(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(messageOf).join('; ') : messageOf(error)
}
