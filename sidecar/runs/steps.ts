/**
 * Carries out the steps that the agent itself must drive: http calls, signals, waiting for a file, and commands among them.
 *
 * Guarantees: each step is journaled before it begins. The agent claims the run first, so that no other agent begins it; what a crash interrupts stays Unknown.
 * That nothing was started is said of a run only if none of its steps was begun. Secrets are gone from a step's folder when it has ended, however it did.
 */
import { type Clock, sleep } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Step } from '../../shared/lifecycle/model.ts'
import { expand } from '../../shared/params/template.ts'
import type { Exit } from '../../shared/run.ts'
import { hashOfFile } from '../calls/file.ts'
import { findProcesses, signalProcess } from '../calls/process.ts'
import { ownIdentity } from '../init/identity.ts'
import { createRedactor } from '../init/redact.ts'
import { createSegments, type Segments } from '../init/segments.ts'
import type { Execution, Job, Surroundings } from './carry-out.ts'
import { ended, ownEnd, prepare, start } from './command.ts'
import { reasonOf, removeSecrets, spellings } from './environment.ts'
import { claim, makeFolder, stepFolder } from './folder.ts'
import { carryOutHttp } from './http-step.ts'
import { logShares } from './view.ts'
import { logFolder, type Wrapper } from './wrapper.ts'

const lookAtFileEvery = 1000

/** How a step ended; `result` is what it answered, if it answers anything. */
export interface StepEnd {
  readonly exit: Exit
  readonly result?: unknown
}

/** What a step has around it. */
export interface StepContext {
  readonly job: Job
  readonly clock: Clock
  /** Aborted when the run is cancelled or its time is up. */
  readonly cut: AbortSignal
  /** Why it was aborted. */
  readonly cause: () => 'cancelled' | 'timedOut'
  /** Writes a line into the run's log. */
  readonly say: (line: string) => void
}

export const done: Exit = { cause: 'exited', code: 0, signal: null, error: null }

export function carryOutSteps(
  job: Job,
  steps: readonly Step[],
  surroundings: Surroundings,
  closing: AbortSignal,
): Execution {
  const { stateDir, clock, fault, journal, log, init } = surroundings
  const { run, action, params, runFolder } = job
  const cutting = new AbortController()
  let cause: 'cancelled' | 'timedOut' = 'cancelled'
  let cancelWrapper: (() => void) | undefined
  let written = 0
  const began = clock.monotonic()
  const secrets = spellings(params).map(secret => Buffer.from(secret))
  let segments: Segments | undefined
  /** What each file was when its change was seen: that is what will have been loaded. */
  const files: Record<string, string> = {}
  const deadline = clock.after(run.timeoutMs, () => cut('timedOut'))
  // A command among the steps goes on: the next agent finds it.
  const letGo = () => cutting.abort(closing.reason)
  closing.addEventListener('abort', letGo, { once: true })

  function cut(why: 'cancelled' | 'timedOut'): void {
    if (cutting.signal.aborted) return
    cause = why
    cutting.abort(new Error(why))
    // A wrapper keeps the time itself, so that how it ended is told rightly by its files, too.
    if (why === 'cancelled') cancelWrapper?.()
  }

  function say(line: string): void {
    segments ??= createSegments({ dir: logFolder(runFolder), offset: written, clock, ...logShares(run.logKept) })
    const redactor = createRedactor(secrets)
    segments.write(Buffer.concat([redactor.push(Buffer.from(`${line}\n`)), redactor.end()]))
    written = segments.size
  }

  /** The log is the wrapper's while a command runs. */
  function letGoOfLog(): void {
    segments?.close()
    segments = undefined
  }

  const context: StepContext = { job, clock, cut: cutting.signal, cause: () => cause, say }

  const notBegun = (step: number, reason: string, why: 'JournalFull' | 'NotExecuted') =>
    ended('exited', `step ${step + 1} of ${steps.length} was not begun: ${reason}`, why)

  async function command(step: number, argv: readonly string[]): Promise<StepEnd> {
    const folder = stepFolder(runFolder, step)
    const call = {
      stateDir,
      init,
      clock,
      run,
      action,
      command: argv,
      surroundings: { runId: run.id, fence: run.fence, params, folder },
      runFolder,
      logOffset: written,
      timeoutMs: Math.max(run.timeoutMs - (clock.monotonic() - began), 1),
    }
    const early = () => ended(cause, `before step ${step + 1} of ${steps.length} was begun`)
    let wrapper: Wrapper
    letGoOfLog()
    try {
      await prepare(call)
      if (cutting.signal.aborted) return { exit: early() }
      wrapper = start(call)
    } catch (error) {
      return { exit: notBegun(step, reasonOf(error, params), 'NotExecuted') }
    }
    cancelWrapper = wrapper.cancel
    fault('step.spawned')
    job.onStep(step, folder)
    const exit = await ownEnd(folder, clock, await wrapper.ended)
    cancelWrapper = undefined
    if ('log' in exit && typeof exit.log === 'number') written = Math.max(written, exit.log)
    if (exit.cause !== 'notStarted') return { exit }
    return { exit: cutting.signal.aborted ? early() : notBegun(step, exit.error ?? '', 'NotExecuted') }
  }

  async function one(index: number, step: Step): Promise<StepEnd> {
    if (step.exec) {
      const secrets = stepFolder(runFolder, index)
      return command(index, step.exec.command).finally(() => removeSecrets(secrets).catch(() => {}))
    }
    job.onStep(index, stepFolder(runFolder, index))
    fault('step.before')
    if (step.http) return carryOutHttp(step.http, context)
    if (step.signal) return { exit: signal(step.signal, context) }
    if (step.fileChanged) return { exit: await fileChanged(step.fileChanged, context, surroundings, files) }
    return { exit: ended('notExecuted', `step ${index + 1} has nothing to do`) }
  }

  async function all(): Promise<StepEnd> {
    let last: StepEnd = { exit: done }
    try {
      await makeFolder(runFolder)
      await makeFolder(logFolder(runFolder))
      if (!(await claim(runFolder, clock))) return { exit: ended('lost', 'somebody else has claimed it') }
    } catch (error) {
      return { exit: ended('notStarted', `was accepted, but never started: ${messageOf(error)}`) }
    }
    for (const [index, step] of steps.entries()) {
      if (cutting.signal.aborted) return { exit: ended(cause, `before step ${index + 1} of ${steps.length}`) }
      try {
        await journal.append({
          t: 'running',
          id: run.id,
          step: index,
          at: clock.now(),
          boot: ownIdentity().boot,
          mono: clock.monotonic(),
        })
      } catch (error) {
        return { exit: notBegun(index, messageOf(error), 'JournalFull') }
      }
      fault('step.journaled')
      const end = await one(index, step)
      if (!(end.exit.cause === 'exited' && end.exit.code === 0 && end.exit.why === undefined)) return end
      last = end.result === undefined ? { ...end, result: last.result } : end
    }
    await rememberFiles(files, surroundings)
    return last
  }

  const result = all()
    .catch((error): StepEnd => {
      const reason = reasonOf(error, params)
      log.error({ reason, run: run.id }, 'a run could not be carried out as it should')
      return { exit: ended('lost', reason) }
    })
    .finally(() => {
      deadline.cancel()
      closing.removeEventListener('abort', letGo)
      letGoOfLog()
    })
  return { ended: result, cancel: () => cut('cancelled'), outlivesAgent: false }
}

/** To the oldest of that name: where a server has several processes, the others are its children. */
function signal({ process: name, signal }: NonNullable<Step['signal']>, { say }: StepContext): Exit {
  try {
    const [oldest] = findProcesses(name)
    if (!oldest || signalProcess(oldest, signal) === 'gone') {
      return ended(
        'exited',
        `there is no process ${JSON.stringify(name)}; it can be seen only if the pod shares its process namespace`,
        'NoProcess',
      )
    }
    say(`${signal} was sent to ${name}, pid ${oldest.pid}`)
    return done
  } catch (error) {
    return ended('exited', messageOf(error), 'NoProcess')
  }
}

async function fileChanged(
  { path, sha256 }: NonNullable<Step['fileChanged']>,
  { job, clock, cut, cause, say }: StepContext,
  { journal }: Surroundings,
  seen: Record<string, string>,
): Promise<Exit> {
  const wanted = sha256 === undefined ? undefined : expand(sha256, job.params.values, 'argument').toLowerCase()
  const before = journal.memory.memo.files[path]
  say(wanted ? `waiting until ${path} has the SHA-256 ${wanted}` : `waiting until ${path} changes`)
  for (;;) {
    const hash = await hashOfFile(path)
    const isThere = wanted ? hash === wanted : hash !== '' && hash !== before
    if (isThere) {
      seen[path] = hash
      say(`${path} has the SHA-256 ${hash}`)
      return done
    }
    try {
      await sleep(clock, lookAtFileEvery, cut)
    } catch {
      return ended(cause(), `${path} had not changed: its SHA-256 is ${hash || 'none, it is not there'}`)
    }
  }
}

/** The next reload waits for another content than this one had; what has come meanwhile is another. */
async function rememberFiles(files: Readonly<Record<string, string>>, { journal }: Surroundings): Promise<void> {
  if (Object.keys(files).length === 0) return
  await journal.append({ t: 'memo', memo: { files: { ...journal.memory.memo.files, ...files } } }).catch(() => {})
}
