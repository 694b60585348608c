/**
 * The runs of a pod: accepted once, carried out, ended, settled, dropped.
 *
 * Guarantees: what others are told of a run is on disk first. An id is executed at most once, whatever crashes. A terminal phase never changes.
 */
import { sleep } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Action } from '../../shared/lifecycle/model.ts'
import { Problem } from '../../shared/protocol/problems.ts'
import type { Phase, Progress, PutRun, Run, Settle, VerifyRun } from '../../shared/protocol/schemas.ts'
import {
  type Exit,
  isInProgress,
  isTerminal,
  type Outcome,
  outcomeOf,
  settledBy,
  type Verdict,
} from '../../shared/run.ts'
import type { LogPiece } from '../api.ts'
import type { Config } from '../config/examine.ts'
import type { Ending, JournalRecord, Memo, RunRecord } from '../journal/records.ts'
import { readLog } from '../logs.ts'
import { admit, bodyHashOf, isSameBody, paramsOf, rehearse, stepsOf } from './admit.ts'
import { type Bounds, bounds as defaultBounds, toDrop } from './bounds.ts'
import { carryOut, type Surroundings } from './carry-out.ts'
import { letThrough, type Params, redacted, removeSecrets } from './environment.ts'
import {
  emptyTrash,
  makeFolder,
  removeFolder,
  runFolder,
  runsFolder,
  syncFolder,
  throwAway,
  verifiesFolder,
} from './folder.ts'
import { recover } from './recover.ts'
import { resultOf } from './result.ts'
import { createVerify } from './verify.ts'
import { logShares, viewOf } from './view.ts'
import { watch } from './watch.ts'
import { logFolder } from './wrapper.ts'

/** How often runs in progress are looked at, in milliseconds. */
const lookEvery = 250
/** Progress is told at most so often, in milliseconds. */
const tellEvery = 1000
const sweepEvery = 3_600_000

export interface RunsOptions extends Surroundings {
  readonly podUid: string
  /** The configuration in force. */
  readonly config: () => Pick<Config, 'hash' | 'lifecycle' | 'spec'> | undefined
  /** The states whose guards hold; null as long as that is not known. */
  readonly held: () => readonly string[] | null
  /** A run was accepted, has changed its phase or got further. */
  readonly onRun: (run: Run) => void
  /** Its log has grown, or it has ended. */
  readonly onLog: (id: string) => void
  readonly onEnded?: (run: Run) => void
  /** Default: 1,000 runs, 7 days, 512 MiB of logs, 8 MiB of records. */
  readonly bounds?: Bounds | undefined
}

/** A run in progress. */
interface Active {
  readonly id: string
  folder: string
  cancel(): void
  readonly outlivesAgent: boolean
  readonly ended: Promise<void>
}

export interface Runs {
  list(): Run[]
  get(id: string): Run
  /** `isOwn`: of the agent's own accord; also taken while it drains, before anybody else's. */
  put(id: string, body: PutRun, options?: { isOwn?: boolean }): Promise<{ started: boolean; run: Run }>
  drop(id: string): Promise<void>
  cancel(id: string): Promise<{ ended: boolean; run: Run }>
  settle(id: string, body: Settle): Promise<Run>
  verify(body: VerifyRun): Promise<{ outcome: Verdict }>
  log(id: string, offset: number, limit: number): Promise<LogPiece>
  /** Those in progress, in the order in which they were accepted. */
  inProgress(): RunRecord[]
  /** Resolves when the run is not in progress (any more); rejects if the agent is closed before. */
  ended(id: string): Promise<void>
  /** Those that would be lost with this agent. */
  bound(): string[]
  /** Takes no new run from now on, and says why. Undefined: takes them again. */
  refuse(why: string | undefined): void
  /** Until it is undefined again, only the run with this id is accepted; others are told that it holds the lock. */
  reserve(id: string | undefined): void
  /** Takes over what an earlier agent has left. Resolves when everything is either adopted or decided. */
  recover(): Promise<void>
  /** Lets go: wrappers go on, for the next agent; what this one carries out itself is cut off, and its end is not written down. */
  close(): Promise<void>
}

export function createRuns(options: RunsOptions): Runs {
  const { stateDir, clock, log, fault, journal, onRun, onLog } = options
  const { memory } = journal
  /** Being journaled: they count as runs, for locks and fences, before they are. */
  const accepting = new Map<string, { run: RunRecord; done: Promise<void> }>()
  const active = new Map<string, Active>()
  /** Verifies that somebody waits for: who asks the same in the same phase gets the same answer. */
  const verifying = new Map<string, { hash: string; verdict: Promise<Verdict> }>()
  /** Being settled: the first word counts, and resolves when it is on disk. */
  const settling = new Map<string, Promise<void>>()
  /** Being dropped, each once. */
  const forgetting = new Map<string, Promise<void>>()
  /** Resolves when something cannot be written that must be. */
  const blocked = Promise.withResolvers<void>()
  const closing = new AbortController()
  const verifyOnce = createVerify({ stateDir, clock, log, signal: closing.signal })
  let refusing: string | undefined
  let reserved: string | undefined
  let sweeping: Promise<void> = Promise.resolve()
  let isSweepDue = false

  const known = (id: string): RunRecord => {
    const run = memory.runs.get(id)
    if (!run) throw new Problem('UnknownRun', `There is no run ${id}; it may have been dropped.`)
    return run
  }
  const inProgress = () => {
    const accepted = [...memory.runs.values()].filter(run => isInProgress(run.phase))
    return [...accepted, ...[...accepting.values()].map(({ run }) => run)]
  }
  /** Changes what is remembered of a run in progress, without journaling it. */
  const update = (id: string, change: Partial<RunRecord>) => {
    const run = memory.runs.get(id)
    if (!run || !isInProgress(run.phase)) return
    memory.runs.set(id, { ...run, ...change })
  }
  const tell = (id: string) => {
    const run = memory.runs.get(id)
    if (run) onRun(viewOf(run))
  }

  async function put(id: string, body: PutRun, { isOwn = false } = {}): Promise<{ started: boolean; run: Run }> {
    const config = options.config()
    const admitted = admit(id, body, {
      podUid: options.podUid,
      draining: isOwn ? undefined : (refusing ?? (config ? undefined : 'There is no configuration yet.')),
      journalId: memory.journalId,
      fence: Math.max(memory.fence, ...[...accepting.values()].map(({ run }) => run.fence ?? 0)),
      configHash: config?.hash ?? '',
      actions: config?.lifecycle.actions ?? new Map(),
      preStop: config?.spec.preStop,
      run: memory.runs.get(id) ?? accepting.get(id)?.run,
      inProgress: inProgress(),
      reserved,
      now: clock.now(),
    })
    if ('known' in admitted) {
      await accepting.get(id)?.done
      return { started: false, run: viewOf(known(id)) }
    }
    const { run, params } = admitted
    const done = journal.append({ t: 'accepted', run }).catch(error => {
      throw new Problem('JournalFull', `The run could not be written down, so it was not started: ${messageOf(error)}.`)
    })
    accepting.set(id, { run, done })
    try {
      await done
    } finally {
      accepting.delete(id)
    }
    fault('accepted')
    if (body.cancelled) await annul(run)
    else launch(run, params)
    tell(id)
    fault('replying')
    return { started: true, run: viewOf(known(id)) }
  }

  /** Ends a run that was never begun: who asks for it from now on is told so. */
  async function annul({ id }: RunRecord): Promise<void> {
    const { phase, exitCode, error } = outcomeOf({
      ...{ cause: 'cancelled', code: null, signal: null, error: 'before it was begun' },
    })
    const ending: Ending = {
      ...{ phase, exitCode, error, startedAt: null, finishedAt: clock.now() },
      ...{ progress: null, result: null, logSize: 0 },
    }
    await append({ t: 'ended', id, ending })
    fault('ended')
    sweep()
  }

  function launch(run: RunRecord, params: Params): void {
    const action = run.declaration
    if (!action) throw new TypeError(`the run ${run.id} has no declaration`)
    const folder = runFolder(stateDir, run.id)
    const execution = carryOut(
      {
        run,
        action,
        params,
        runFolder: folder,
        onStep(step, at) {
          const entry = active.get(run.id)
          if (entry) entry.folder = at
          update(run.id, { phase: 'Running', step, startedAt: memory.runs.get(run.id)?.startedAt ?? clock.now() })
          tell(run.id)
        },
      },
      options,
      closing.signal,
    )
    const ended = execution.ended
      .then(({ exit, result }) => conclude(run.id, exit, params, active.get(run.id)?.folder ?? folder, result))
      .catch(ignoreWhenClosing)
    follow({ id: run.id, folder, cancel: execution.cancel, outlivesAgent: execution.outlivesAgent, ended })
  }

  function watchOf({ id, logKept, declaration }: RunRecord, folder: () => string) {
    const pattern = declaration?.progress?.pattern
    return watch({ runFolder: runFolder(stateDir, id), folder, log: logShares(logKept), pattern })
  }

  /** Looks at the run's files until it has ended. */
  function follow(entry: Active): void {
    active.set(entry.id, entry)
    const look = watchOf(known(entry.id), () => entry.folder)
    let told = Number.NEGATIVE_INFINITY
    let untold: Progress | undefined
    const loop = async () => {
      while (active.get(entry.id) === entry) {
        await sleep(clock, lookEvery, closing.signal)
        const seen = await look()
        const before = memory.runs.get(entry.id)
        if (!before || !isInProgress(before.phase)) return
        untold = seen.progress ?? untold
        if (seen.logSize !== before.logSize) {
          update(entry.id, { logSize: seen.logSize })
          onLog(entry.id)
        }
        if (untold && clock.monotonic() - told >= tellEvery) {
          update(entry.id, { progress: untold })
          untold = undefined
          told = clock.monotonic()
          tell(entry.id)
        }
      }
    }
    loop().catch(error => {
      if (!closing.signal.aborted) log.warn({ err: error, run: entry.id }, 'the progress of a run could not be read')
    })
  }

  /** @param params undefined where secrets that were given are not known any more */
  async function conclude(
    id: string,
    exit: Exit,
    params: Params | undefined,
    folder: string,
    told?: unknown,
  ): Promise<void> {
    const run = memory.runs.get(id)
    if (!run) return
    const action = run.declaration
    let outcome = outcomeOf(exit)
    // A reload is done only when the application says so.
    const isToBeConfirmed = outcome.phase === 'Succeeded' && action?.reload !== undefined
    const isUncertain = outcome.phase !== 'Succeeded' && outcome.phase !== 'Failed'
    if (action?.verify && (isToBeConfirmed || isUncertain)) {
      const verdict = params ? await verdictOf(run, action, params) : 'Unknown'
      outcome = outcomeOf(isToBeConfirmed ? { ...exit, cause: 'lost' } : exit, verdict)
    }
    await end(id, outcome, folder, params, told)
  }

  async function end(
    id: string,
    { phase, exitCode, error }: Outcome,
    folder: string,
    params: Params | undefined,
    told: unknown,
  ): Promise<void> {
    // What was cut off by that has no end that this agent knows: the next one finds out.
    closing.signal.throwIfAborted()
    const run = memory.runs.get(id)
    if (!run) return
    const last = await watchOf(run, () => folder)().catch(() => undefined)
    const ending: Ending = {
      phase,
      startedAt: run.startedAt,
      finishedAt: clock.now(),
      // Only a command has one.
      exitCode: run.declaration && stepsOf(run.declaration)[run.step]?.exec ? exitCode : null,
      progress: last?.progress ?? run.progress,
      result: redacted(told ?? (await answered(run, folder, params)) ?? null, params),
      error: error && { ...error, message: String(redacted(error.message, params)) },
      logSize: last?.logSize ?? run.logSize,
    }
    await removeSecrets(folder).catch(() => {})
    await append({ t: 'ended', id, ending, ...stopping(run, phase) })
    fault('ended')
    active.delete(id)
    tell(id)
    onLog(id)
    const ended = memory.runs.get(id)
    if (ended) options.onEnded?.(viewOf(ended))
    sweep()
  }

  /** What an end means for the pod: whoever asked for it, what preStop would do is done. */
  function stopping(run: RunRecord, phase: Phase): { memo?: Partial<Memo> } {
    return run.stops && phase === 'Succeeded' ? { memo: { stopped: run.action, held: options.held() } } : {}
  }

  /** Whoever waits for the run is told nothing before it is on disk. */
  function append(record: Extract<JournalRecord, { t: 'ended' | 'settled' }>): Promise<void> {
    return insist(record.id, 'the end of a run cannot be written down', () => journal.append(record, { needed: true }))
  }

  /** Until it is on disk. */
  async function insist<T>(id: string, failed: string, write: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await write()
      } catch (error) {
        blocked.resolve()
        if (attempt === 0) log.error({ err: error, run: id }, `${failed}; it is tried again every second`)
        await sleep(clock, 1000, closing.signal)
      }
    }
  }

  async function answered(run: RunRecord, folder: string, params: Params | undefined): Promise<unknown> {
    try {
      return await resultOf({ run, runFolder: runFolder(stateDir, run.id), folder, params })
    } catch (error) {
      log.warn({ err: error, run: run.id }, 'the result of a run could not be read')
      return undefined
    }
  }

  function verdictOf({ id, fence }: Pick<RunRecord, 'id' | 'fence'>, action: Action, params: Params): Promise<Verdict> {
    return verifyOnce({ runId: id, fence, action, params })
  }

  /** False if somebody else's word came first; that is on disk by then, too. */
  async function settleAs(id: string, outcome: Outcome): Promise<boolean> {
    const first = settling.get(id)
    if (first) {
      await first
      return false
    }
    const run = memory.runs.get(id)
    if (run?.phase !== 'Unknown') return false
    const { startedAt, progress, result, logSize } = run
    const ending: Ending = { ...outcome, startedAt, finishedAt: clock.now(), progress, result, logSize }
    const written = append({ t: 'settled', id, ending, ...stopping(run, ending.phase) })
    settling.set(id, written)
    try {
      await written
    } finally {
      settling.delete(id)
    }
    tell(id)
    sweep()
    return true
  }

  async function cancel(id: string): Promise<{ ended: boolean; run: Run }> {
    await accepting.get(id)?.done.catch(() => {})
    const run = known(id)
    if (!isInProgress(run.phase)) return { ended: true, run: viewOf(run) }
    active.get(id)?.cancel()
    return { ended: false, run: viewOf(run) }
  }

  async function settle(id: string, { outcome, reason }: Settle): Promise<Run> {
    const { exitCode } = known(id)
    const error = outcome === 'Failed' ? ({ code: 'Settled', message: reason } as const) : null
    if (!(await settleAs(id, { phase: outcome, exitCode, error }))) {
      throw new Problem(
        'NotUnknown',
        `The run ${id} is ${known(id).phase}, or is being settled; only an Unknown one can be.`,
      )
    }
    log.warn({ run: id, outcome, reason }, 'an Unknown run was settled by a person')
    return viewOf(known(id))
  }

  async function verify(body: VerifyRun): Promise<{ outcome: Verdict }> {
    const run = memory.runs.get(body.runId)
    const action = run?.declaration ?? options.config()?.lifecycle.actions.get(body.action)?.action
    if (run && !isSameBody(body, run)) {
      throw new Problem('IdReused', `The run ${body.runId} has another action or other parameters.`)
    }
    if (!action) throw new Problem('UnknownAction', `There is no action ${JSON.stringify(body.action)}.`)
    const params = paramsOf(action, body.params ?? {})
    rehearse(body.runId, run?.fence ?? null, action, params)
    const hash = `${run?.phase} ${bodyHashOf(body, [])}`
    const going = verifying.get(body.runId)
    if (going?.hash === hash) return { outcome: await going.verdict }
    const verdict = (async (): Promise<Verdict> => {
      const outcome = action.verify
        ? await verdictOf(run ?? { id: body.runId, fence: null }, action, params)
        : 'Unknown'
      // What was found while it was still going on says nothing of its end.
      const settled = run?.phase === 'Unknown' ? settledBy(outcome, run.exitCode) : undefined
      if (settled) await settleAs(body.runId, settled)
      return outcome
    })()
    const entry = { hash, verdict }
    verifying.set(body.runId, entry)
    try {
      return { outcome: await verdict }
    } finally {
      if (verifying.get(body.runId) === entry) verifying.delete(body.runId)
    }
  }

  async function recoverAll(): Promise<void> {
    await makeFolder(runsFolder(stateDir))
    await syncFolder(stateDir)
    await emptyTrash(stateDir)
    await removeFolder(verifiesFolder(stateDir))
    for (const run of [...memory.runs.values()].filter(({ phase }) => isInProgress(phase))) await recoverOne(run)
    sweep()
  }

  async function recoverOne(run: RunRecord): Promise<void> {
    const { id, declaration } = run
    const folder = runFolder(stateDir, id)
    const found = await recover(run, folder, {
      clock,
      signal: closing.signal,
      insist: write => insist(id, 'a run from before cannot be kept from starting', write),
    })
    const params = run.secretsGiven.length > 0 || !declaration ? undefined : paramsOf(declaration, run.params)
    update(id, { phase: 'Running', startedAt: run.startedAt ?? found.startedAt })
    const foundEnd = found.end()
    const finish = async () => {
      const exit = await foundEnd
      log.info(
        { run: id, action: run.action, cause: exit.cause, code: exit.code },
        'the end of a run from before was found',
      )
      // Unknown is written down at once; verify may take its time.
      if (exit.cause !== 'lost') return conclude(id, exit, params, found.folder)
      await end(id, outcomeOf(exit), found.folder, params, undefined)
      if (!declaration?.verify || !params) return
      const settled = settledBy(await verdictOf(run, declaration, params))
      if (settled) await settleAs(id, settled)
    }
    const ended = finish().catch(ignoreWhenClosing)
    const entry: Active = { id, folder: found.folder, cancel: found.cancel, outlivesAgent: true, ended }
    active.set(id, entry)
    const adopted = found.adopted.then(async at => {
      // The start of an agent closes its folder to others.
      if (declaration?.user && run.secretsGiven.length > 0) await letThrough(stateDir, found.folder).catch(() => {})
      if (active.get(id) !== entry) return
      log.info({ run: id, action: run.action }, 'a run from before is still going on, and was adopted')
      update(id, { startedAt: run.startedAt ?? at })
      follow(entry)
      tell(id)
    })
    // What goes on, a verify that takes long, or an end for which the disk has no room, does not hold the others up.
    const decided = declaration?.verify ? foundEnd.then(() => {}, ignoreWhenClosing) : ended
    await Promise.race([adopted, decided, blocked.promise])
  }

  function ignoreWhenClosing(error: unknown): void {
    if (!closing.signal.aborted) log.error({ err: error }, 'a run could not be ended')
  }

  /** Drops what is beyond the bounds, one sweep at a time; what ends meanwhile is left to the next. */
  function sweep(): void {
    if (isSweepDue) return
    isSweepDue = true
    sweeping = sweeping.then(async () => {
      isSweepDue = false
      const ids = toDrop(memory.runs.values(), clock.now(), options.bounds ?? defaultBounds)
      if (ids.length === 0) return
      // All at once: their records share a sync.
      await Promise.all(ids.map(id => forget(known(id))))
      await emptyTrash(stateDir)
    })
    sweeping = sweeping.catch(error => log.warn({ err: error }, 'old runs could not be dropped'))
  }

  /** That run, once, whoever asks, and not another that has got its id since. */
  async function forget(run: RunRecord): Promise<void> {
    const { id } = run
    if (memory.runs.get(id) !== run) return
    const going =
      forgetting.get(id) ?? throwAway(stateDir, id).then(() => journal.append({ t: 'dropped', id }, { needed: true }))
    forgetting.set(id, going)
    try {
      await going
    } finally {
      if (forgetting.get(id) === going) forgetting.delete(id)
    }
  }

  let sweeper = clock.after(sweepEvery, function again() {
    sweep()
    sweeper = clock.after(sweepEvery, again)
  })

  return {
    list: () => [...memory.runs.values()].reverse().map(viewOf),
    get: id => viewOf(known(id)),
    put,
    async drop(id) {
      const run = known(id)
      if (!isTerminal(run.phase))
        throw new Problem('InProgress', `The run ${id} is ${run.phase}; it is kept until that is decided.`)
      await forget(run)
      await emptyTrash(stateDir)
    },
    cancel,
    settle,
    verify,
    async log(id, offset, limit) {
      const run = known(id)
      return readLog(logFolder(runFolder(stateDir, id)), { offset, limit, ...logShares(run.logKept) })
    },
    inProgress,
    async ended(id) {
      await active.get(id)?.ended
      const run = memory.runs.get(id)
      if (run && isInProgress(run.phase)) throw new Error(`the agent is closing, and the run ${id} goes on`)
    },
    bound: () => [...active.values()].filter(({ outlivesAgent }) => !outlivesAgent).map(({ id }) => id),
    refuse(why) {
      refusing = why
    },
    reserve(id) {
      reserved = id
    },
    recover: recoverAll,
    async close() {
      closing.abort(new Error('the agent is closing'))
      sweeper.cancel()
      await sweeping
    },
  }
}
