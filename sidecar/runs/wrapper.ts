/**
 * Starts the wrapper of an exec run, and waits for one: of this agent's own, or one that an earlier agent has left.
 *
 * Guarantee: the wrapper outlives the agent. What it has done is told by the files in its folder, never by the agent's memory.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { type Clock, sleep } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import { isAlive, killGroup, ownIdentity } from '../init/identity.ts'
import { type Claim, readChild, readExit } from './folder.ts'

/** How often a wrapper that is not our child is looked at, in milliseconds. */
const lookEvery = 200

export interface WrapperCall {
  /** The program and its first arguments: `shipmate-init exec`, or its twin. */
  readonly init: readonly string[]
  readonly folder: string
  /** The run's log, which all its steps share. */
  readonly logFolder: string
  readonly logOffset: number
  readonly log: { readonly head: number; readonly tail: number }
  readonly timeoutMs: number
  readonly cancelSignal: string
  readonly graceMs: number
  readonly workingDir: string | undefined
  readonly user: { readonly uid: number; readonly gid?: number | undefined } | undefined
  readonly nice: number
  readonly command: readonly string[]
  /** All of the command's environment. */
  readonly env: Readonly<Record<string, string>>
  /** What must not be seen in the log. */
  readonly secrets: readonly string[]
}

export interface Wrapper {
  /** Resolves when it has ended: with nothing, or with why it has executed nothing. */
  readonly ended: Promise<string | undefined>
  cancel(): void
}

export function startWrapper(call: WrapperCall): Wrapper {
  const [program = '', ...first] = call.init
  const child = spawn(program, [...first, ...flags(call), '--', ...call.command], {
    // A session of its own: what ends the agent's group does not end it.
    detached: true,
    cwd: '/',
    env: call.env,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  child.unref()
  child.stdin.on('error', () => {})
  child.stdin.end(framed(call.secrets))
  const ended = new Promise<string | undefined>(resolve => {
    child.once('error', error => resolve(`${program} could not be started: ${messageOf(error)}`))
    child.once('exit', code =>
      resolve(code === 4 ? 'it could not be claimed: the log of the sidecar says why' : undefined),
    )
  })
  return { ended, cancel: () => child.kill('SIGUSR1') }
}

/** Takes over a wrapper that an earlier agent has started. */
export function adoptWrapper(folder: string, claim: Claim, clock: Clock, signal: AbortSignal): Wrapper {
  const watch = async () => {
    while (isAlive(claim) && !(await readExit(folder))) await sleep(clock, lookEvery, signal)
    return undefined
  }
  return {
    ended: watch(),
    cancel: () => {
      if (isAlive(claim)) process.kill(claim.pid, 'SIGUSR1')
    },
  }
}

/** What is left of a command whose wrapper died is ended, so that nothing runs beside what comes next. */
export async function endLeftovers(folder: string, claim: Claim): Promise<void> {
  const child = await readChild(folder)
  const { boot, pidns } = ownIdentity()
  if (child && boot !== '' && claim.boot === boot && claim.pidns === pidns) killGroup(child)
}

function flags(call: WrapperCall): string[] {
  const { user } = call
  const values: Record<string, string | number | undefined> = {
    dir: call.folder,
    log: call.logFolder,
    'log-offset': call.logOffset,
    'log-head': call.log.head,
    'log-tail': call.log.tail,
    timeout: Math.max(1, Math.ceil(call.timeoutMs)),
    'cancel-signal': call.cancelSignal,
    grace: call.graceMs,
    cwd: call.workingDir,
    uid: user?.uid,
    gid: user?.gid,
    nice: call.nice || undefined,
  }
  return Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, String(value)]))
}

function framed(secrets: readonly string[]): Buffer {
  return Buffer.concat(
    secrets.flatMap(secret => {
      const bytes = Buffer.from(secret)
      const length = Buffer.alloc(4)
      length.writeUInt32BE(bytes.length)
      return [length, bytes]
    }),
  )
}

/** Where the log of a run is. */
export function logFolder(folder: string): string {
  return join(folder, 'log')
}
