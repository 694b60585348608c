/**
 * Carries out the steps that the agent itself must drive: http calls, signals, waiting for a file, and commands among them.
 *
 * Guarantees: each step is journaled before it begins. The agent claims the run first, so that no other agent begins it; what a crash interrupts stays Unknown.
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
import { commandEnd, ended, prepare, start } from './command.ts'
import { spellings } from './environment.ts'
import { claim, makeFolder, stepFolder } from './folder.ts'
import { carryOutHttp } from './http-step.ts'
import { logShares } from './view.ts'
import { logFolder } from './wrapper.ts'

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

export function carryOutSteps(job: Job, steps: readonly Step[], surroundings: Surroundings): Execution {
  const { clock, fault, journal, log, init } = surroundings
  const { run, action, params, runFolder } = job
  const cutting = new AbortController()
  let cause: 'cancelled' | 'timedOut' = 'cancelled'
  let cancelWrapper: (() => void) | undefined
  let written = 0
  const began = clock.monotonic()
  const secrets = spellings(params).map(secret => Buffer.from(secret))
  let segments: Segments | undefined
  const deadline = clock.after(run.timeoutMs, () => cut('timedOut'))

  function cut(why: 'cancelled' | 'timedOut'): void {
    if (cutting.signal.aborted) return
    cause = why
    cutting.abort(new Error(why))
    cancelWrapper?.()
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
      init,
      run,
      action,
      command: argv,
      surroundings: { runId: run.id, fence: run.fence, params, folder },
      runFolder,
      logOffset: written,
      timeoutMs: Math.max(run.timeoutMs - (clock.monotonic() - began), 1),
    }
    letGoOfLog()
    try {
      await prepare(call)
    } catch (error) {
      return { exit: notBegun(step, messageOf(error), 'NotExecuted') }
    }
    if (cutting.signal.aborted) return { exit: ended(cause) }
    const wrapper = start(call)
    cancelWrapper = wrapper.cancel
    fault('step.spawned')
    job.onStep(step, folder)
    const exit = await commandEnd(folder, clock, await wrapper.ended)
    cancelWrapper = undefined
    if ('log' in exit && typeof exit.log === 'number') written = Math.max(written, exit.log)
    return { exit }
  }

  async function one(index: number, step: Step): Promise<StepEnd> {
    if (step.exec) return command(index, step.exec.command)
    job.onStep(index, stepFolder(runFolder, index))
    fault('step.before')
    if (step.http) return carryOutHttp(step.http, context)
    if (step.signal) return { exit: signal(step.signal, context) }
    if (step.fileChanged) return { exit: await fileChanged(step.fileChanged, context, surroundings) }
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
    await rememberFiles(steps, surroundings)
    return last
  }

  const result = all()
    .catch((error): StepEnd => {
      log.error({ err: error, run: run.id }, 'a run could not be carried out as it should')
      return { exit: ended('lost', messageOf(error)) }
    })
    .finally(() => {
      deadline.cancel()
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
): Promise<Exit> {
  const wanted = sha256 === undefined ? undefined : expand(sha256, job.params.values, 'argument').toLowerCase()
  const before = journal.memory.memo.files[path]
  say(wanted ? `waiting until ${path} has the SHA-256 ${wanted}` : `waiting until ${path} changes`)
  for (;;) {
    const hash = await hashOfFile(path)
    const isThere = wanted ? hash === wanted : hash !== '' && hash !== before
    if (isThere) {
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

/** The next reload waits for another content than this one had. */
async function rememberFiles(steps: readonly Step[], { journal }: Surroundings): Promise<void> {
  const files: Record<string, string> = {}
  for (const { fileChanged } of steps) if (fileChanged) files[fileChanged.path] = await hashOfFile(fileChanged.path)
  if (Object.keys(files).length === 0) return
  await journal.append({ t: 'memo', memo: { files: { ...journal.memory.memo.files, ...files } } }).catch(() => {})
}
