/**
 * What the API server asks of a node for people: logs, commands, connections.
 *
 * A terminal is made by the program `script`, which each Linux and macOS has; without it a command runs without one.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, pipeline, type Readable } from 'node:stream'
import { ApiError, badRequest } from '../api/problems.ts'
import type { ExecSession, PodPlace, PodRuntime } from '../api/types.ts'
import { attachTo } from './attach.ts'
import type { Container } from './container.ts'
import { signal } from './identity.ts'
import type { Keeper } from './keeper.ts'
import type { PodLife } from './pod.ts'
import type { Slot } from './slot.ts'

export function createRuntime(lifeOf: (uid: string) => PodLife | undefined, keeper: Keeper): PodRuntime {
  const found = (pod: PodPlace): PodLife => {
    const life = lifeOf(pod.uid)
    if (!life) throw new ApiError(404, 'NotFound', `pod "${pod.name}" does not run on this node`)
    return life
  }
  const slotOf = (pod: PodPlace, name: string): Slot => {
    const slot = found(pod).slots.find(({ spec }) => spec.name === name)
    if (!slot) throw badRequest(`container ${name} is not valid for pod ${pod.name}`)
    return slot
  }
  return {
    async *logs(pod, options, aborted) {
      const { container } = options
      const slot = slotOf(pod, container)
      const log = options.previous ? slot.previousLog : slot.log
      if (options.previous && !log)
        throw badRequest(`previous terminated container "${container}" in pod "${pod.name}" not found`)
      if (!log) {
        const why = slot.life.is === 'waiting' ? slot.life.reason : 'ContainerCreating'
        throw badRequest(`container "${container}" in pod "${pod.name}" is waiting to start: ${why}`)
      }
      yield* log.read(options, aborted)
    },

    async exec(pod, { container, command, stdin, tty }) {
      const life = found(pod)
      const slot = slotOf(pod, container)
      const running = runningOf(slot)
      const inside = running.enter(life.words(slot, command))
      const terminal = tty ? terminalOf(inside) : undefined
      const [file = '', ...args] = terminal?.command ?? inside
      const env = { ...slot.env, ...(tty && { TERM: slot.env['TERM'] ?? 'xterm' }) }
      const child = keeper.spawn(file, args, {
        cwd: '/',
        env: { ...env, ...keeper.mark, SHIPMATE_CONTAINER: running.id },
        stdio: [stdin || tty ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      })
      const { stdout, stderr } = child
      if (!stdout || !stderr) throw new ApiError(500, 'InternalError', 'the command cannot be started')
      // Who has gone away does not want the rest.
      for (const stream of [child.stdin, stdout, stderr]) stream?.on('error', () => {})
      let hasEnded = false
      const kill = () => {
        // Its number may be another's by then.
        if (child.pid === undefined || hasEnded) return
        signal(-child.pid, 'SIGKILL')
        signal(child.pid, 'SIGKILL')
      }
      const exit = new Promise<number>(resolve => {
        const end = (code: number) => {
          hasEnded = true
          terminal?.remove()
          resolve(code)
        }
        child.once('error', () => end(127))
        child.once('exit', (code, by) => end(by ? 128 + constants.signals[by] : (code ?? 255)))
      })
      // What it started goes with its container at the latest.
      void running.ended.then(kill)
      const session: ExecSession = {
        stdin: stdin ? (child.stdin ?? undefined) : undefined,
        stdout: kept(stdout),
        stderr: tty ? undefined : kept(stderr),
        resize: (width, height) => terminal?.resize(width, height),
        exit,
        kill,
      }
      if (tty) stderr.resume()
      return session
    },

    async attach(pod, { container, stdin }) {
      const slot = slotOf(pod, container)
      return attachTo(runningOf(slot), stdin, slot.spec.stdinOnce === true)
    },

    connect(pod, port) {
      const { ip, ports } = found(pod).addresses
      return new Promise((resolve, reject) => {
        const socket = connect({ host: ip, port: ports.get(port) ?? port, allowHalfOpen: true })
        socket.once('connect', () => {
          socket.off('error', reject)
          resolve(socket)
        })
        socket.once('error', reject)
      })
    },
  }
}

/** Node throws away what nobody has read when a process ends; the caller may be yet to come. */
function kept(output: Readable): Readable {
  const stream = new PassThrough()
  pipeline(output, stream, () => {})
  return stream
}

function runningOf({ container, life, spec }: Slot): Container {
  if (container && life.is === 'running') return container
  throw new ApiError(500, 'InternalError', `unable to upgrade connection: container not found ("${spec.name}")`)
}

interface Terminal {
  readonly command: string[]
  resize(width: number, height: number): void
  remove(): void
}

const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`

/** The command line that runs another at a terminal; undefined where there is no such program. */
function terminalOf(argv: readonly string[]): Terminal | undefined {
  const program = ['/usr/bin/script', '/bin/script'].find(path => existsSync(path))
  if (!program) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'shipmate-tty-'))
  const name = join(folder, 'name')
  // It says which terminal it has, so that the terminal's size can be set from outside.
  const inner = `tty >${quote(name)}; exec ${argv.map(quote).join(' ')}`
  const isMac = process.platform === 'darwin'
  const command = isMac
    ? [program, '-q', '/dev/null', '/bin/sh', '-c', inner]
    : [program, '-q', '-e', '-f', '-c', inner, '/dev/null']
  return {
    command,
    resize(width, height) {
      let device = ''
      try {
        device = readFileSync(name, 'utf8').trim()
      } catch {
        // It has not begun, or has ended.
      }
      if (!device.startsWith('/dev/')) return
      const size = ['cols', String(width), 'rows', String(height)]
      execFile('stty', [isMac ? '-f' : '-F', device, ...size], () => {})
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
