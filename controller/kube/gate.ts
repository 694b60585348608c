/**
 * Lets writes through only while we lead.
 *
 * Guarantee: whether we lead is asked at the moment of sending, of every try. Writes under way when it shuts are abandoned: one that still
 * waits for a connection is never sent. One that has left may yet arrive; that is what resource versions are for.
 */
import { ShipmateError } from '../../shared/errors.ts'
import { describeTarget, type Interceptor, type Request, type Response, type Send, type Target } from './transport.ts'

/** The lease is not held (any more). */
export class NotLeading extends ShipmateError {
  constructor(message: string, options?: ErrorOptions) {
    super('NotLeading', message, 'later', options)
  }
}

export interface GateOptions {
  readonly isLeading: () => boolean
  /** What passes always: requests for the lease itself. */
  readonly passes: (target: Target) => boolean
  /** Why nothing is sent, for the message. */
  readonly why: () => string
}

export interface Gate {
  readonly interceptor: Interceptor
  /** Abandons the writes under way. */
  abandon(why: NotLeading): void
}

export function createGate({ isLeading, passes, why }: GateOptions): Gate {
  const underWay = new Set<AbortController>()

  /** One write, which ends when its caller ends it or the gate does. */
  async function write(next: Send, request: Request): Promise<Response> {
    const control = new AbortController()
    const abort = () => control.abort(request.signal?.reason)
    if (request.signal?.aborted) abort()
    request.signal?.addEventListener('abort', abort, { once: true })
    underWay.add(control)
    try {
      return await next({ ...request, signal: control.signal })
    } catch (error) {
      const { reason } = control.signal
      if (!(reason instanceof NotLeading)) throw error
      throw new NotLeading(`${describeTarget(request.target)}: abandoned, ${reason.message}`, { cause: error })
    } finally {
      underWay.delete(control)
      request.signal?.removeEventListener('abort', abort)
    }
  }

  return {
    interceptor: next => async request => {
      if (request.method === 'GET' || passes(request.target)) return next(request)
      if (isLeading()) return write(next, request)
      throw new NotLeading(`${describeTarget(request.target)}: not sent, ${why()}`)
    },
    abandon(reason) {
      for (const control of underWay) control.abort(reason)
    },
  }
}
