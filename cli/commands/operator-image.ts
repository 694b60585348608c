/**
 * `shipmate operator image`: the image that shipmate.yaml names, built from the project's Dockerfile with the first of docker, podman and buildah that works.
 *
 * A Dockerfile that installs by the lock file (`npm ci`) needs one: where there is none yet, npm makes it, without installing anything.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
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
      const dockerfile = join(folder, 'Dockerfile')
      if (!existsSync(dockerfile)) throw new Failure(`there is no Dockerfile in ${folder}`)
      const tool = options.with ?? firstThatWorks()
      if (/\bnpm ci\b/.test(readFileSync(dockerfile, 'utf8'))) await lock(folder)
      const args = options.buildArg.flatMap(one => ['--build-arg', one])
      process.stderr.write(`building ${image} with ${tool}\n`)
      await build(tool, [...tools[tool].build, ...args, '--tag', image, '.'], folder)
      if (options.archive !== undefined) {
        const file = resolve(options.archive)
        // Not every tool overwrites one.
        await rm(file, { force: true })
        await build(tool, tools[tool].save(image, file), folder)
      }
      if (options.push) await build(tool, ['push', image], folder)
      process.stdout.write(`${image}\n`)
    })
}

function firstThatWorks(): Tool {
  const names = Object.keys(tools) as Tool[]
  const found = names.find(name => spawnSync(name, tools[name].works, { stdio: 'ignore' }).status === 0)
  if (!found) throw new Failure(`an image is built with ${names.join(', ')}, and none of them works here: install one`)
  return found
}

async function lock(folder: string): Promise<void> {
  if (['package-lock.json', 'npm-shrinkwrap.json'].some(file => existsSync(join(folder, file)))) return
  process.stderr.write('making package-lock.json, which says what the image gets: keep it with the sources\n')
  const args = ['install', '--package-lock-only', '--no-audit', '--no-fund']
  await run('npm', args, folder, 'npm cannot be started: install it, or make package-lock.json elsewhere')
}

function build(tool: Tool, args: readonly string[], folder: string): Promise<void> {
  return run(tool, args, folder, `${tool} cannot be started: install it, or leave --with out`)
}

/** What it prints is no answer of ours: it goes to stderr. */
async function run(program: string, args: readonly string[], cwd: string, absent: string): Promise<void> {
  const child = spawn(program, args, { cwd, stdio: ['ignore', process.stderr, process.stderr] })
  const status = await new Promise<number>((resolve, reject) => {
    child.once('error', () => reject(new Failure(absent)))
    child.once('close', code => resolve(code ?? 1))
  })
  if (status !== 0) throw new Failure(`${program} ${args[0]} failed, with exit code ${status}`)
}

function collect(one: string, before: string[]): string[] {
  return [...before, one]
}
