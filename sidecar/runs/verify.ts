/**
 * Asks an action's verify whether it happened. Executes nothing else.
 *
 * Guarantees: only exit 0 (or an expected status) is `Succeeded`, only exit 1 (or a status that means absence) is `Failed`; whatever else happens is `Unknown`.
 * Of one run one is asked at a time, whoever asks.
 */
import type { Clock } from '../../shared/clock.ts'
import { parseDuration } from '../../shared/duration.ts'
import { type Action, defaults } from '../../shared/lifecycle/model.ts'
import type { Logger } from '../../shared/log.ts'
import type { Verdict } from '../../shared/run.ts'
import { runCommand } from '../calls/command.ts'
import { request } from '../calls/http.ts'
import { callOf, isExpected } from './call.ts'
import { commandOf, environmentOf, type Params, reasonOf, writeSecrets } from './environment.ts'
import { makeFolder, removeFolder, verifyFolder } from './folder.ts'

/** What is asked for. */
export interface Verification {
  readonly runId: string
  readonly fence: number | null
  readonly action: Action
  readonly params: Params
}

export interface VerifyOptions {
  readonly stateDir: string
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

const outputLimit = 4096

/** Answers a function that asks, and never rejects. */
export function createVerify(options: VerifyOptions): (asked: Verification) => Promise<Verdict> {
  /** The last one of each run. */
  const asking = new Map<string, Promise<Verdict>>()

  async function after(before: Promise<Verdict> | undefined, asked: Verification): Promise<Verdict> {
    await before
    try {
      return await verify(asked, options)
    } catch (error) {
      options.log.error({ reason: reasonOf(error, asked.params), run: asked.runId }, 'verify could not be carried out')
      return 'Unknown'
    }
  }

  return async asked => {
    const verdict = after(asking.get(asked.runId), asked)
    asking.set(asked.runId, verdict)
    await verdict
    if (asking.get(asked.runId) === verdict) asking.delete(asked.runId)
    return verdict
  }
}

async function verify(
  { runId, fence, action, params }: Verification,
  { stateDir, clock, log, signal }: VerifyOptions,
): Promise<Verdict> {
  const declared = action.verify
  if (!declared) return 'Unknown'
  const timeoutMs = parseDuration(declared.timeout ?? defaults.verify.timeout) ?? 0
  if (declared.http) {
    const answer = await request({ ...callOf(declared.http, params), timeoutMs, bodyLimit: outputLimit, clock, signal })
    if ('failed' in answer) {
      log.warn({ run: runId, reason: answer.message }, 'verify was not answered')
      return 'Unknown'
    }
    if (isExpected(declared.http, answer.status)) return 'Succeeded'
    const absent: readonly number[] = declared.http.absent ?? defaults.verify.absent
    return absent.includes(answer.status) ? 'Failed' : 'Unknown'
  }
  // In a folder of its own: the run may be one that is not known here, or still have its secrets.
  const folder = verifyFolder(stateDir, runId)
  const surroundings = { runId, fence, params, folder }
  try {
    await makeFolder(folder)
    await writeSecrets(action, surroundings, stateDir)
    const { exit, stderr } = await runCommand({
      command: commandOf(declared.exec?.command ?? [], params),
      env: environmentOf(action, surroundings),
      workingDir: action.workingDir,
      user: action.user,
      timeoutMs,
      clock,
      signal,
      outputLimit,
    })
    const code = 'code' in exit ? exit.code : undefined
    if (code === 0) return 'Succeeded'
    if (code === 1) return 'Failed'
    log.warn({ run: runId, exit, ...(params.secrets.length === 0 && { stderr }) }, 'verify could not tell')
    return 'Unknown'
  } finally {
    await removeFolder(folder)
  }
}
