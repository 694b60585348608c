/**
 * Finds out what became of a run that an earlier agent has left in progress, from its files.
 *
 * Guarantees: nothing is executed here but a claim, and never a second time: a run is adopted, or its end is what its files say. A run that nobody has claimed is not
 * decided before it is claimed here: its wrapper may be on its way, and a disk that is full now may have room when it comes.
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

type Claimed = Awaited<ReturnType<typeof readClaim>>

export interface Recovered {
  /** Where the files of its step are. */
  readonly folder: string
  /** The wrapper that is still at work, if one is. */
  readonly wrapper: Wrapper | undefined
  /** Begins the cancel contract, once a wrapper is at work. */
  cancel(): void
  /** When it was claimed, if it was. */
  readonly startedAt: number | null
  /** How it ended, once the wrapper has. */
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
async function recoverFolder(folder: string, options: RecoverOptions) {
  const atWork = async (claimed: Claimed) =>
    claimed !== undefined && claimed !== 'damaged' && !(await readExit(folder)) && isAlive(claimed)
      ? adoptWrapper(folder, claimed, options.clock, options.signal)
      : undefined
  const claimed = await readClaim(folder)
  const wrapper = await atWork(claimed)
  let asked = false
  let late: Wrapper | undefined
  return {
    claimed,
    wrapper,
    cancel() {
      asked = true
      ;(wrapper ?? late)?.cancel()
    },
    async end(): Promise<Exit> {
      const exit = await commandEnd(folder, async () => {
        if (await claimAtLast(folder, options)) return true
        late = await atWork(await readClaim(folder))
        if (asked) late?.cancel()
        await late?.ended
        return false
      })
      await removeSecrets(folder)
      return exit
    },
  }
}

async function recoverCommand(folder: string, options: RecoverOptions): Promise<Recovered> {
  const { claimed, ...found } = await recoverFolder(folder, options)
  return { folder, ...found, startedAt: claimed !== undefined && claimed !== 'damaged' ? claimed.at : null }
}

/** The agent itself was carrying it out. Only a command among its steps can have gone on, or have ended with a word. */
async function recoverSteps(run: RunRecord, runFolder: string, options: RecoverOptions): Promise<Recovered> {
  const steps = run.declaration ? stepsOf(run.declaration) : []
  const folder = stepFolder(runFolder, run.step)
  const at = `at step ${run.step + 1} of ${steps.length}`
  const claimed = await readClaim(runFolder)
  if (!claimed) {
    return {
      folder,
      wrapper: undefined,
      cancel() {},
      startedAt: null,
      async end() {
        const isOurs = await claimAtLast(runFolder, options)
        return isOurs ? ended('notStarted', 'was accepted, but never started') : ended('lost', `the agent ended ${at}`)
      },
    }
  }
  const command = steps[run.step]?.exec ? await recoverFolder(folder, options) : undefined
  return {
    folder,
    wrapper: command?.wrapper,
    cancel: () => command?.cancel(),
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
