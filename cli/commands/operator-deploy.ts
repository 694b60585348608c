/**
 * `shipmate operator deploy`: the operator of the project on the cluster, with all it needs. It is done when the operator is ready.
 */
import { type Command, InvalidArgumentError } from 'commander'
import { type ClusterOptions, withCluster, withClusterOptions } from '../cluster.ts'
import { crdsOf, deploymentOf, manifestsOf } from '../manifests.ts'
import { type ApplyingOptions, applyAll, untilReady } from '../objects.ts'
import { readProject } from '../project.ts'

interface Options extends ClusterOptions, ApplyingOptions {
  readonly wait: boolean
  readonly timeout: number
}

export function define(command: Command): void {
  withClusterOptions(command)
    .option('--dry-run', 'let the server check it all, and write nothing')
    .option('--no-wait', 'do not wait until it is ready')
    .option('--timeout <SECONDS>', 'how long to wait', seconds, 180)
    .action(async (options: Options) => {
      const project = readProject()
      const exported = await project.load()
      const manifests = manifestsOf(project, exported)
      await withCluster(options, project, async ({ access: { client } }) => {
        await applyAll(client, project, manifests, options)
        if (options.dryRun || !options.wait) return
        process.stderr.write(`waiting until ${project.name} is ready\n`)
        const timeout = options.timeout * 1000
        await untilReady(client, deploymentOf(project, exported), { timeout, pods: project })
        for (const crd of crdsOf(project, exported)) await untilReady(client, crd, { timeout: 30_000 })
      })
    })
}

function seconds(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new InvalidArgumentError('It has to be a number of seconds.')
  return Number(text)
}
