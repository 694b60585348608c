/**
 * A container without a container runtime: a root folder that has busybox and nothing else, and processes that see no other. As a runtime does, it
 * brings /proc and /dev/null.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import type { PodState, Run } from '../../../shared/protocol/schemas.ts'
import { readElf } from '../../../sidecar/install/elf.ts'
import type { Launch } from '../../../sidecar/install/install.ts'
import { temporary } from './built.ts'

const path = `${process.env['PATH']}:/usr/sbin:/sbin`
const busybox = ['/bin/busybox', '/usr/bin/busybox', '/usr/bin/busybox-static'].find(
  file => existsSync(file) && readElf(file)?.interpreter === undefined,
)
const isolated = ['--mount', '--pid', '--fork', '--kill-child']
const enter = 'mount -t proc proc "$1/proc" && mount --bind /dev/null "$1/dev/null" && shift && exec chroot "$@"'

const isRoot = process.getuid?.() === 0
/** How a command is put into such a root; as who is not root, in a user namespace of its own. */
const unshare = [...isolated, ...(isRoot ? [] : ['--user', '--map-root-user']), '--', 'sh', '-c', enter, 'sh']

/** Why there is no such root here, if there is none. */
export const noRoot = reason()
/** Why nobody but root can be in it, if so. */
export const noOtherUser = noRoot ?? (isRoot ? undefined : 'only root may become another user')

function reason(): string | undefined {
  if (!busybox) return 'there is no static busybox, such as the Debian package busybox-static brings'
  const folder = `/tmp/shipmate-root-${process.pid}`
  mkdirSync(join(folder, 'proc'), { recursive: true })
  try {
    fill(folder)
    const { status } = spawnSync('unshare', [...unshare, folder, folder, '/bin/true'], { env: { PATH: path } })
    return status === 0 ? undefined : 'unshare and chroot are not permitted'
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function fill(root: string): void {
  for (const folder of ['bin', 'dev', 'proc', 'state']) mkdirSync(join(root, folder), { recursive: true })
  writeFileSync(join(root, 'dev/null'), '')
  chmodSync(root, 0o755)
  chmodSync(join(root, 'state'), 0o777)
  copyFileSync(busybox ?? '', join(root, 'bin/busybox'))
  for (const tool of ['true', 'sh', 'cat', 'id', 'ls', 'sleep', 'touch'])
    symlinkSync('busybox', join(root, 'bin', tool))
}

export interface Started {
  /** The API of the agent that opened it last. */
  readonly address: () => Promise<string>
  readonly said: readonly string[]
  get<T>(path: string): Promise<T>
  /** Asks for a run. */
  put(id: string, action: string): Promise<void>
  state(): Promise<PodState>
  /** Waits for the end of a run. */
  ended(id: string): Promise<Run>
  log(id: string): Promise<string>
  /** To shipmate-init, which is PID 1 there. */
  signal(signal: NodeJS.Signals): void
}

export interface Root {
  readonly folder: string
  /** A file of it, as this process sees it. */
  at(path: string): string
  /** Runs a command to its end. */
  run(
    command: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): { status: number | null; stdout: string; stderr: string }
  /** Starts the agent. @param env what the image has set, besides PATH */
  start(launch: Launch, as?: number, env?: Readonly<Record<string, string>>): Started
}

/** A new one, with the lifecycle in /lifecycle.json; its processes end with the test. */
export function busyboxRoot(lifecycle: LifecycleSpec = {}): Root {
  const folder = temporary()
  fill(folder)
  writeFileSync(join(folder, 'lifecycle.json'), JSON.stringify(lifecycle))
  const argv = (command: readonly string[], as = 0) => {
    const user = as === 0 ? [] : [`--userspec=${as}:${as}`, `--groups=${as}`]
    return [...unshare, folder, ...user, folder, ...command]
  }
  return {
    folder,
    at: path => join(folder, path),
    run: (command, env = {}) =>
      spawnSync('unshare', argv(['/bin/busybox', 'env', 'PATH=/bin', ...command]), {
        env: { ...env, PATH: path },
        encoding: 'utf8',
      }),
    start: (launch, as, env = {}) =>
      startIn(
        argv(
          ['/bin/busybox', 'env', 'PATH=/bin', ...words(env), ...words(launch.env), ...launch.command, ...options],
          as,
        ),
      ),
  }
}

const words = (env: Readonly<Record<string, string>>) => Object.entries(env).map(([name, value]) => `${name}=${value}`)

const options = ['--config', '/lifecycle.json', '--state-dir', '/state/agent', '--auth', 'none']
options.push('--listen', '127.0.0.1:0', '--public-listen', '127.0.0.1:0')

function startIn(args: string[]): Started {
  const child = spawn('unshare', args, { env: { PATH: path }, stdio: ['ignore', 'pipe', 'pipe'] })
  const said: string[] = []
  let heard = Promise.withResolvers<string>()
  const hear = (line: string) => {
    said.push(line)
    const message = line.startsWith('{') ? JSON.parse(line) : {}
    if (message.msg === 'left to its successor') heard = Promise.withResolvers()
    if (message.msg === 'listening') heard.resolve(message.api)
  }
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', hear)
  const over = new Promise<void>(resolve => child.once('close', resolve))
  over.then(() => heard.reject(new Error(`the agent ended:\n${said.join('\n')}`)))
  heard.promise.catch(() => {})
  onTestFinished(async () => {
    // With PID 1 all others there end, and then unshare does.
    signal('SIGKILL')
    await over
  })
  const signal = (signal: NodeJS.Signals) => {
    for (const first of childrenOf(child.pid ?? 0)) process.kill(first, signal)
  }
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`http://${await heard.promise}${path}`, init)
    if (!response.ok) throw new Error(`${path} was answered with ${response.status}: ${await response.text()}`)
    return response
  }
  const get = async <T>(path: string): Promise<T> => (await ask(path)).json() as Promise<T>
  return {
    address: () => heard.promise,
    said,
    get,
    async put(id, action) {
      const headers = { 'content-type': 'application/json' }
      await ask(`/v1/runs/${id}`, { method: 'PUT', headers, body: JSON.stringify({ action }) })
    },
    state: () => get('/v1/state'),
    ended: id => get(`/v1/runs/${id}?wait=30s`),
    log: async id => (await ask(`/v1/runs/${id}/log`)).text(),
    signal,
  }
}

/** Empty for one that has ended. */
function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`
  return existsSync(path) ? readFileSync(path, 'latin1').trim().split(' ').filter(Boolean).map(Number) : []
}
