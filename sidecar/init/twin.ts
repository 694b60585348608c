/**
 * `shipmate-init exec` where it could not be compiled: the same files in the same order, as far as Node can. What it cannot: hold the command
 * until `child` is written, take the command with it when it is killed, or find a descendant that left the process group.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants as fs, readdirSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { type Clock, sleep, systemClock } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import { claim, syncFolder, writeSynced } from './claim.ts'
import { startOf } from './identity.ts'
import { createNotes, type Lines } from './lines.ts'
import { createRedactor, type Redactor } from './redact.ts'
import { createSegments } from './segments.ts'
import { type ExecOptions, parseExec } from './twin-options.ts'

const exitCode = { done: 0, usage: 2, claimed: 3, unclaimed: 4, unrecorded: 5 }
const recordBytes = 512
/** Milliseconds: how often the rest of a process group is looked at, and for how long after SIGKILL. */
const lookEvery = 20
const lookFor = 10_000

interface End {
  cause: 'exited' | 'cancelled' | 'timedOut' | 'notExecuted'
  code: number | null
  signal: string | null
  error: string | null
}

/** @param argv what follows `exec`; @returns what to exit with. Standard input is the secrets, the environment is the command's. */
export async function execRun(argv: string[]): Promise<number> {
  const clock = systemClock
  // First of all: until somebody listens, Node takes SIGUSR1 for the wish to be debugged. Whoever cancels waits for the claim; --disable-sigusr1 would block it for good.
  const cancel = new AbortController()
  process.on('SIGUSR1', () => cancel.abort())
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined)
  const options = parseExec(argv)
  if (typeof options === 'string') return complain(exitCode.usage, options)
  let secrets: Buffer[]
  try {
    secrets = await readSecrets(process.stdin)
    if (!claim(options.dir, 'wrapper', clock)) return exitCode.claimed
    writeSynced(join(options.dir, 'exit.new'), 'w', ' '.repeat(recordBytes))
  } catch (error) {
    return notBegun(messageOf(error))
  }
  const segments = createSegments({
    dir: options.log,
    offset: options.logOffset,
    head: options.logHead,
    tail: options.logTail,
    clock,
  })
  const notes = createNotes(options.dir, clock)
  const outputs = [true, false].map(isOutput =>
    createOutput(createRedactor(secrets), notes.lines(isOutput), segments.write),
  )
  // A signal that came meanwhile is heard before the command begins.
  await new Promise(resolve => setImmediate(resolve))
  const end = await execute(options, outputs, cancel.signal, clock)
  segments.close()
  emptyParams(options.dir)
  notes.end()
  return recordEnd(options.dir, { ...end, at: clock.now(), log: segments.size }, clock)
}

async function readSecrets(from: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const chunks: Buffer[] = []
  for await (const chunk of from) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  const secrets: Buffer[] = []
  let at = 0
  const number = () => {
    at += 4
    return at <= bytes.length ? bytes.readUInt32BE(at - 4) : Number.POSITIVE_INFINITY
  }
  // Their number comes first: what ends before is cut off, be it with nothing said at all.
  for (let left = number(); left > 0 && at <= bytes.length; left--) {
    const length = number()
    at += length
    if (at <= bytes.length) secrets.push(bytes.subarray(at - length, at))
  }
  if (at !== bytes.length) throw new Error('secrets: EPROTO')
  return secrets
}

interface Output {
  push(data: Buffer): void
  end(): void
}

function createOutput(redactor: Redactor, lines: Lines, write: (data: Buffer) => void): Output {
  const keep = (data: Buffer) => {
    write(data)
    lines.push(data)
  }
  return {
    push: data => keep(redactor.push(data)),
    end() {
      keep(redactor.end())
      lines.end()
    },
  }
}

async function execute(options: ExecOptions, outputs: Output[], cancelled: AbortSignal, clock: Clock): Promise<End> {
  if (cancelled.aborted) return { cause: 'cancelled', code: null, signal: options.cancelSignal, error: null }
  let child: ChildProcess
  try {
    child = start(options)
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
  } catch (error) {
    return { cause: 'notExecuted', code: null, signal: null, error: failureOf(error, options) }
  }
  const pid = child.pid ?? 0
  const ended = new Promise<Pick<End, 'code' | 'signal'>>(resolve =>
    child.once('exit', (code, signal) => resolve({ code, signal })),
  )
  const quiet = follow(child, outputs, clock)
  let cause: End['cause'] = 'exited'
  let killAt = Number.POSITIVE_INFINITY
  const stop = new AbortController()
  const begin = (reason: 'cancelled' | 'timedOut') => {
    if (stop.signal.aborted || cause !== 'exited') return
    cause = reason
    killAt = clock.monotonic() + options.grace
    signalGroup(pid, options.cancelSignal)
    sleep(clock, options.grace, stop.signal).then(
      () => signalGroup(pid, 'SIGKILL'),
      () => undefined,
    )
  }
  if (cancelled.aborted) begin('cancelled')
  cancelled.addEventListener('abort', () => begin('cancelled'), { once: true })
  if (options.timeout !== undefined) {
    sleep(clock, options.timeout, stop.signal).then(
      () => begin('timedOut'),
      () => undefined,
    )
  }
  try {
    writeFileSync(join(options.dir, 'child.new'), `${JSON.stringify({ pid, start: startOf(pid) })}\n`, { mode: 0o600 })
    renameSync(join(options.dir, 'child.new'), join(options.dir, 'child'))
  } catch {
    // Too late to keep it from starting.
  }
  const how = await ended
  stop.abort(new Error('the command has ended'))
  if (cause !== 'exited') await endGroup(pid, killAt, clock)
  await quiet()
  return { cause, ...how, error: null }
}

function start({ command, args, cwd, uid, gid, nice }: ExecOptions): ChildProcess {
  // The wrapper's own, so that the command begins with it.
  if (nice !== undefined) setPriority(0, nice)
  if (cwd !== undefined) {
    if (!statSync(cwd).isDirectory())
      throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR', syscall: 'stat' })
    accessSync(cwd, fs.X_OK)
  }
  return spawn(command, args, {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: process.env,
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  })
}

function failureOf(error: unknown, { uid, gid }: ExecOptions): string {
  const { syscall = '', code = messageOf(error) } = error as NodeJS.ErrnoException
  if (syscall === 'stat' || syscall === 'access') return `chdir: ${code}`
  if (syscall.includes('etpriority')) return `nice: ${code}`
  if (code === 'EPERM' && (uid ?? gid) !== undefined) return `${uid === undefined ? 'setgid' : 'setuid'}: ${code}`
  return `exec: ${code}`
}

/** Reads what the command writes. What it answers resolves when that is over, or when nothing has come for a moment. */
function follow(child: ChildProcess, outputs: Output[], clock: Clock): () => Promise<void> {
  let heard = 0
  let open = 0
  for (const [i, stream] of [child.stdout, child.stderr].entries()) {
    const output = outputs[i]
    if (!stream || !output) continue
    open++
    stream.on('data', (data: Buffer) => {
      heard++
      output.push(data)
    })
    stream.once('close', () => {
      open--
      output.end()
    })
  }
  return async () => {
    const until = clock.monotonic() + 1000
    for (let before = -1; open > 0 && before !== heard && clock.monotonic() < until; ) {
      before = heard
      await sleep(clock, lookEvery)
    }
    for (const stream of [child.stdout, child.stderr]) {
      if (!stream || stream.closed) continue
      stream.destroy()
      await new Promise(resolve => stream.once('close', resolve))
    }
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** Gives the rest of the group until `killAt`, then kills it. */
async function endGroup(pid: number, killAt: number, clock: Clock): Promise<void> {
  while (signalGroup(pid, 0) && clock.monotonic() < killAt + lookFor) {
    if (clock.monotonic() >= killAt) signalGroup(pid, 'SIGKILL')
    await sleep(clock, lookEvery)
  }
}

function emptyParams(dir: string): void {
  try {
    for (const name of readdirSync(join(dir, 'params'))) unlinkSync(join(dir, 'params', name))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      complain(0, `secret parameters could not be removed: ${messageOf(error)}`)
  }
}

async function recordEnd(dir: string, end: object, clock: Clock): Promise<number> {
  const text = `${JSON.stringify(end).padEnd(recordBytes - 1)}\n`
  for (let isWritten = false; ; ) {
    try {
      if (!isWritten) writeSynced(join(dir, 'exit.new'), 'r+', text)
      isWritten = true
      renameSync(join(dir, 'exit.new'), join(dir, 'exit'))
      syncFolder(dir)
      return exitCode.done
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOSPC' && code !== 'EDQUOT') {
        return complain(exitCode.unrecorded, `the end of the command could not be written down: ${messageOf(error)}`)
      }
      await sleep(clock, 1000)
    }
  }
}

/** Said twice: for the log, and for the agent, which tells whoever asks. */
function notBegun(reason: string): number {
  process.stdout.write(`${reason}\n`)
  return complain(exitCode.unclaimed, `nothing was executed: ${reason}`)
}

function complain(code: number, msg: string): number {
  process.stderr.write(
    `${JSON.stringify({ level: 'error', time: new Date(systemClock.now()), name: 'shipmate-init', msg })}\n`,
  )
  return code
}
