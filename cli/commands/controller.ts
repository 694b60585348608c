/**
 * `shipmate controller`: the app controller, until it is stopped. In a cluster it finds its own way; elsewhere it uses the kubeconfig.
 */
import type { Command } from 'commander'
import { addShipmate } from '../../controller/app/controller.ts'
import { leaseOf, parseShard } from '../../controller/app/shard.ts'
import { createManager } from '../../controller/runtime/index.ts'
import type { Settings } from '../../controller/webhook/inject/inject.ts'
import { createAuthority, issue } from '../../shared/authority.ts'
import { parseDuration } from '../../shared/duration.ts'
import { imageOf } from '../../shared/images.ts'
import { type Level, levels } from '../../shared/log.ts'
import { version as ownVersion } from '../../sidecar/version.ts'
import { Misuse } from '../ending.ts'

interface Options {
  readonly kubeconfig?: string
  readonly context?: string
  readonly namespace: string
  readonly watchNamespace?: string[]
  readonly shard?: string
  readonly progressEvery: string
  readonly leaderElection: boolean
  readonly port: string
  readonly metricsPort?: string
  readonly metricsAuth?: boolean
  readonly webhookPort?: string
  readonly webhookCertDir?: string
  readonly nativeSidecars: boolean
  readonly logLevel: string
}

const name = 'shipmate-controller'
/** Of the certificate for metrics, which is made anew with each process: as long as one may run, in milliseconds. */
const metricsSpan = 10 * 365 * 24 * 3_600_000

export function define(command: Command): void {
  command
    .option('--kubeconfig <FILE>', 'which clusters there are (default: KUBECONFIG, ~/.kube/config, or the pod)')
    .option('--context <NAME>', 'which of them')
    .option(
      '-n, --namespace <NAME>',
      'its own: the lease and the root of trust are there',
      process.env['POD_NAMESPACE'] ?? 'shipmate-system',
    )
    .option('--watch-namespace <NAME...>', 'look after apps in these namespaces only (default: all)')
    .option('--shard <I/N>', 'look after a part of the apps, as 0/3 (default: all of them)')
    .option('--progress-every <DURATION>', 'write the progress of runs no more often', '10s')
    .option('--no-leader-election', 'work at once, though another may')
    .option('--port <NUMBER>', 'where health and metrics are served', '8081')
    .option(
      '--metrics-port <NUMBER>',
      'serve metrics there by HTTPS instead, under a certificate that nobody has signed',
    )
    .option(
      '--metrics-auth',
      'metrics only for who shows the token of a user that may get /metrics, as the API server says',
    )
    .option('--webhook-port <NUMBER>', 'serve admission there, for the registrations of deploy/ (default: it is not)')
    .option(
      '--webhook-cert-dir <DIR>',
      'with tls.crt and tls.key, which somebody else keeps (default: made and renewed)',
    )
    .option('--no-native-sidecars', 'give pods a plain container: for clusters whose init containers cannot go on')
    .option('--log-level <LEVEL>', `one of ${levels.join(', ')}`, 'info')
    .action(async (options: Options) => {
      if (!levels.includes(options.logLevel as Level))
        throw new Misuse(`--log-level ${options.logLevel}: one of ${levels.join(', ')}`)
      const port = portOf('port', options.port)
      const metricsPort = options.metricsPort === undefined ? undefined : portOf('metrics-port', options.metricsPort)
      if (metricsPort !== undefined && metricsPort !== 0 && metricsPort === port)
        throw new Misuse(`--metrics-port ${metricsPort}: another than --port, which is served without TLS`)
      const webhookPort = options.webhookPort === undefined ? undefined : portOf('webhook-port', options.webhookPort)
      if (options.webhookCertDir !== undefined && webhookPort === undefined)
        throw new Misuse('--webhook-cert-dir needs --webhook-port')
      const shard = options.shard === undefined ? undefined : parseShard(options.shard)
      if (options.shard !== undefined && !shard)
        throw new Misuse(`--shard ${options.shard}: it is written I/N, with I from 0 to N - 1, as 0/3`)
      const progressEvery = parseDuration(options.progressEvery)
      if (progressEvery === undefined)
        throw new Misuse(`--progress-every ${options.progressEvery}: a duration, as 500ms or 10s`)
      const { namespace, watchNamespace } = options
      const manager = createManager({
        name,
        kubeconfig: {
          ...(options.kubeconfig !== undefined && { file: options.kubeconfig }),
          ...(options.context !== undefined && { context: options.context }),
        },
        ...(watchNamespace && { namespaces: watchNamespace }),
        ...(options.leaderElection && { leaderElection: { name: leaseOf(name, shard), namespace } }),
        health: { port },
        metrics: {
          ...(metricsPort === undefined ? { port } : { port: metricsPort, tls: certificateOf(Date.now()) }),
          auth: options.metricsAuth,
        },
        log: { level: options.logLevel as Level },
      })
      addShipmate(manager, { namespace, shard, progressEvery })
      if (webhookPort !== undefined) {
        const { addAdmission } = await import('../../controller/webhook/serve.ts')
        const { webhookCertDir: certDir, nativeSidecars } = options
        addAdmission(manager, { namespace, port: webhookPort, certDir, settings: sidecars(nativeSidecars) })
      }
      await manager.start()
    })
}

/** What pods get that ask for a sidecar: the Deployment says it. */
function sidecars(nativeSidecars: boolean): Settings {
  const { SHIPMATE_SIDECAR_IMAGE: image, SHIPMATE_PULL_SECRETS: secrets = '' } = process.env
  const version = ownVersion()
  const pullSecrets = secrets.split(',').filter(name => name !== '')
  return { version, image: image || imageOf('sidecar', { tag: version }), pullSecrets, nativeSidecars }
}

function portOf(option: string, text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new Misuse(`--${option} ${text}: a number up to 65535`)
  return port
}

/** Who scrapes cannot know it beforehand: it hides tokens from who listens, and proves nothing. */
function certificateOf(now: number): { cert: string; key: string } {
  const span = { from: now - 60_000, until: now + metricsSpan }
  return issue(createAuthority(span), 'server', { dns: [name] }, span)
}
