/**
 * `shipmate operator uninstall`: the custom resource definitions of the project go, if no custom resource is left. With a definition the server deletes all
 * that is of its kind: so none goes while there is one, of any of them.
 */
import type { Command } from 'commander'
import { keyOf } from '../../controller/kube/kind.ts'
import { Deployment } from '../../controller/kube/kinds.ts'
import { type ClusterOptions, withCluster, withClusterOptions } from '../cluster.ts'
import { Failure } from '../ending.ts'
import { customResourcesOf } from '../leftovers.ts'
import { crdsOf } from '../manifests.ts'
import { type ApplyingOptions, removeAll } from '../objects.ts'
import { readProject } from '../project.ts'

export function define(command: Command): void {
  withClusterOptions(command)
    .option('--dry-run', 'say what would go, and write nothing')
    .action(async (options: ClusterOptions & ApplyingOptions) => {
      const project = readProject()
      const exported = await project.load()
      const { definitions } = exported
      await withCluster(options, project, async ({ access: { client } }) => {
        const lists = await Promise.all(definitions.map(definition => customResourcesOf(client, definition)))
        const left = lists.flat().map(({ kind, metadata }) => `  ${kind} ${keyOf(metadata)}`)
        if (left.length > 0) {
          throw new Failure(
            `there are custom resources, which would go with their definition; delete them first:\n${left.join('\n')}`,
          )
        }
        await removeAll(client, project, crdsOf(project, exported), options)
        const { name, namespace } = project
        if (await client.find(Deployment, { name, namespace }))
          process.stderr.write(`${name} is still deployed, and waits for its definitions: shipmate operator undeploy\n`)
      })
    })
}
