/**
 * Finds out what became of a run that an earlier agent has left in progress, from its files.
 *
 * Guarantees: nothing is executed here but a claim, and never a second time: a run is adopted, or its end is what its files say. A run that nobody has claimed is not
 * decided before it is claimed here: its wrapper may be on its way, and a disk that is full now may have room when it comes. One that comes before is adopted, too: nothing
 * is said of the end of a run that somebody is at work on.
 */
import type { Clock } from '../../shared/clock.ts'
import type { Exit } from '../../shared/run.ts'
import { isAlive } from '../init/identity.ts'
import type { RunRecord } from '../journal/records.ts'
import { stepsOf } from './admit.ts'
import { isOneCommand } from './carry-out.ts'
import { commandEnd, ended } from './command.ts'
import { removeSecrets } from './environment.ts'
import { type Claim, claim, makeFolder, readClaim, readExit, stepFolder } from './folder.ts'
import { adoptWrapper, type Wrapper } from './wrapper.ts'

export interface Recovered {
  /** Where the files of its step are. */
  readonly folder: string
  /** Resolves when a wrapper is found at work: still, or because it came before it could be kept out. With when that has claimed it. */
  readonly adopted: Promise<number>
  /** Begins the cancel contract, once a wrapper is at work. */
  cancel(): void
  /** When it was claimed, if it was. */
  readonly startedAt: number | null
  /** Finds out how it ended, once nobody is at work on it. To be called once. */
  end(): Promise<Exit>
}

export interface RecoverOptions {
  readonly clock: Clock
  /** Aborted when the agent closes. */
  readonly signal: AbortSignal
  /** Tries again until it can be written. */
  readonly insist: <T>(write: () => Promise<T>) => Promise<T>
}

export async function recover(run: RunRecord, runFolder: string, options: RecoverOptions): Promise<Recovered> {
  return run.declaration && !isOneCommand(run.declaration)
    ? recoverSteps(run, runFolder, options)
    : recoverCommand(runFolder, options)
}

/** Claims it, whatever it takes; false if somebody was first. */
function claimAtLast(folder: string, { clock, insist }: RecoverOptions): Promise<boolean> {
  return insist(async () => {
    await makeFolder(folder)
    return claim(folder, clock)
  })
}

/** The command of a folder: the wrapper that is at work on it, now or by the time that it could be kept out, and how it ended. */
function recoverFolder(folder: string, options: RecoverOptions) {
  const adopted = Promise.withResolvers<number>()
  let isCancelled = false
  let wrapper: Wrapper | undefined

  async function gone(claimed: Claim): Promise<void> {
    if (claimed.by !== 'wrapper' || (await readExit(folder)) || !isAlive(claimed)) return
    wrapper = adoptWrapper(folder, claimed, options.clock, options.signal)
    if (isCancelled) wrapper.cancel()
    adopted.resolve(claimed.at)
    await wrapper.ended
  }

  return {
    adopted: adopted.promise,
    cancel() {
      isCancelled = true
      wrapper?.cancel()
    },
    async end(): Promise<Exit> {
      const exit = await commandEnd(folder, { gone, keepOut: () => claimAtLast(folder, options) })
      await removeSecrets(folder)
      return exit
    },
  }
}

async function recoverCommand(folder: string, options: RecoverOptions): Promise<Recovered> {
  const claimed = await readClaim(folder)
  const startedAt = claimed !== undefined && claimed !== 'damaged' ? claimed.at : null
  return { folder, startedAt, ...recoverFolder(folder, options) }
}

/** The agent itself was carrying it out. Only a command among its steps can have gone on, or have ended with a word. */
async function recoverSteps(run: RunRecord, runFolder: string, options: RecoverOptions): Promise<Recovered> {
  const steps = run.declaration ? stepsOf(run.declaration) : []
  const folder = stepFolder(runFolder, run.step)
  const at = `at step ${run.step + 1} of ${steps.length}`
  const nobody = { adopted: new Promise<number>(() => {}), cancel() {} }
  const claimed = await readClaim(runFolder)
  if (!claimed) {
    return {
      folder,
      ...nobody,
      startedAt: null,
      async end() {
        const isOurs = await claimAtLast(runFolder, options)
        return isOurs ? ended('notStarted', 'was accepted, but never started') : ended('lost', `the agent ended ${at}`)
      },
    }
  }
  const command = steps[run.step]?.exec ? recoverFolder(folder, options) : undefined
  return {
    folder,
    ...(command ?? nobody),
    startedAt: run.startedAt,
    async end() {
      const exit = await command?.end()
      if (!exit || exit.cause === 'notStarted') return ended('lost', `the agent ended ${at}`)
      const isLast = run.step === steps.length - 1
      // What follows a step is never begun by itself after a recovery.
      return exit.cause === 'exited' && exit.code === 0 && !isLast
        ? ended('lost', `the agent ended ${at}, which ended well; the rest was not begun`)
        : exit
    },
  }
}
