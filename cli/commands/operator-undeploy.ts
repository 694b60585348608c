/**
 * `shipmate operator undeploy`: the operator goes, with its lease, its webhooks, account and roles. Its definitions, custom resources and namespace stay.
 */
import type { Command } from 'commander'
import type { Client } from '../../controller/kube/client.ts'
import { Secret } from '../../controller/kube/kinds.ts'
import { secretNameOf } from '../../controller/runtime/index.ts'
import { type ClusterOptions, withCluster, withClusterOptions } from '../cluster.ts'
import { removeLease } from '../lease.ts'
import { customResourcesOf } from '../leftovers.ts'
import { accountOf, deploymentOf, webhooksOf } from '../manifests.ts'
import { type ApplyingOptions, removeAll, tell, untilNoPods } from '../objects.ts'
import { type Project, readProject } from '../project.ts'

export function define(command: Command): void {
  withClusterOptions(command)
    .option('--dry-run', 'say what would go, and write nothing')
    .action(async (options: ClusterOptions & ApplyingOptions) => {
      const project = readProject()
      const exported = await project.load()
      await withCluster(options, project, async ({ access: { client } }) => {
        const { service, registrations } = webhooksOf(project, exported)
        // Before the operator: without it they would refuse every change.
        await removeAll(client, project, [...service, deploymentOf(project, exported), ...registrations], options)
        // Until its last pod has gone it works, and releases its lease: with its account.
        if (!options.dryRun) await untilNoPods(client, project, 60_000)
        await removeLease(client, { name: exported.lease, namespace: project.namespace }, options)
        if (service.length > 0) await removeSecret(client, project, exported.lease, options)
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

/** Of its webhooks: the operator made it, under a name of its own. */
async function removeSecret(
  client: Client,
  { namespace }: Project,
  lease: string,
  { dryRun }: ApplyingOptions,
): Promise<void> {
  const ref = { name: secretNameOf(lease), namespace }
  const say = (is: string) => tell({ kind: Secret, object: { metadata: ref } }, is)
  if (!(await client.find(Secret, ref))) return say('not there')
  if (dryRun) return say('would be deleted')
  await client.delete(Secret, ref)
  say('deleted')
}
