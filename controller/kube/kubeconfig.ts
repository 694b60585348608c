/**
 * Who we are and where the server is, from a kubeconfig or the pod's service account.
 *
 * KubeConfig of @kubernetes/client-node reads it: contexts, exec plugins, OIDC, token files, in-cluster. It is asked again every minute,
 * and at once when the server answers 401, so that rotated tokens and certificates are taken up without a restart.
 */
import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import type { KubeConfig } from '@kubernetes/client-node/dist/config.js'
import { type Clock, systemClock } from '../../shared/clock.ts'
import { ShipmateError } from '../../shared/errors.ts'
import { type ConfigFileOptions, loadConfig } from './configfile.ts'

/** What a connection needs. Two that are `same` need no new connection. */
export interface Credentials {
  readonly server: string
  readonly tls: {
    readonly ca?: string | undefined
    readonly cert?: string | undefined
    readonly key?: string | undefined
    readonly servername?: string | undefined
    readonly rejectUnauthorized?: boolean | undefined
  }
  /** `Authorization` and impersonation. */
  readonly headers: Readonly<Record<string, string>>
  /** An HTTP proxy, from the cluster's `proxy-url`. */
  readonly proxy?: string | undefined
  /** The context's namespace, or the pod's own. */
  readonly namespace: string
}

export interface CredentialsSource {
  /** The credentials now; asks again when they are older than a minute. Keeps the old ones, for a while, when asking fails. */
  current(): Credentials | Promise<Credentials>
  /** The server refused `used`: forget them, unless newer ones are here already. */
  refused(used: Credentials): void
  /** The loaded KubeConfig, for what is built on it (exec, port-forward). */
  kubeConfig(): KubeConfig
}

export interface KubeConfigOptions extends ConfigFileOptions {
  /** How long credentials are used before they are asked for again, in milliseconds. Default 60,000. */
  readonly refresh?: number | undefined
  readonly clock?: Clock | undefined
}

/** A plugin that has not answered by then hangs, and another one is started. */
const longestAnswer = 30_000

export function credentialsFrom(options: KubeConfigOptions = {}): CredentialsSource {
  const clock = options.clock ?? systemClock
  const refresh = options.refresh ?? 60_000
  let config = loadConfig(options)
  let known: { credentials: Credentials; at: number } | undefined
  let asking: { readonly answer: Promise<Credentials>; readonly since: number } | undefined

  async function ask(from: KubeConfig): Promise<Credentials> {
    try {
      const credentials = await read(from)
      if (from === config) known = { credentials, at: clock.monotonic() }
      return credentials
    } catch (error) {
      if (!known) throw error
      // A token file that is being replaced, a plugin that is offline: what we have may well still be good.
      known.at = clock.monotonic()
      return known.credentials
    } finally {
      if (from === config) asking = undefined
    }
  }

  /** Whoever asks next asks anew. */
  function startOver() {
    asking = undefined
    try {
      // What exec plugins said is cached inside a KubeConfig; a new one has forgotten it.
      config = loadConfig(options)
    } catch {
      // A kubeconfig that is being replaced: the one we have is better than none.
    }
  }

  return {
    current() {
      const now = clock.monotonic()
      if (known && now - known.at < refresh) return known.credentials
      if (asking && now - asking.since > longestAnswer) startOver()
      asking ??= { answer: ask(config), since: now }
      return asking.answer
    },
    refused(used) {
      if (!known || !same(known.credentials, used)) return
      known = undefined
      startOver()
    },
    kubeConfig: () => config,
  }
}

function same(a: Credentials, b: Credentials): boolean {
  return sameConnection(a, b) && JSON.stringify(a.headers) === JSON.stringify(b.headers)
}

export function sameConnection(a: Credentials, b: Credentials): boolean {
  return a.server === b.server && a.proxy === b.proxy && JSON.stringify(a.tls) === JSON.stringify(b.tls)
}

async function read(config: KubeConfig): Promise<Credentials> {
  const cluster = config.getCurrentCluster()
  if (!cluster) throw new ShipmateError('Misuse', 'the kubeconfig has no current cluster', 'never')
  const options: RequestOptions = {}
  await config.applyToHTTPSOptions(options)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = String(value).trim()
  // Read by ourselves: KubeConfig keeps it for a minute, which would be added to ours.
  const tokenFile: string | undefined = config.getCurrentUser()?.authProvider?.config?.tokenFile
  if (tokenFile) headers['authorization'] = `Bearer ${await readToken(tokenFile)}`
  if (options.auth) headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`
  return {
    server: cluster.server.replace(/\/+$/, ''),
    tls: {
      ca: pem(options.ca),
      cert: pem(options.cert),
      key: pem(options.key),
      servername: options.servername || undefined,
      rejectUnauthorized: cluster.skipTLSVerify ? false : undefined,
    },
    headers,
    proxy: cluster.proxyUrl || undefined,
    namespace: config.getContextObject(config.getCurrentContext())?.namespace?.trim() || 'default',
  }
}

async function readToken(file: string): Promise<string> {
  const token = (await readFile(file, 'utf8')).trim()
  if (token === '') throw new Error(`the token file ${file} is empty`)
  return token
}

function pem(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : String(value)
}
