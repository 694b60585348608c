/**
 * The command line as a process, and projects for it to work on.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, onTestFinished } from 'vitest'

export const root = join(import.meta.dirname, '../..')
const binary = join(root, 'bin/shipmate.cjs')

export interface Ended {
  status: number
  stdout: string
  stderr: string
}

export interface RunOptions {
  cwd?: string
  env?: Record<string, string>
}

/** Away from any cluster of the machine's own. */
const nowhere = { KUBECONFIG: '/nonexistent/kubeconfig' }

export async function run(command: string, args: string[], { cwd = root, env = {} }: RunOptions = {}): Promise<Ended> {
  // npm hands its settings to what it runs, and vitest its own: the command is to be a stranger to both.
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_|vitest|node_env$|test$)/i.test(name))
  const options = { cwd, env: { ...Object.fromEntries(own), ...nowhere, ...env }, maxBuffer: 1 << 26 }
  try {
    return { status: 0, ...(await promisify(execFile)(command, args, options)) }
  } catch (error) {
    if (!(error instanceof Error && 'stdout' in error && 'stderr' in error && 'code' in error)) throw error
    return { status: Number(error.code), stdout: String(error.stdout), stderr: String(error.stderr) }
  }
}

export function shipmate(args: string[], options?: RunOptions): Promise<Ended> {
  return run(process.execPath, [binary, ...args], options)
}

/** A folder that goes with the test. */
export function emptyFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'shipmate-cli-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The dependencies of a project, as links to those of this one. @param besides which are not linked */
export function linkDependencies(project: string, besides: string[] = []): void {
  const from = join(root, 'node_modules')
  mkdirSync(join(project, 'node_modules'), { recursive: true })
  for (const name of readdirSync(from)) {
    if (!besides.includes(name)) symlinkSync(join(from, name), join(project, 'node_modules', name))
  }
}

let generated: Promise<string> | undefined
const lasting: string[] = []
afterAll(() => {
  for (const folder of lasting) rmSync(folder, { recursive: true, force: true })
})

/** A project as it is generated, with this very package as its dependency. */
export async function newProject(): Promise<string> {
  generated ??= generate()
  const project = emptyFolder()
  cpSync(await generated, project, { recursive: true, verbatimSymlinks: true })
  return project
}

/** Once for all tests of a file: they get copies. */
async function generate(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-cli-'))
  lasting.push(folder)
  const { status, stderr } = await shipmate(['new', 'operator', 'hello-operator', '--path', folder])
  if (status !== 0) throw new Error(stderr)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/shipmate'))
  symlinkSync(join(root, 'node_modules/zod'), join(folder, 'node_modules/zod'))
  return folder
}
