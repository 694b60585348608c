/**
 * Puts credentials on each request, and asks for new ones once when the server refuses them (401: it did not act).
 */
import { messageOf } from '../../shared/errors.ts'
import type { Connection } from './connection.ts'
import { ShipmateError } from '../../shared/errors.ts'
import { Unavailable } from './errors.ts'
import type { Credentials, CredentialsSource } from './kubeconfig.ts'
import type { Request, Send } from './transport.ts'

/** The innermost Send: `connection` with the credentials of the moment. */
export function authenticated(connection: Connection, source: CredentialsSource): Send {
  const once = (request: Request, credentials: Credentials) =>
    connection.send({ ...request, headers: { ...request.headers, ...credentials.headers } }, credentials)

  return async request => {
    const credentials = await ask(source, request)
    const response = await once(request, credentials)
    if (response.status !== 401) return response
    source.refused(credentials)
    return once(request, await ask(source, request))
  }
}

async function ask(source: CredentialsSource, request: Request): Promise<Credentials> {
  try {
    return await source.current()
  } catch (error) {
    if (error instanceof ShipmateError) throw error
    throw new Unavailable('Unavailable', request.target, `no credentials: ${messageOf(error)}`, { mayHaveActed: false, cause: error })
  }
}
