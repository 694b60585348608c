/**
 * `shipmate operator image`: the image that shipmate.yaml names, built from the project's Dockerfile with the first of docker, podman and buildah that works.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Command, Option } from 'commander'
import { Failure } from '../ending.ts'
import { readProject } from '../project.ts'

/** How each tool is asked whether it works (a client alone does not), and how it builds. */
const tools = {
  docker: { works: ['version', '--format', '{{.Server.Version}}'], build: ['build'] },
  podman: { works: ['version'], build: ['build'] },
  // Without a daemon, and without a container around each step, so that it works in a container too.
  buildah: { works: ['version'], build: ['build', '--isolation', 'chroot', '--format', 'docker'] },
} as const

type Tool = keyof typeof tools

interface Options {
  readonly with?: Tool | undefined
  readonly buildArg: string[]
  readonly push?: boolean | undefined
}

export function define(command: Command): void {
  command
    .addOption(
      new Option('--with <TOOL>', 'what builds it (default: the first that works)').choices(Object.keys(tools)),
    )
    .option('--build-arg <NAME=VALUE>', 'an ARG of the Dockerfile, such as BASE; may be repeated', collect, [])
    .option('--push', 'push it to its registry')
    .action(async (options: Options) => {
      const { folder, image } = readProject()
      if (!existsSync(join(folder, 'Dockerfile'))) throw new Failure(`there is no Dockerfile in ${folder}`)
      const tool = options.with ?? firstThatWorks()
      const args = options.buildArg.flatMap(one => ['--build-arg', one])
      process.stderr.write(`building ${image} with ${tool}\n`)
      await run(tool, [...tools[tool].build, ...args, '--tag', image, '.'], folder)
      if (options.push) await run(tool, ['push', image], folder)
      process.stdout.write(`${image}\n`)
    })
}

function firstThatWorks(): Tool {
  const names = Object.keys(tools) as Tool[]
  const found = names.find(name => spawnSync(name, tools[name].works, { stdio: 'ignore' }).status === 0)
  if (!found) throw new Failure(`an image is built with ${names.join(', ')}, and none of them works here: install one`)
  return found
}

/** What it prints is no answer of ours: it goes to stderr. */
async function run(tool: Tool, args: readonly string[], cwd: string): Promise<void> {
  const child = spawn(tool, args, { cwd, stdio: ['ignore', process.stderr, process.stderr] })
  const status = await new Promise<number>((resolve, reject) => {
    child.once('error', () => reject(new Failure(`${tool} cannot be started: install it, or leave --with out`)))
    child.once('close', code => resolve(code ?? 1))
  })
  if (status !== 0) throw new Failure(`${tool} ${args[0]} failed, with exit code ${status}`)
}

function collect(one: string, before: string[]): string[] {
  return [...before, one]
}
