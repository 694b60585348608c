/**
 * Carries out a run that has been journaled: by a wrapper if it is one command, by the agent itself if it is anything else.
 *
 * Guarantees: it never rejects, and answers how it ended only when nothing of it goes on. What a crash interrupts is decided by the files alone
 * (recover.ts), so nothing here is needed to know the truth.
 */
import type { Clock } from '../../shared/clock.ts'
import type { Action } from '../../shared/lifecycle/model.ts'
import type { Logger } from '../../shared/log.ts'
import type { Exit } from '../../shared/run.ts'
import type { Fault } from '../faults.ts'
import type { Journal } from '../journal/journal.ts'
import type { RunRecord } from '../journal/records.ts'
import { stepsOf } from './admit.ts'
import { ended, ownEnd, prepare, start } from './command.ts'
import { type Params, reasonOf } from './environment.ts'
import { carryOutSteps } from './steps.ts'
import type { Wrapper } from './wrapper.ts'

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

/** @param closing aborted when the agent lets go: what only it can go on with is cut off, and its end is no answer */
export function carryOut(job: Job, surroundings: Surroundings, closing: AbortSignal): Execution {
  return isOneCommand(job.action)
    ? carryOutCommand(job, surroundings)
    : carryOutSteps(job, stepsOf(job.action), surroundings, closing)
}

function carryOutCommand(job: Job, { stateDir, init, clock, fault, log }: Surroundings): Execution {
  const { run, action, params, runFolder } = job
  let isCancelled = false
  let cancelWrapper: (() => void) | undefined

  async function execute(): Promise<Exit> {
    let wrapper: Wrapper
    try {
      const call = {
        stateDir,
        init,
        clock,
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
      // Nobody was asked to execute it, so nobody will.
      if (isCancelled) return ended('cancelled', 'before it was started')
      wrapper = start(call)
    } catch (error) {
      const reason = reasonOf(error, params)
      log.error({ reason, run: run.id }, 'a run could not be started')
      return ended('notStarted', `was accepted, but never started: ${reason}`)
    }
    try {
      cancelWrapper = wrapper.cancel
      fault('spawned')
      job.onStep(0, runFolder)
      const notStarted = await wrapper.ended
      fault('exited')
      const exit = await ownEnd(runFolder, clock, notStarted)
      return exit.cause === 'notStarted' && isCancelled ? ended('cancelled', 'before it was started') : exit
    } catch (error) {
      const reason = reasonOf(error, params)
      log.error({ reason, run: run.id }, 'a run could not be carried out as it should')
      return ended('lost', reason)
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
