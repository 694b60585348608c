/**
 * Webhooks of a process: declared before its manager starts, served while it runs, on every replica, whether it leads or not.
 *
 * Guarantees: it is not ready before it listens and has a certificate that holds. Without `certDir` the certificate is made and renewed here, with the bundle in the
 * registrations (keeper.ts); with it nothing is made, and no bundle is written.
 */
import { ShipmateError } from '../../../shared/errors.ts'
import { keyOf } from '../../kube/kind.ts'
import type { Address } from '../health.ts'
import type { Manager } from '../manager.ts'
import { type CertificateLifetimes, usualCertificateLifetimes } from './certificate.ts'
import { type Hook, refuseTwins } from './hooks.ts'
import { namesOf, type WebhookPlace } from './registration.ts'

export interface WebhookOptions {
  readonly hooks: readonly Hook[]
  /** Of the two configurations that register them. */
  readonly name: string
  /** Where the API server finds them; it may follow from the port, where the system chooses that. Default: the Service `NAME-webhook` in the namespace of the client. */
  readonly place?: WebhookPlace | ((port: number) => WebhookPlace) | undefined
  /** Default: port 9443 on every address of the machine. */
  readonly listen?: Address | undefined
  /** A folder with `tls.crt` and `tls.key`, which somebody else keeps. Default: none, certificates are made. */
  readonly certDir?: string | undefined
  /** Milliseconds between two looks at `certDir`. Default 10,000. */
  readonly certDirEvery?: number | undefined
  /** In which certificates are kept. Default `NAME-webhook-tls` in the namespace of the client. */
  readonly secret?: { readonly name?: string | undefined; readonly namespace?: string | undefined } | undefined
  readonly lifetimes?: Partial<CertificateLifetimes> | undefined
  /** Whether the registrations are applied from here. Default false: they are there, or come, and only get their bundle. Not with `certDir`. */
  readonly register?: boolean | undefined
  /** The most bytes of an AdmissionReview. Default 7 MiB. */
  readonly maxBody?: number | undefined
  /** The most bytes of a ConversionReview, which has all objects of a list. Default 64 MiB. */
  readonly maxConversion?: number | undefined
  /** Milliseconds for which they are served on once the process is to stop: the API server learns of that late. Default 5000. */
  readonly linger?: number | undefined
}

export interface Webhooks {
  /** Where they are served; undefined before that. */
  readonly port: number | undefined
}

export const secretNameOf = (name: string) => `${name}-webhook-tls`
export const serviceNameOf = (name: string) => `${name}-webhook`

/** Call it before the manager starts, once. */
export function addWebhooks(manager: Manager, options: WebhookOptions): Webhooks {
  const { hooks, name, certDir, register = false } = options
  refuseTwins(hooks)
  if (certDir !== undefined && register)
    throw new ShipmateError('Misuse', 'webhooks: with certDir there is no bundle to register them with', 'never')
  const { client, clock } = manager
  const log = manager.log.child({ part: 'webhooks' })
  const namespace = options.secret?.namespace ?? client.namespace
  const usualPlace = { service: { name: serviceNameOf(name), namespace: client.namespace } }
  let port: number | undefined
  let until: number | undefined
  let trouble: () => string | undefined = () => undefined

  manager.readyCheck('webhooks', () => {
    if (port === undefined) return 'the webhooks are not served yet'
    if (until === undefined) return trouble() ?? 'there is no certificate yet'
    if (until <= clock.now()) return `the certificate ended at ${new Date(until).toISOString()}: ${trouble() ?? ''}`
    return undefined
  })

  manager.server(async stopping => {
    const { serveWebhooks } = await import('./server.ts')
    const { hookMetrics } = await import('./metrics.ts')
    const metrics = hookMetrics(manager.metrics.registry, clock)
    const { host, port: wished } = options.listen ?? { port: 9443 }
    const server = await serveWebhooks({
      ...{ hooks, clock, log, metrics, stopping, host, port: wished },
      ...{ maxBody: options.maxBody, maxConversion: options.maxConversion, linger: options.linger },
    })
    port = server.port
    log.info({ host: server.host, port, webhooks: hooks.map(({ path }) => path) }, 'listening: webhooks')
    const place = typeof options.place === 'function' ? options.place(port) : (options.place ?? usualPlace)
    const use = (pair: { cert: string; key: string; until: number }) => {
      server.use(pair)
      until = pair.until
      metrics.expires(pair.until)
    }
    // It goes on until the server is closed: what is under way then still meets a certificate.
    const closing = new AbortController()
    let kept: Promise<void>
    if (certDir !== undefined) {
      const { followFiles } = await import('./files.ts')
      const tell = (what: string | undefined) => (trouble = () => what)
      kept = followFiles(
        { dir: certDir, clock, log, every: options.certDirEvery, onCertificate: use, onTrouble: tell },
        closing.signal,
      )
    } else {
      const { createKeeper } = await import('./keeper.ts')
      const secret = { name: options.secret?.name ?? secretNameOf(name), namespace }
      const keeper = createKeeper({
        ...{ client, clock, random: manager.random, log, secret, hooks, name, place, register },
        names: namesOf(place),
        lifetimes: { ...usualCertificateLifetimes, ...options.lifetimes },
        onCertificate: use,
      })
      trouble = () => keeper.trouble && `Secret ${keyOf(secret)}: ${keeper.trouble}`
      kept = keeper.run(closing.signal)
    }
    return {
      ...{ host: server.host, port: server.port },
      async close() {
        await server.close()
        closing.abort()
        await kept
      },
    }
  })

  return {
    get port() {
      return port
    },
  }
}
