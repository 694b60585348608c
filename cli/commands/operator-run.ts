/**
 * `shipmate operator run`: the operator of the project in a process of this machine, against the cluster, until it is stopped.
 *
 * It contests the same lease as one that is deployed: of the two, one works.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Command } from 'commander'
import { CustomResourceDefinition, Deployment, Namespace } from '../../controller/kube/kinds.ts'
import { type Cluster, type ClusterOptions, withCluster, withClusterOptions } from '../cluster.ts'
import { Failure } from '../ending.ts'
import { namespaceOf } from '../manifests.ts'
import { type Project, readProject } from '../project.ts'

interface Options extends ClusterOptions {
  readonly port?: string | undefined
}

export function define(command: Command): void {
  withClusterOptions(command)
    .option('--port <NUMBER>', 'where health and metrics are served (default: 8081)')
    .action(async (options: Options) => {
      const project = readProject()
      const overlay = await withCluster(options, project, async cluster => {
        await prepare(cluster, project)
        return overlayOf(cluster, project)
      })
      const folder = await mkdtemp(join(tmpdir(), 'shipmate-run-'))
      try {
        const file = join(folder, 'kubeconfig')
        await writeFile(file, JSON.stringify(overlay), { mode: 0o600 })
        const theirs = options.kubeconfig ?? (process.env.KUBECONFIG || join(homedir(), '.kube/config'))
        const port = options.port === undefined ? {} : { PORT: options.port }
        const code = await runToItsEnd(project, { KUBECONFIG: [file, theirs].join(delimiter), ...port })
        if (code !== 0) throw new Failure('', code)
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    })
}

/** Its lease needs its namespace. What else is not as one would expect is said, and stands in the way of nothing. */
async function prepare({ access: { client } }: Cluster, project: Project): Promise<void> {
  const { name, namespace } = project
  const { definitions } = await project.load()
  if (!(await client.find(Namespace, { name: namespace }))) {
    await client.apply(Namespace, namespaceOf(project).object)
    process.stderr.write(`Namespace ${namespace} created, for its lease\n`)
  }
  if (await client.find(Deployment, { name, namespace }))
    process.stderr.write(`${name} is deployed too: this one works when that one stops (shipmate operator undeploy)\n`)
  for (const definition of definitions) {
    const crd = definition.crd().metadata
    if (!(await client.find(CustomResourceDefinition, crd)))
      process.stderr.write(`${crd.name} is not installed: it waits for that (shipmate operator install)\n`)
  }
}

/** Put before the user's own kubeconfig: of two contexts of one name the first counts. */
function overlayOf({ access, context: name }: Cluster, { namespace }: Project): object {
  const { cluster, user } = access.credentials.kubeConfig().getContextObject(name) ?? {}
  return {
    ...{ apiVersion: 'v1', kind: 'Config', clusters: [], users: [] },
    'current-context': name,
    contexts: [{ name, context: { cluster, user, namespace } }],
  }
}

/** Signals are its own to answer. A terminal sends SIGINT to both, and a second one would end it at once; anybody else sends to this one alone. */
async function runToItsEnd({ main, folder }: Project, env: Record<string, string>): Promise<number> {
  const child = spawn(process.execPath, [main], { cwd: folder, env: { ...process.env, ...env }, stdio: 'inherit' })
  const pass = (signal: NodeJS.Signals) => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  }
  process.on('SIGINT', pass).on('SIGTERM', pass)
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => resolve(code ?? (signal ? 1 : 0)))
    })
  } finally {
    process.off('SIGINT', pass).off('SIGTERM', pass)
  }
}
