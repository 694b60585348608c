/**
 * `shipmate operator install`: the custom resource definitions of the project, on the cluster, served.
 */
import type { Command } from 'commander'
import { type ClusterOptions, withCluster, withClusterOptions } from '../cluster.ts'
import { crdsOf } from '../manifests.ts'
import { type ApplyingOptions, applyAll, untilReady } from '../objects.ts'
import { readProject } from '../project.ts'

export function define(command: Command): void {
  withClusterOptions(command)
    .option('--dry-run', 'let the server check it all, and write nothing')
    .action(async (options: ClusterOptions & ApplyingOptions) => {
      const project = readProject()
      const crds = crdsOf(project, await project.load())
      await withCluster(options, project, async ({ access: { client } }) => {
        await applyAll(client, project, crds, options)
        if (!options.dryRun) for (const crd of crds) await untilReady(client, crd, { timeout: 30_000 })
      })
    })
}
