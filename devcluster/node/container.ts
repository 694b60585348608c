/**
 * A container: a program with a file tree of its own (sandbox.ts), and everything that it starts.
 *
 * Guarantee: when its first process has ended, all of it has; nothing of it outlives this process.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { processesWith, signal } from './identity.ts'
import type { Keeper } from './keeper.ts'
import type { Log } from './log.ts'
import type { Sandbox } from './sandbox.ts'

export interface Exit {
  /** As a container runtime has it: 128 and the signal's number for one that a signal has ended. */
  readonly code: number
  /** It did not begin: why. */
  readonly failure?: string | undefined
}

export interface Container {
  readonly id: string
  readonly startedAt: number
  /** Whether its program runs, or has. */
  readonly begun: Promise<boolean>
  /** Resolves when all of it has ended, and all that it wrote is in its log. */
  readonly ended: Promise<Exit>
  /** To its first process; SIGKILL ends all. */
  signal(name: NodeJS.Signals): void
  /** Of one that was started with an input. Nobody but its owner's wish ends it. */
  readonly stdin: Writable | undefined
  /** Calls back with all that it writes from now on; answers how to end that. */
  listen(listener: Listener): () => void
  /** The command line that runs another program beside it. */
  enter(argv: readonly string[]): string[]
}

export type Listener = (stream: 'stdout' | 'stderr', bytes: Buffer) => void

export interface ContainerOptions {
  readonly keeper: Keeper
  readonly sandbox: Sandbox
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly log: Log
  /** Whether it has an input. Else that is at its end at once. */
  readonly hasStdin: boolean
  readonly now: () => number
}

export function startContainer({ keeper, sandbox, argv, env, log, hasStdin, now }: ContainerOptions): Container {
  const id = randomBytes(32).toString('hex')
  const mark = { SHIPMATE_CONTAINER: id }
  const [file = '', ...args] = sandbox.start(argv)
  const child = keeper.spawn(file, args, {
    cwd: '/',
    env: { ...env, ...keeper.mark, ...mark },
    stdio: [hasStdin ? 'pipe' : 'ignore', 'pipe', 'pipe', 'pipe'],
  })
  const outer = child.pid ?? 0
  let first: number | undefined
  let exited = false
  let told = ''
  const report = child.stdio[3] as Readable | null
  const begun = new Promise<boolean>(resolve => {
    report?.on('data', (bytes: Buffer) => {
      told += bytes
      if (!told.startsWith('go\n')) return
      if (sandbox.hasPids) first = childOf(outer)
      if (first !== undefined) keeper.adopt(first)
      resolve(true)
    })
    report?.once('close', () => resolve(told.startsWith('go\n')))
    report?.on('error', () => resolve(false))
    if (!report) resolve(false)
  })
  const listeners = new Set<Listener>()
  // It may have ended before all is read.
  child.stdin?.on('error', () => {})
  const drained = Promise.all(
    (['stdout', 'stderr'] as const).map(name => {
      const stream = child[name]
      stream?.on('data', (bytes: Buffer) => {
        log.write(name, bytes)
        for (const listener of listeners) listener(name, bytes)
      })
      stream?.on('error', () => {})
      return new Promise<void>(resolve => (stream ? stream.once('close', () => resolve()) : resolve()))
    }),
  )
  const ended = new Promise<Exit>(resolve => {
    child.once('error', error => resolve({ code: 128, failure: error.message }))
    child.once('exit', async (code, by) => {
      exited = true
      if (first !== undefined) keeper.forget(first)
      // Without a namespace its processes are found by their environment; where that cannot be read, by their group.
      if (!sandbox.hasPids) for (const pid of processesWith(`SHIPMATE_CONTAINER=${id}`)) signal(pid, 'SIGKILL')
      await drained
      log.close()
      if (!(await begun)) return resolve({ code: 128, failure: told.trim() || `${argv[0]} cannot be started` })
      resolve({ code: by ? 128 + constants.signals[by] : (code ?? 255) })
    })
  })
  return {
    id,
    startedAt: now(),
    begun,
    ended,
    signal(name) {
      if (exited || outer === 0) return
      const target = sandbox.hasPids ? (first ?? childOf(outer)) : outer
      if (target !== undefined) signal(target, name)
      if (name !== 'SIGKILL') return
      signal(-outer, 'SIGKILL')
      if (!sandbox.hasPids) for (const pid of processesWith(`SHIPMATE_CONTAINER=${id}`)) signal(pid, 'SIGKILL')
    },
    stdin: child.stdin ?? undefined,
    listen(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    enter: words => sandbox.enter(words, outer, first ?? outer),
  }
}

/** The child of `unshare`, which is the first process inside. */
function childOf(pid: number): number | undefined {
  try {
    const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').filter(Boolean)
    return first === undefined ? undefined : Number(first)
  } catch {
    return undefined
  }
}
