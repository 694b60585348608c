/**
 * What the controller shows to sidecars, and whom it believes.
 */
import { createSecureContext, type SecureContext } from 'node:tls'

export interface AgentCredentials {
  /** The controller's certificate and its key, PEM. */
  readonly cert: string
  readonly key: string
  /** The authorities that sign sidecars' certificates, PEM; two while they are being replaced. */
  readonly ca: readonly string[]
}

export interface AgentCredentialsSource {
  /** Those of the moment; undefined while there are none. Equal ones are the same object. */
  current(): AgentCredentials | undefined
  /** Calls with each change; answers how to stop. */
  onChange(changed: () => void): () => void
}

const contexts = new WeakMap<AgentCredentials, SecureContext>()

/** One for all connections with the same credentials: it is most of what a connection would take. Throws if they are no use. */
export function contextOf(credentials: AgentCredentials): SecureContext {
  let context = contexts.get(credentials)
  if (!context) {
    const { cert, key, ca } = credentials
    context = createSecureContext({ cert, key, ca: [...ca], minVersion: 'TLSv1.3' })
    contexts.set(credentials, context)
  }
  return context
}
