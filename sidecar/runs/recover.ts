/**
 * Finds out what became of a run that an earlier agent has left in progress, from its files.
 *
 * Guarantee: nothing is executed here but a claim, and never a second time: a run is adopted, or its end is what its files say.
 */
import type { Clock } from '../../shared/clock.ts'
import type { Exit } from '../../shared/run.ts'
import { isAlive } from '../init/identity.ts'
import type { RunRecord } from '../journal/records.ts'
import { stepsOf } from './admit.ts'
import { isOneCommand } from './carry-out.ts'
import { commandEnd, ended } from './command.ts'
import { removeSecrets } from './environment.ts'
import { claim, makeFolder, readClaim, readExit, stepFolder } from './folder.ts'
import { adoptWrapper, type Wrapper } from './wrapper.ts'

export interface Recovered {
  /** Where the files of its step are. */
  readonly folder: string
  /** The wrapper that is still at work, if one is. */
  readonly wrapper: Wrapper | undefined
  /** When it was claimed, if it was. */
  readonly startedAt: number | null
  /** How it ended, once the wrapper has. */
  end(): Promise<Exit>
}

export async function recover(
  run: RunRecord,
  runFolder: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<Recovered> {
  await makeFolder(runFolder)
  return run.declaration && !isOneCommand(run.declaration)
    ? recoverSteps(run, runFolder, clock, signal)
    : recoverCommand(runFolder, clock, signal)
}

async function recoverCommand(folder: string, clock: Clock, signal: AbortSignal): Promise<Recovered> {
  const claimed = await readClaim(folder)
  const isAtWork = claimed !== undefined && claimed !== 'damaged' && !(await readExit(folder)) && isAlive(claimed)
  return {
    folder,
    wrapper: isAtWork ? adoptWrapper(folder, claimed, clock, signal) : undefined,
    startedAt: claimed !== undefined && claimed !== 'damaged' ? claimed.at : null,
    async end() {
      const exit = await commandEnd(folder, clock)
      await removeSecrets(folder)
      return exit
    },
  }
}

/** The agent itself was carrying it out. Only a command among its steps can have gone on, or have ended with a word. */
async function recoverSteps(run: RunRecord, runFolder: string, clock: Clock, signal: AbortSignal): Promise<Recovered> {
  const steps = run.declaration ? stepsOf(run.declaration) : []
  const folder = stepFolder(runFolder, run.step)
  const at = `at step ${run.step + 1} of ${steps.length}`
  const claimed = await readClaim(runFolder)
  if (!claimed && (await claim(runFolder, clock))) {
    return {
      folder,
      wrapper: undefined,
      startedAt: null,
      end: async () => ended('notStarted', 'was accepted, but never started'),
    }
  }
  const stepClaim = steps[run.step]?.exec ? await readClaim(folder) : undefined
  const isAtWork = stepClaim !== undefined && stepClaim !== 'damaged' && !(await readExit(folder)) && isAlive(stepClaim)
  return {
    folder,
    wrapper: isAtWork ? adoptWrapper(folder, stepClaim, clock, signal) : undefined,
    startedAt: run.startedAt,
    async end() {
      if (!stepClaim) {
        // A command whose wrapper may be on its way is kept from starting.
        if (steps[run.step]?.exec) {
          await makeFolder(folder)
          await commandEnd(folder, clock)
        }
        return ended('lost', `the agent ended ${at}`)
      }
      const exit = await commandEnd(folder, clock)
      await removeSecrets(folder)
      const isLast = run.step === steps.length - 1
      // What follows a step is never begun by itself after a recovery.
      return exit.cause === 'exited' && exit.code === 0 && !isLast
        ? ended('lost', `the agent ended ${at}, which ended well; the rest was not begun`)
        : exit
    },
  }
}
