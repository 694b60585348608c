/**
 * Carries out a run that has been journaled: by a wrapper if it is one command, by the agent itself if it is anything else.
 *
 * Guarantees: it never rejects, and answers how it ended only when nothing of it goes on. What a crash interrupts is decided by the files alone
 * (recover.ts), so nothing here is needed to know the truth.
 */
import type { Clock } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Action } from '../../shared/lifecycle/model.ts'
import type { Logger } from '../../shared/log.ts'
import type { Exit } from '../../shared/run.ts'
import type { Fault } from '../faults.ts'
import type { Journal } from '../journal/journal.ts'
import type { RunRecord } from '../journal/records.ts'
import { stepsOf } from './admit.ts'
import { commandEnd, ended, prepare, start } from './command.ts'
import type { Params } from './environment.ts'
import { carryOutSteps } from './steps.ts'

export interface Surroundings {
  readonly stateDir: string
  /** How the wrapper is started. */
  readonly init: readonly string[]
  readonly clock: Clock
  readonly log: Logger
  readonly fault: Fault
  readonly journal: Journal
}

/** One run being carried out. */
export interface Job {
  readonly run: RunRecord
  readonly action: Action
  readonly params: Params
  readonly runFolder: string
  /** Called when something begins to be executed, with the folder in which it has its files. */
  readonly onStep: (step: number, folder: string) => void
}

export interface Execution {
  readonly ended: Promise<{ readonly exit: Exit; readonly result?: unknown }>
  /** Begins the cancel contract. More than once is as once. */
  cancel(): void
  /** Whether the next agent can go on with it. */
  readonly outlivesAgent: boolean
}

/** Whether a wrapper does all of it. */
export function isOneCommand(action: Action): boolean {
  return action.exec !== undefined
}

export function carryOut(job: Job, surroundings: Surroundings): Execution {
  return isOneCommand(job.action)
    ? carryOutCommand(job, surroundings)
    : carryOutSteps(job, stepsOf(job.action), surroundings)
}

function carryOutCommand(job: Job, { init, clock, fault, log }: Surroundings): Execution {
  const { run, action, params, runFolder } = job
  let isCancelled = false
  let cancelWrapper: (() => void) | undefined

  async function execute(): Promise<Exit> {
    try {
      const call = {
        init,
        run,
        action,
        command: action.exec?.command ?? [],
        surroundings: { runId: run.id, fence: run.fence, params, folder: runFolder },
        runFolder,
        logOffset: 0,
        timeoutMs: run.timeoutMs,
      }
      await prepare(call)
      fault('spawn.before')
      // Nobody has claimed it yet, so nobody will.
      if (isCancelled) return await unstarted(runFolder, clock)
      const wrapper = start(call)
      cancelWrapper = wrapper.cancel
      fault('spawned')
      job.onStep(0, runFolder)
      const notStarted = await wrapper.ended
      fault('exited')
      const exit = await commandEnd(runFolder, clock, notStarted)
      return exit.cause === 'notStarted' && isCancelled ? ended('cancelled', 'before it was started') : exit
    } catch (error) {
      log.error({ err: error, run: run.id }, 'a run could not be carried out as it should')
      return await commandEnd(runFolder, clock).catch(() => ended('lost', messageOf(error)))
    }
  }

  return {
    ended: execute().then(exit => ({ exit })),
    cancel() {
      if (isCancelled) return
      isCancelled = true
      cancelWrapper?.()
    },
    outlivesAgent: true,
  }
}

async function unstarted(folder: string, clock: Clock): Promise<Exit> {
  const exit = await commandEnd(folder, clock)
  return exit.cause === 'notStarted' ? ended('cancelled', 'before it was started') : exit
}
