/**
 * `shipmate controller`: the app controller, until it is stopped. In a cluster it finds its own way; elsewhere it uses the kubeconfig.
 */
import type { Command } from 'commander'
import { addShipmate } from '../../controller/app/controller.ts'
import { leaseOf, parseShard } from '../../controller/app/shard.ts'
import { createManager } from '../../controller/runtime/index.ts'
import { type Level, levels } from '../../shared/log.ts'
import { Misuse } from '../ending.ts'

interface Options {
  readonly kubeconfig?: string
  readonly context?: string
  readonly namespace: string
  readonly watchNamespace?: string[]
  readonly shard?: string
  readonly leaderElection: boolean
  readonly port: string
  readonly logLevel: string
}

const name = 'shipmate-controller'

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
    .option('--no-leader-election', 'work at once, though another may')
    .option('--port <NUMBER>', 'where health and metrics are served', '8081')
    .option('--log-level <LEVEL>', `one of ${levels.join(', ')}`, 'info')
    .action(async (options: Options) => {
      if (!levels.includes(options.logLevel as Level))
        throw new Misuse(`--log-level ${options.logLevel}: one of ${levels.join(', ')}`)
      const port = Number(options.port)
      if (!Number.isInteger(port) || port < 0 || port > 65_535)
        throw new Misuse(`--port ${options.port}: a number up to 65535`)
      const shard = options.shard === undefined ? undefined : parseShard(options.shard)
      if (options.shard !== undefined && !shard)
        throw new Misuse(`--shard ${options.shard}: it is written I/N, with I from 0 to N - 1, as 0/3`)
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
        metrics: { port },
        log: { level: options.logLevel as Level },
      })
      addShipmate(manager, { namespace, shard })
      await manager.start()
    })
}
