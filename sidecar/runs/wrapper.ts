/**
 * Starts the wrapper of an exec run, and waits for one: of this agent's own, or one that an earlier agent has left.
 *
 * Guarantees: the wrapper outlives the agent. What it has done is told by the files in its folder, never by the agent's memory. A cancel is not lost, however early
 * it comes: it is sent once there is a claim, as the wrapper listens by then, and again until the end is written down.
 */
import { spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { type Clock, sleep } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import { bounded } from '../calls/bounded.ts'
import { isAlive, killGroup, ownIdentity } from '../init/identity.ts'
import { type Claim, readChild, readClaim, readExit } from './folder.ts'

/** How often a wrapper that is not our child, or is being cancelled, is looked at, in milliseconds. */
const lookEvery = 200
/** The same until there is a claim, which does not take long. */
const lookForClaimEvery = 20

/** The exit code of a wrapper that has executed nothing, and says why on its standard output. */
const unclaimed = 4
const longestReason = 512

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
  readonly clock: Clock
}

export interface Wrapper {
  /** Resolves when it has ended: with nothing, or with why it has executed nothing. */
  readonly ended: Promise<string | undefined>
  /** Begins the cancel contract. More than once is as once. */
  cancel(): void
}

export function startWrapper(call: WrapperCall): Wrapper {
  const [program = '', ...first] = call.init
  const child = spawn(program, [...first, ...flags(call), '--', ...call.command], {
    // A session of its own: what ends the agent's group does not end it.
    detached: true,
    cwd: '/',
    env: call.env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.unref()
  child.stdin.on('error', () => {})
  child.stdin.end(framed(call.secrets))
  const said = bounded(longestReason)
  child.stdout.on('data', said.add).on('error', () => {})
  // Its type says nothing of it, but a pipe is a socket, which would keep the agent from ending.
  ;(child.stdout as Socket).unref()
  const ended = new Promise<string | undefined>(resolve => {
    child.once('error', error => resolve(`${program} could not be started: ${messageOf(error)}`))
    child.once('exit', code => {
      if (code !== unclaimed) resolve(undefined)
      else
        child.once('close', () => resolve(`its wrapper could not begin: ${said.text().trim() || 'it did not say why'}`))
    })
  })
  let hasEnded = false
  ended.then(() => {
    hasEnded = true
  })
  const cancelling = { clock: call.clock, hasEnded: () => hasEnded, send: () => void child.kill('SIGUSR1') }
  return { ended, cancel: canceller(call.folder, cancelling) }
}

interface Cancelling {
  readonly clock: Clock
  readonly hasEnded: () => boolean
  readonly send: () => void
}

function canceller(folder: string, { clock, hasEnded, send }: Cancelling): () => void {
  const insist = async () => {
    while (!(hasEnded() || (await readExit(folder)))) {
      const claimed = await readClaim(folder)
      const isClaimed = claimed === 'damaged' || claimed?.by === 'wrapper'
      if (isClaimed && !hasEnded()) send()
      await sleep(clock, isClaimed ? lookEvery : lookForClaimEvery)
    }
  }
  let isAsked = false
  return () => {
    if (isAsked) return
    isAsked = true
    // A folder that cannot be read says nothing about who listens; the signal is all there is then.
    insist().catch(() => hasEnded() || send())
  }
}

/** Takes over a wrapper that an earlier agent has started. */
export function adoptWrapper(folder: string, claim: Claim, clock: Clock, signal: AbortSignal): Wrapper {
  const watch = async () => {
    while (isAlive(claim) && !(await readExit(folder))) await sleep(clock, lookEvery, signal)
    return undefined
  }
  const hasEnded = () => signal.aborted || !isAlive(claim)
  return { ended: watch(), cancel: canceller(folder, { clock, hasEnded, send: () => signalWrapper(claim.pid) }) }
}

function signalWrapper(pid: number): void {
  try {
    process.kill(pid, 'SIGUSR1')
  } catch {
    // It has ended.
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

/** How many there are, then each with its length: an agent that dies before it has sent them all is found out. */
function framed(secrets: readonly string[]): Buffer {
  const number = (value: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return bytes
  }
  const frames = secrets.map(secret => Buffer.from(secret)).flatMap(bytes => [number(bytes.length), bytes])
  return Buffer.concat([number(secrets.length), ...frames])
}

/** Where the log of a run is. */
export function logFolder(folder: string): string {
  return join(folder, 'log')
}
