/**
 * Runs a short command, for probes and verify: never through a shell, and never longer than it may take.
 *
 * Guarantees: it never rejects. The command has a process group of its own, which is killed as a whole when the time is up or the signal is aborted. Its
 * environment is what is declared, and PATH; nothing of the agent's. A grandchild that keeps the output open is not waited for.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { Clock, Timer } from '../../shared/clock.ts'
import { type Bounded, bounded } from './bounded.ts'

export interface CommandOptions {
  /** The program and its arguments. */
  readonly command: readonly string[]
  /** The environment. PATH is the agent's unless it is declared. Default: PATH alone. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Default: `/`, as for the command of a run. */
  readonly workingDir?: string | undefined
  /** Whom it runs as. Default: as the agent does. */
  readonly user?: { readonly uid: number; readonly gid?: number | undefined } | undefined
  /** Killed after so long. Default: `signal` alone ends it. */
  readonly timeoutMs?: number | undefined
  readonly clock: Clock
  /** Kills it. */
  readonly signal?: AbortSignal | undefined
  /** So many bytes are kept of the beginning of each of its two outputs. The rest is read and dropped. */
  readonly outputLimit: number
  /** Default: nothing, that is, /dev/null. */
  readonly stdin?: string | Buffer | undefined
}

export type CommandExit =
  | { readonly code: number }
  /** Ended by a signal that somebody else sent. */
  | { readonly signal: NodeJS.Signals }
  | { readonly timedOut: true }
  | { readonly aborted: true }
  /** It was not executed; the text begins with `spawn` and the system's code. */
  | { readonly failed: string }

export interface CommandResult {
  readonly exit: CommandExit
  readonly stdout: string
  readonly stderr: string
  /** How many bytes are missing from each output. */
  readonly dropped: { readonly stdout: number; readonly stderr: number }
  /** Only if it was killed and is there nevertheless, as one that hangs in a system call is: resolves when it has ended. */
  readonly lingering?: Promise<void>
}

/** How long a killed command is waited for, in milliseconds, before it is reported as lingering. */
const killWait = 1000

export function runCommand(options: CommandOptions): Promise<CommandResult> {
  return new Promise(resolve => {
    const { clock, signal, stdin } = options
    const stdout = bounded(options.outputLimit)
    const stderr = bounded(options.outputLimit)
    const result = (exit: CommandExit, lingering?: Promise<void>): CommandResult => ({
      exit,
      stdout: stdout.text(),
      stderr: stderr.text(),
      dropped: { stdout: stdout.dropped, stderr: stderr.dropped },
      ...(lingering && { lingering }),
    })
    if (signal?.aborted) return resolve(result({ aborted: true }))
    let child: ChildProcess
    try {
      child = start(options)
    } catch (error) {
      return resolve(result({ failed: reasonOf(error, options) }))
    }

    let killed: CommandExit | undefined
    let done = false
    let timer: Timer | undefined
    const finish = (exit: CommandExit, lingering?: Promise<void>) => {
      if (done) return
      done = true
      timer?.cancel()
      signal?.removeEventListener('abort', abort)
      child.stdin?.destroy()
      child.stdout?.destroy()
      child.stderr?.destroy()
      resolve(result(exit, lingering))
    }
    const kill = (why: CommandExit) => {
      // Once it has ended its number may be somebody else's.
      if (killed || child.exitCode !== null || child.signalCode !== null) return
      killed = why
      signal?.removeEventListener('abort', abort)
      timer?.cancel()
      killGroup(child)
      timer = clock.after(killWait, () => {
        const lingering = new Promise<void>(ended => child.once('exit', () => ended()))
        finish(why, lingering)
        child.unref()
      })
    }
    const abort = () => kill({ aborted: true })

    child.once('error', error => {
      // Any other error, as of a signal that could not be sent, leaves the end to the exit.
      if (child.pid === undefined) finish({ failed: reasonOf(error, options) })
    })
    if (child.pid === undefined) return
    child.once('exit', (code, by) => {
      const exit: CommandExit = killed ?? (by ? { signal: by } : { code: code ?? 0 })
      timer?.cancel()
      drained(child, () => finish(exit))
    })
    keep(child.stdout, stdout)
    keep(child.stderr, stderr)
    if (child.stdin) {
      child.stdin.on('error', () => {})
      child.stdin.end(stdin)
    }
    signal?.addEventListener('abort', abort, { once: true })
    if (options.timeoutMs !== undefined) timer = clock.after(options.timeoutMs, () => kill({ timedOut: true }))
  })
}

function start({ command, env, workingDir, user, stdin }: CommandOptions): ChildProcess {
  const [program = '', ...args] = command
  const path = env?.['PATH'] ?? process.env['PATH']
  return spawn(program, args, {
    env: path === undefined ? { ...env } : { ...env, PATH: path },
    cwd: workingDir ?? '/',
    ...(user && { uid: user.uid }),
    ...(user?.gid !== undefined && { gid: user.gid }),
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    detached: true,
  })
}

function keep(from: Readable | null, into: Bounded): void {
  from?.on('data', into.add)
  from?.on('error', () => {})
}

/**
 * Calls once what an ended child has written is read: when both outputs have ended, or two turns of the event loop later. Each turn reads all that is
 * there, and who still keeps an output open is a grandchild.
 */
function drained({ stdout, stderr }: ChildProcess, run: () => void): void {
  const open = [stdout, stderr].filter(output => output && !output.closed).length
  if (open === 0) return run()
  let left = open
  const closed = () => {
    left--
    if (left === 0) run()
  }
  stdout?.once('close', closed)
  stderr?.once('close', closed)
  setImmediate(() => setImmediate(run))
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended, and is about to be reaped; or it runs as somebody whom we may not signal, and lingers.
  }
}

function reasonOf(error: unknown, { command, workingDir }: CommandOptions): string {
  const { code, message } = error as NodeJS.ErrnoException
  const program = JSON.stringify(command[0] ?? '')
  if (workingDir !== undefined && code === 'ENOENT' && !existsSync(workingDir)) {
    return `spawn ENOENT: the working directory ${JSON.stringify(workingDir)} does not exist`
  }
  if (code === 'ENOENT') return `spawn ENOENT: there is no program ${program} on the PATH or at this path`
  if (code === 'EACCES') return `spawn EACCES: ${program} may not be executed, or its working directory not be entered`
  if (code === 'EPERM') return `spawn EPERM: ${program} may not be run as that user`
  return `spawn ${code ?? 'failed'}: ${program}: ${message}`
}
