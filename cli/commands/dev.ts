/**
 * `shipmate dev`: the embedded cluster for an operator under development, until it is stopped.
 *
 * It applies a folder of manifests, runs the operator of this folder's project under its own account and its generated roles, starts it again when its code
 * changes, and answers each refused request with the rule to declare.
 *
 * Guarantees: one line on stdout when all is ready. After any kind of stop no process and no port is left; files go too, but for those of `--keep`. A kubeconfig that
 * is not of an embedded cluster is never overwritten.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { type RunningCluster, startCluster } from '../../devcluster/cluster.ts'
import type { Keeper } from '../../devcluster/node/keeper.ts'
import { messageOf } from '../../shared/errors.ts'
import type { DevOperator } from '../dev/operator.ts'
import { Failure, Misuse } from '../ending.ts'

interface Options {
  readonly nodes: string
  readonly kubeconfig?: string
  readonly port?: string
  readonly bare?: boolean
  readonly keep?: string
}

const tell = (text: string) => void process.stderr.write(`${text}\n`)

export function define(command: Command): void {
  command
    .usage('[FOLDER] [options] [-- COMMAND...]')
    .argument('[FOLDER]', 'manifests to apply, in the order of their names')
    .argument('[COMMAND...]', "after --: run this in the stead of the project's own process")
    .option('--nodes <NUMBER>', 'nodes that run pods, as processes of this machine', '1')
    .option('--kubeconfig <FILE>', 'write a kubeconfig there (default: into a temporary folder)')
    .option('--port <NUMBER>', 'of the API server (default: any that is free)')
    .option('--bare', 'the API server alone: no controllers, no nodes, no operator')
    .option('--keep <FOLDER>', 'keep all objects there, for the next start (default: nothing is kept)')
    .action((_folder: string | undefined, _rest: string[], options: Options) => {
      const at = process.argv.indexOf('--')
      const words = at < 0 ? [] : process.argv.slice(at + 1)
      const [folder, ...more] = command.args.slice(0, command.args.length - words.length)
      if (more[0] !== undefined) throw new Misuse(`"${more[0]}" is one word too many: a command comes after --`)
      if (options.bare && words.length > 0) throw new Misuse('--bare runs no command')
      return dev(folder, words, options)
    })
}

async function dev(folder: string | undefined, command: readonly string[], options: Options): Promise<void> {
  const began = performance.now()
  const { bare = false } = options
  const nodes = bare ? 0 : numberOf('--nodes', options.nodes, 100)
  const port = options.port === undefined ? undefined : numberOf('--port', options.port, 65_535)
  if (folder !== undefined && !existsSync(folder)) throw new Misuse(`there is no folder ${folder}`)
  if (options.kubeconfig !== undefined) refuseForeign(options.kubeconfig)
  // Loaded where it is needed alone: it takes as long as the server itself.
  const project = bare ? undefined : (await import('../project.ts')).findProject()
  const stopping = stopSignal()
  const { createKeeper, sweep } = await import('../../devcluster/node/keeper.ts')
  const scratch = await scratchIn(options.keep, sweep)
  const kubeconfig = resolve(options.kubeconfig ?? join(scratch, 'kubeconfig'))
  let keeper: Keeper | undefined
  let cluster: RunningCluster | undefined
  let operator: DevOperator | undefined
  try {
    // Ends what was started, and removes the folder, also when this process is killed.
    keeper = createKeeper(scratch, true)
    cluster = await startCluster({
      ...{ nodes, controllers: !bare, listen: port === undefined ? true : { port } },
      folder: options.keep && resolve(options.keep),
      onError: error => tell(`shipmate dev: ${messageOf(error)}`),
    }).catch(error => {
      throw error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
        ? new Failure(`port ${port} is in use`)
        : error
    })
    const { listening, api, client } = cluster
    if (!listening) throw new Failure('the API server does not listen')
    await listening.writeKubeconfig(kubeconfig)
    if (!bare) {
      const { tellRefusals } = await import('../dev/refusals.ts')
      const refusals = tellRefusals(api, tell)
      if (project || command.length > 0) {
        const { startOperator } = await import('../dev/operator.ts')
        operator = await startOperator({
          ...{ project, command, client, keeper, scratch, tell },
          ...{ url: listening.url, ca: listening.ca, adminFile: kubeconfig },
          onStart: () => refusals.forget(),
        })
      }
    }
    if (folder !== undefined) await applyFolder(cluster, folder)
    const took = Math.round(performance.now() - began)
    const whom = command.length > 0 ? command.join(' ') : project?.name
    process.stdout.write(
      `ready after ${took} ms: ${listening.url}, kubeconfig ${kubeconfig}${whom ? `, running ${whom}` : ''}\n`,
    )
    await stopping.stopped
  } finally {
    await operator?.stop()
    await cluster?.stop()
    await keeper?.stop()
    if (options.kubeconfig !== undefined && cluster?.listening) rmSync(kubeconfig, { force: true })
    await rm(scratch, { recursive: true, force: true })
    stopping.release()
  }
}

/** Where this start keeps its files and the list of its processes. Refused where another one uses the same folder. */
async function scratchIn(keep: string | undefined, sweep: (folder: string) => Promise<void>): Promise<string> {
  if (keep === undefined) return realpath(await mkdtemp(join(tmpdir(), 'shipmate-dev-')))
  const scratch = join(resolve(keep), 'dev')
  await mkdir(scratch, { recursive: true })
  await sweep(scratch).catch(error => {
    throw new Failure(`--keep ${keep}: ${messageOf(error)}`)
  })
  return scratch
}

/** Resolves with the first wish to stop; a second one ends the process at once, and who keeps its processes ends those. */
function stopSignal(): { stopped: Promise<void>; release(): void } {
  const { promise, resolve: stop } = Promise.withResolvers<void>()
  let isAsked = false
  const onSignal = () => {
    if (isAsked) process.exit(1)
    isAsked = true
    stop()
  }
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const name of names) process.on(name, onSignal)
  return {
    stopped: promise,
    release: () => {
      for (const name of names) process.off(name, onSignal)
    },
  }
}

function numberOf(option: string, text: string, most: number): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number > most) throw new Misuse(`${option} ${text}: a number up to ${most}`)
  return number
}

/** Somebody's own kubeconfig is not ours to overwrite. */
function refuseForeign(file: string): void {
  if (!existsSync(file)) return
  if (!/"current-context": "devcluster"/.test(readFileSync(file, 'utf8')))
    throw new Misuse(`--kubeconfig ${file}: it is there already, and not of an embedded cluster; choose another`)
}

async function applyFolder({ client }: RunningCluster, folder: string): Promise<void> {
  const { applying, inOrder, readManifests } = await import('../../devcluster/testing/manifests.ts')
  const files = statSync(folder).isDirectory()
    ? readdirSync(folder)
        .filter(name => /\.(ya?ml|json)$/.test(name))
        .sort()
        .map(name => join(folder, name))
    : [folder]
  const { apply } = applying(client, () => new Promise(done => setTimeout(done, 5)))
  const read = await Promise.all(files.map(async file => (await readManifests(file)).map(object => ({ file, object }))))
  const byObject = new Map(read.flat().map(({ file, object }) => [object, file]))
  for (const object of inOrder([...byObject.keys()])) {
    try {
      await apply(object)
    } catch (error) {
      throw new Failure(`${byObject.get(object)}: ${messageOf(error)}`)
    }
  }
}
