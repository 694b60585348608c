/**
 * The operator that `shipmate dev` runs: a process of its own under its own account, started again whenever its code changes.
 *
 * Guarantees: its roles are those of the code that runs, as they are generated anew before each start. One that ends by itself is not started again until
 * something changes. After `stop` no process of it is left.
 */
import { type ChildProcess, execFile } from 'node:child_process'
import { once } from 'node:events'
import { type FSWatcher, watch } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import type { Client } from '../../controller/kube/client.ts'
import { signal } from '../../devcluster/node/identity.ts'
import type { Keeper } from '../../devcluster/node/keeper.ts'
import { applying, inOrder, parseManifests } from '../../devcluster/testing/manifests.ts'
import { messageOf } from '../../shared/errors.ts'
import { Failure } from '../ending.ts'
import { packageFolder } from '../package.ts'
import type { Project } from '../project.ts'

export interface DevOperatorOptions {
  readonly project: Project | undefined
  /** In the stead of the project's own process. */
  readonly command: readonly string[]
  readonly client: Client
  readonly keeper: Keeper
  /** Where its kubeconfig is written. */
  readonly scratch: string
  readonly url: string
  readonly ca: string
  /** The kubeconfig of one who may everything: for a command without a project. */
  readonly adminFile: string
  readonly tell: (text: string) => void
  /** Called before each start. */
  readonly onStart: () => void
}

export interface DevOperator {
  stop(): Promise<void>
}

const debounce = 100
/** Milliseconds to end by itself. */
const grace = 10_000
/** A month: longer than anybody's session. */
const tokenSeconds = 30 * 86_400

export async function startOperator(options: DevOperatorOptions): Promise<DevOperator> {
  const { project, command, keeper, scratch, tell } = options
  const kubeconfig = join(scratch, 'operator.kubeconfig')
  let child: ChildProcess | undefined
  let watcher: FSWatcher | undefined
  let timer: NodeJS.Timeout | undefined
  let isStopping = false

  async function start(): Promise<void> {
    options.onStart()
    if (project) {
      await applyRoles(options, project)
      await writeFile(kubeconfig, await accountConfig(options, project), { mode: 0o600 })
    }
    if (isStopping) return
    const [program = process.execPath, ...args] = command.length > 0 ? command : [process.execPath, project?.main ?? '']
    const env = { PORT: '0', ...process.env, KUBECONFIG: project ? kubeconfig : options.adminFile }
    const started = keeper.spawn(program, args, { cwd: project?.folder ?? process.cwd(), env, stdio: 'inherit' })
    child = started
    started.once('error', error => tell(`${program} cannot be started: ${error.message}`))
    started.once('exit', (code, by) => {
      if (child !== started) return
      child = undefined
      if (!isStopping)
        tell(`the operator has ended (${by ?? `exit code ${code}`}): it is started again when its code changes`)
    })
  }

  async function end(): Promise<void> {
    const ending = child
    child = undefined
    if (!ending?.pid || ending.exitCode !== null || ending.signalCode !== null) return
    const gone = once(ending, 'exit')
    ending.ref()
    signal(-ending.pid, 'SIGTERM')
    const late = setTimeout(() => signal(-(ending.pid ?? 0), 'SIGKILL'), grace)
    await gone
    clearTimeout(late)
  }

  /** One change after another. */
  let working = Promise.resolve()
  const restart = () => {
    working = working.then(async () => {
      if (isStopping) return
      await end()
      try {
        await start()
        tell('the code has changed: the operator is started again')
      } catch (error) {
        tell(`the code has changed, and cannot be started: ${messageOf(error)}`)
      }
    })
  }

  try {
    await start()
  } catch (error) {
    // What does not load yet may do so after the next change.
    if (!project) throw error
    tell(messageOf(error))
  }
  if (project) {
    watcher = watch(project.folder, { recursive: true }, (_event, file) => {
      if (file === null || !isCode(String(file))) return
      clearTimeout(timer)
      timer = setTimeout(restart, debounce)
    })
  }
  return {
    async stop() {
      isStopping = true
      clearTimeout(timer)
      watcher?.close()
      await working
      await end()
    },
  }
}

/** Sources and what they read; not what tools write. */
function isCode(file: string): boolean {
  const parts = file.split(/[\\/]/)
  if (parts.some(part => part === 'node_modules' || part === 'dist' || part === 'test' || part.startsWith('.')))
    return false
  return /\.([cm]?[jt]s|json|ya?ml|go|py|rs)$/.test(basename(file))
}

/** Definitions, account and roles, from the code as it is now: in a process of its own, as a module is loaded but once. */
async function applyRoles({ client }: DevOperatorOptions, project: Project): Promise<void> {
  const program = join(packageFolder, 'bin/shipmate.cjs')
  const { stdout } = await promisify(execFile)(process.execPath, [program, 'operator', 'manifests'], {
    cwd: project.folder,
    maxBuffer: 1 << 26,
  }).catch(error => {
    throw new Failure(String(error.stderr || error.message).trim())
  })
  const { apply } = applying(client, () => new Promise(resolve => setTimeout(resolve, 5)))
  const manifests = await parseManifests(stdout, 'operator manifests')
  for (const manifest of inOrder(manifests)) if (manifest.kind !== 'Deployment') await apply(manifest)
}

async function accountConfig({ client, url, ca }: DevOperatorOptions, { name, namespace }: Project): Promise<string> {
  const { token } = await client.token({ name, namespace }, { expirationSeconds: tokenSeconds })
  const cluster = { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') }
  return JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'devcluster' },
    contexts: [{ name: 'devcluster', context: { cluster: 'devcluster', user: name, namespace } }],
    clusters: [{ name: 'devcluster', cluster }],
    users: [{ name, user: { token } }],
  })
}
