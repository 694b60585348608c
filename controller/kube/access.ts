/**
 * A cluster, ready to be asked: connection, credentials, retries and client put together.
 */
import type { Clock } from '../../shared/clock.ts'
import { authenticated } from './auth.ts'
import { Client } from './client.ts'
import { type Connection, type ConnectionOptions, createConnection } from './connection.ts'
import { type CredentialsSource, credentialsFrom, type KubeConfigOptions } from './kubeconfig.ts'
import { type RetryOptions, retry } from './retry.ts'
import { type Interceptor, intercept, type Send } from './transport.ts'

export interface AccessOptions {
  /** In managedFields and the user agent. Default `shipmate`. */
  readonly name?: string | undefined
  /** Which cluster, as whom. Default: `KUBECONFIG`, `~/.kube/config`, then the pod's service account. */
  readonly kubeconfig?: KubeConfigOptions | undefined
  readonly connection?: ConnectionOptions | undefined
  readonly retry?: RetryOptions | undefined
  /** Around each try of a request, outermost first: metrics, tracing. */
  readonly interceptors?: readonly Interceptor[] | undefined
  readonly clock?: Clock | undefined
  /** From 0 to 1, for the jitter of delays. */
  readonly random?: (() => number) | undefined
}

export interface Access {
  readonly client: Client
  /** Host and port of the server. */
  readonly host: string
  /** For what is no exchange of messages: `exec`, `portForward`. */
  readonly credentials: CredentialsSource
  /** A client with more interceptors around each try, inside the others. */
  clientWith(...interceptors: Interceptor[]): Client
  /** A client with a connection of its own, so that its calls never queue behind others: for the lease. */
  clientAside(): Client
  /** Ends every call under way and closes every connection. */
  close(): Promise<void>
}

export function connect(options: AccessOptions = {}): Access {
  const credentials = credentialsFrom({ clock: options.clock, ...options.kubeconfig })
  const config = credentials.kubeConfig()
  const namespace = config.getContextObject(config.getCurrentContext())?.namespace || 'default'
  const connections: Connection[] = []
  const over = (more: ConnectionOptions = {}) => {
    const connection = createConnection({ clock: options.clock, ...options.connection, ...more })
    connections.push(connection)
    const auth = { clock: options.clock, deadline: options.connection?.deadline }
    return clients(authenticated(connection, credentials, auth), namespace, options)
  }
  const clientWith = over()
  return {
    client: clientWith(),
    host: new URL(config.getCurrentCluster()?.server ?? 'http://localhost').host,
    credentials,
    clientWith,
    clientAside: () => over({ connections: 1 })(),
    close: async () => void (await Promise.all(connections.map(connection => connection.close()))),
  }
}

/** The same through a Send of one's own instead of a connection: a simulated server, a recording. */
export function connectThrough(send: Send, options: AccessOptions = {}): Omit<Access, 'credentials'> {
  const clientWith = clients(send, 'default', options)
  return { client: clientWith(), host: 'localhost', clientWith, clientAside: clientWith, close: async () => undefined }
}

function clients(send: Send, namespace: string, options: AccessOptions): Access['clientWith'] {
  const { name = 'shipmate', clock, interceptors = [] } = options
  return (...inner) => {
    const around = [
      retry({ clock, random: options.random, deadline: options.connection?.deadline, ...options.retry }),
      ...interceptors,
      userAgent(name),
      ...inner,
    ]
    return new Client(intercept(send, ...around), { fieldManager: name, namespace })
  }
}

function userAgent(name: string): Interceptor {
  const agent = `${name} (${process.platform}/${process.arch}) shipmate`
  return next => request => next({ ...request, headers: { ...request.headers, 'user-agent': agent } })
}
