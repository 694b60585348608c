/**
 * `shipmate operator image`: the image that shipmate.yaml names, built from the project's Dockerfile with the first of docker, podman and buildah that works.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { Failure } from '../ending.ts'
import { readProject } from '../project.ts'

interface Calls {
  /** Asks whether it works; a client alone does not. */
  readonly works: readonly string[]
  readonly build: readonly string[]
  readonly save: (image: string, file: string) => readonly string[]
}

/** By its own name: these two would have it as `localhost/NAME`, which no node looks for. */
const saveByName: Calls['save'] = (image, file) => ['push', image, `docker-archive:${file}:${image}`]

const tools = {
  docker: {
    works: ['version', '--format', '{{.Server.Version}}'],
    build: ['build'],
    save: (image, file) => ['save', '--output', file, image],
  },
  podman: { works: ['version'], build: ['build'], save: saveByName },
  // Without a daemon, and without a container around each step, so that it works in a container too.
  buildah: { works: ['version'], build: ['build', '--isolation', 'chroot', '--format', 'docker'], save: saveByName },
} as const satisfies Record<string, Calls>

type Tool = keyof typeof tools

interface Options {
  readonly with?: Tool | undefined
  readonly buildArg: string[]
  readonly push?: boolean | undefined
  readonly archive?: string | undefined
}

export function define(command: Command): void {
  command
    .addOption(
      new Option('--with <TOOL>', 'what builds it (default: the first that works)').choices(Object.keys(tools)),
    )
    .option('--build-arg <NAME=VALUE>', 'an ARG of the Dockerfile, such as BASE; may be repeated', collect, [])
    .option('--push', 'push it to its registry')
    .option('--archive <FILE>', 'write it to a file too, for nodes that pull from no registry')
    .action(async (options: Options) => {
      const { folder, image } = readProject()
      if (!existsSync(join(folder, 'Dockerfile'))) throw new Failure(`there is no Dockerfile in ${folder}`)
      const tool = options.with ?? firstThatWorks()
      const args = options.buildArg.flatMap(one => ['--build-arg', one])
      process.stderr.write(`building ${image} with ${tool}\n`)
      await run(tool, [...tools[tool].build, ...args, '--tag', image, '.'], folder)
      if (options.archive !== undefined) {
        const file = resolve(options.archive)
        // Not every tool overwrites one.
        await rm(file, { force: true })
        await run(tool, tools[tool].save(image, file), folder)
      }
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
