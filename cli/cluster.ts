/**
 * The cluster that a command works on: the one that the user's kubeconfig names.
 *
 * Guarantees: cluster, context and namespace are named on stderr before anything is asked of it; what was opened is closed, however the command ends.
 */
import type { Command } from 'commander'
import { type Access, connect } from '../controller/kube/access.ts'

export interface ClusterOptions {
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
}

export interface Cluster {
  readonly access: Access
  readonly server: string
  readonly context: string
}

export function withClusterOptions(command: Command): Command {
  return command
    .option('--context <NAME>', 'a context of the kubeconfig (default: the current one)')
    .option('--kubeconfig <FILE>', 'a kubeconfig (default: KUBECONFIG, then ~/.kube/config)')
}

export async function withCluster<R>(
  { kubeconfig, context }: ClusterOptions,
  { namespace }: { readonly namespace?: string | undefined },
  work: (cluster: Cluster) => Promise<R>,
): Promise<R> {
  const cluster = open({ kubeconfig, context })
  const place = namespace === undefined ? '' : `, namespace ${namespace}`
  process.stderr.write(`cluster ${cluster.server}, context ${cluster.context}${place}\n`)
  try {
    return await work(cluster)
  } finally {
    await cluster.access.close()
  }
}

function open({ kubeconfig: file, context }: ClusterOptions): Cluster {
  const access = connect({ name: 'shipmate-cli', kubeconfig: { file, context } })
  const config = access.credentials.kubeConfig()
  return { access, server: config.getCurrentCluster()?.server ?? '', context: config.getCurrentContext() }
}
