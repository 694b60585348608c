/**
 * `shipmate operator undeploy`: the operator goes, with its lease, its account and roles. Its definitions, custom resources and namespace stay.
 */
import type { Command } from 'commander'
import { type ClusterOptions, withCluster, withClusterOptions } from '../cluster.ts'
import { removeLease } from '../lease.ts'
import { customResourcesOf } from '../leftovers.ts'
import { accountOf, deploymentOf } from '../manifests.ts'
import { type ApplyingOptions, removeAll, untilNoPods } from '../objects.ts'
import { readProject } from '../project.ts'

export function define(command: Command): void {
  withClusterOptions(command)
    .option('--dry-run', 'say what would go, and write nothing')
    .action(async (options: ClusterOptions & ApplyingOptions) => {
      const project = readProject()
      const exported = await project.load()
      await withCluster(options, project, async ({ access: { client } }) => {
        await removeAll(client, project, [deploymentOf(project)], options)
        // Until its last pod has gone it works, and releases its lease: with its account.
        if (!options.dryRun) await untilNoPods(client, project, 60_000)
        await removeLease(client, { name: exported.lease, namespace: project.namespace }, options)
        await removeAll(client, project, accountOf(project, exported), options)
        const finalizers = exported.operators.map(({ finalizer }) => finalizer)
        for (const definition of exported.definitions) {
          const held = (await customResourcesOf(client, definition)).filter(({ metadata }) =>
            metadata.finalizers?.some(finalizer => finalizers.includes(finalizer)),
          )
          if (held.length > 0)
            process.stderr.write(
              `${held.length} ${definition.plural} stay, with a finalizer of the operator's: until it runs again, they cannot be deleted\n`,
            )
        }
      })
    })
}
