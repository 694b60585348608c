/**
 * Executes one command through its wrapper, and reads from the files how it ended.
 *
 * Guarantee: once `commandEnd` or `ownEnd` has answered, nobody will execute the command of that folder any more.
 */
import { join } from 'node:path'
import type { Clock } from '../../shared/clock.ts'
import { parseDuration } from '../../shared/duration.ts'
import { type Action, defaults } from '../../shared/lifecycle/model.ts'
import type { Cause, Exit, RunErrorCode } from '../../shared/run.ts'
import type { RunRecord } from '../journal/records.ts'
import { commandOf, environmentOf, type Surroundings, spellings, writeSecrets } from './environment.ts'
import { type Claim, claim, makeFolder, readClaim, readExit, syncFolder } from './folder.ts'
import { logShares } from './view.ts'
import { endLeftovers, logFolder, startWrapper, type Wrapper } from './wrapper.ts'

export interface Command {
  readonly stateDir: string
  readonly init: readonly string[]
  readonly clock: Clock
  readonly run: RunRecord
  readonly action: Action
  readonly command: readonly string[]
  /** `folder` is the one that the wrapper claims. */
  readonly surroundings: Surroundings
  /** The run's own folder, where its log is. */
  readonly runFolder: string
  readonly logOffset: number
  readonly timeoutMs: number
}

/** Makes the folder, with the secrets in it; on disk when it resolves. */
export async function prepare({ stateDir, action, surroundings, runFolder }: Command): Promise<void> {
  await makeFolder(surroundings.folder)
  await makeFolder(logFolder(runFolder))
  await writeSecrets(action, surroundings, stateDir)
  await syncFolder(join(runFolder, '..'))
}

export function start(call: Command): Wrapper {
  const { action, surroundings } = call
  const cancel = cancelOf(action)
  return startWrapper({
    init: call.init,
    clock: call.clock,
    folder: surroundings.folder,
    logFolder: logFolder(call.runFolder),
    logOffset: call.logOffset,
    log: logShares(call.run.logKept),
    timeoutMs: call.timeoutMs,
    cancelSignal: cancel.signal,
    graceMs: cancel.graceMs,
    workingDir: action.workingDir,
    user: action.user,
    nice: action.limits?.nice ?? defaults.limits.nice,
    command: commandOf(call.command, surroundings.params),
    env: environmentOf(action, surroundings),
    secrets: spellings(surroundings.params),
  })
}

export interface Others {
  /** Resolves when whoever has claimed it is not at work on it any more. */
  gone(claimed: Claim): Promise<void>
  /** Claims it, from a wrapper that may be on its way; false if that was there before. */
  keepOut(): Promise<boolean>
}

/** How the command of this folder ended, or will have. */
export async function commandEnd(folder: string, { gone, keepOut }: Others): Promise<Exit> {
  for (;;) {
    const claimed = await readClaim(folder)
    // A wrapper may come at any time until it is kept out: whoever has the claim now is waited for, and only then is its word missed.
    if (claimed && claimed !== 'damaged') await gone(claimed)
    const exit = await readExit(folder)
    if (exit) return exit
    if (claimed) {
      if (claimed !== 'damaged') await endLeftovers(folder, claimed)
      return ended('lost', 'its wrapper is gone and has not written down how it ended')
    }
    if (await keepOut()) return ended('notStarted', 'was accepted, but never started')
  }
}

/** The same, where the wrapper was this agent's own and is gone: if it cannot be claimed, nobody is there who could. @param notStarted why the wrapper has executed nothing, if it said so */
export async function ownEnd(folder: string, clock: Clock, notStarted: string | undefined): Promise<Exit> {
  if (notStarted !== undefined) return ended('notStarted', notStarted)
  return commandEnd(folder, { gone: async () => {}, keepOut: () => claim(folder, clock).catch(() => true) })
}

/** An end that is no command's own. */
export function ended(cause: Cause, error: string | null = null, why?: RunErrorCode): Exit {
  return { cause, code: null, signal: null, error, ...(why && { why }) }
}

/** An action's cancel contract, with what is in force where nothing is written. */
export function cancelOf(action: Action): { signal: string; graceMs: number } {
  return {
    signal: action.cancel?.signal ?? defaults.cancel.signal,
    graceMs: parseDuration(action.cancel?.grace ?? defaults.cancel.grace) ?? 0,
  }
}
