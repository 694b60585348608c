/**
 * Puts credentials on each request, and asks for new ones once when the server refuses them (401: it did not act).
 *
 * Guarantee: waiting for credentials (a plugin that hangs) ends by the call's deadline and its signal, too.
 */
import { type Clock, systemClock } from '../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import type { Connection } from './connection.ts'
import { Aborted, Unavailable } from './errors.ts'
import type { Credentials, CredentialsSource } from './kubeconfig.ts'
import { type Request, type Send, timeFor } from './transport.ts'

export interface AuthOptions {
  /** How long calls that name no deadline wait for credentials, in milliseconds. Default 30,000. */
  readonly deadline?: number | undefined
  readonly clock?: Clock | undefined
}

/** The innermost Send: `connection` with the credentials of the moment. */
export function authenticated(connection: Connection, source: CredentialsSource, options: AuthOptions = {}): Send {
  const once = (request: Request, credentials: Credentials) =>
    connection.send({ ...request, headers: { ...request.headers, ...credentials.headers } }, credentials)

  const ask = async (request: Request): Promise<Credentials> => {
    const answer = source.current()
    return answer instanceof Promise ? bounded(answer, request, options) : answer
  }

  return async request => {
    const credentials = await ask(request)
    const response = await once(request, credentials)
    if (response.status !== 401) return response
    source.refused(credentials)
    return once(request, await ask(request))
  }
}

function bounded(answer: Promise<Credentials>, request: Request, options: AuthOptions): Promise<Credentials> {
  const { target, signal } = request
  const deadline = timeFor(request, options.deadline ?? 30_000)
  const { clock = systemClock } = options
  return new Promise((resolve, reject) => {
    const abort = () => fail(new Aborted(target, signal?.reason))
    if (signal?.aborted) return reject(new Aborted(target, signal.reason))
    const timer = clock.after(deadline, () =>
      fail(
        new Unavailable('DeadlineExceeded', target, `no credentials within ${Math.round(deadline)} ms`, {
          mayHaveActed: false,
        }),
      ),
    )
    signal?.addEventListener('abort', abort, { once: true })
    function settle() {
      timer.cancel()
      signal?.removeEventListener('abort', abort)
    }
    function fail(error: unknown) {
      settle()
      reject(
        error instanceof ShipmateError
          ? error
          : new Unavailable('Unavailable', target, `no credentials: ${messageOf(error)}`, {
              mayHaveActed: false,
              cause: error,
            }),
      )
    }
    answer.then(credentials => {
      settle()
      resolve(credentials)
    }, fail)
  })
}
