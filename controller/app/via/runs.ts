/**
 * The runs of one pod of an app without a sidecar: asked for and kept here, in memory.
 *
 * Guarantees: a PUT is checked in the sidecar's order, and the same id is begun once as long as this process lives. Nothing is journaled: whoever comes after this
 * process has another journal, so what was in progress is Unknown to it. A call that was left before its end is Unknown, as nobody can end it from here.
 */
import { hashOf } from '../../../shared/canonical.ts'
import type { Clock } from '../../../shared/clock.ts'
import { parseDuration } from '../../../shared/duration.ts'
import type { CompiledLifecycle } from '../../../shared/lifecycle/compile.ts'
import { defaults } from '../../../shared/lifecycle/model.ts'
import { type ProblemCode, problems } from '../../../shared/protocol/problems.ts'
import type { PutRun, Run, Settle, Verdict, VerifyRun } from '../../../shared/protocol/schemas.ts'
import { type Exit, isInProgress, type Outcome, outcomeOf, settledBy } from '../../../shared/run.ts'
import type { PodAddress } from '../agents/address.ts'
import type { LogPiece } from '../agents/asking.ts'
import { AgentError } from '../agents/errors.ts'
import type { Answer, AskOptions } from './asking.ts'
import { actionCalls, type Call, verifyCall, type Way } from './calls.ts'

export interface Ground {
  readonly address: PodAddress
  readonly way: Way
  readonly lifecycle: CompiledLifecycle
  readonly hash: string
}

export interface ViaRunsOptions {
  /** As it is now. */
  ground(): Ground
  readonly journalId: string
  readonly clock: Clock
  ask(call: Call, options: AskOptions): Promise<Answer>
  onChange(): void
}

export interface ViaRuns {
  readonly all: ReadonlyMap<string, Run>
  /** The highest that was carried. */
  readonly fence: number
  inProgress(): Run | undefined
  put(id: string, body: PutRun): Run
  cancel(id: string): Run
  settle(id: string, word: Settle): Run
  verify(body: VerifyRun, signal?: AbortSignal): Promise<Verdict>
  drop(id: string): void
  log(id: string, piece: { offset?: number | undefined; limit?: number | undefined }): LogPiece
  stop(): void
}

interface Kept {
  readonly body: string
  readonly ending: AbortController
  log: Buffer
}

export function createRuns({ ground, journalId, clock, ask, onChange }: ViaRunsOptions): ViaRuns {
  const runs = new Map<string, Run>()
  const kept = new Map<string, Kept>()
  let fence = 0
  let isStopped = false
  const time = () => new Date(clock.now()).toISOString()
  const refuse = (code: ProblemCode, detail: string): never => {
    throw new AgentError(code, ground().address, detail, { isSent: false, status: problems[code].status })
  }
  const known = (id: string): Run => runs.get(id) ?? refuse('UnknownRun', `there is no run ${id}`)
  const inProgress = () => [...runs.values()].find(({ phase }) => isInProgress(phase))

  function change(id: string, to: Partial<Run>): Run {
    const run = { ...known(id), ...to }
    runs.set(id, run)
    if (!isStopped) onChange()
    return run
  }

  function end(id: string, { phase, exitCode, error }: Outcome): Run {
    return change(id, { phase, exitCode, error, ...(phase !== 'Unknown' && { finishedAt: time() }) })
  }

  async function carryOut(id: string, calls: readonly Call[], options: AskOptions): Promise<void> {
    const until = clock.monotonic() + options.timeout
    for (const [place, call] of calls.entries()) {
      const answer = await ask(call, { ...options, timeout: Math.max(until - clock.monotonic(), 1) })
      if (isStopped || !runs.has(id)) return
      if ('text' in answer) append(id, answer.text)
      const isLast = place === calls.length - 1
      if (answer.is === 'done' && !isLast) continue
      end(id, outcomeOf(exitOf(answer, place)))
      return
    }
  }

  function append(id: string, text: string): void {
    const one = kept.get(id)
    if (!one || text === '') return
    one.log = Buffer.concat([one.log, Buffer.from(text)])
    const size = one.log.length
    runs.set(id, { ...known(id), log: { size, keptHead: size, tailFrom: size } })
  }

  return {
    all: runs,
    get fence() {
      return fence
    },
    inProgress,
    put(id, body) {
      const { address, lifecycle, hash, way } = ground()
      if (body.podUid !== undefined && body.podUid !== address.pod.uid) refuse('WrongPod', 'this is another pod')
      const given = hashOf({ action: body.action, params: body.params ?? {}, attempt: body.attempt ?? 1 })
      const there = runs.get(id)
      if (there) {
        // Who writes down that it is not to be begun has no secrets to give, and what is known is answered as it stands.
        if (!body.cancelled && kept.get(id)?.body !== given) refuse('IdReused', `the id ${id} belongs to another run`)
        return there
      }
      if (body.journalId !== undefined && body.journalId !== journalId)
        refuse('WrongJournal', 'what this controller was asked before it was started is not known any more')
      if (body.fence !== undefined && body.fence <= fence) refuse('Fenced', `the fence is not above ${fence}`)
      const run: Run = {
        ...{ id, action: body.action, params: body.params ?? {}, attempt: body.attempt ?? 1 },
        ...{ startedAt: null, finishedAt: null, exitCode: null, progress: null, result: null, error: null },
        phase: 'Accepted',
        log: { size: 0, keptHead: 0, tailFrom: 0 },
      }
      const keep = (): AbortController => {
        const ending = new AbortController()
        runs.set(id, run)
        kept.set(id, { body: given, ending, log: Buffer.alloc(0) })
        fence = Math.max(fence, body.fence ?? 0)
        return ending
      }
      if (body.cancelled) {
        keep()
        return end(id, outcomeOf({ cause: 'cancelled', code: null, signal: null, error: null }))
      }
      if (body.configHash !== undefined && body.configHash !== hash)
        refuse('WrongConfig', 'the lifecycle is another one')
      const compiled =
        lifecycle.actions.get(body.action) ?? refuse('UnknownAction', `there is no action ${body.action}`)
      const calls = actionCalls(compiled.action, way)
      if ('why' in calls) return refuse('UnknownAction', `${body.action} cannot be asked of this app: ${calls.why}`)
      const { params, problems: wrong } = compiled.params.check(body.params ?? {})
      if (!params) return refuse('InvalidParams', wrong.join('; '))
      const other = inProgress()
      if (other && !compiled.action.shared) refuse('Locked', `run ${other.id} is in progress`)
      const { signal } = keep()
      const timeout = parseDuration(body.timeout ?? compiled.action.timeout ?? defaults.action.timeout) ?? 0
      const begun = change(id, { phase: 'Running', startedAt: time() })
      void carryOut(id, calls, { params, timeout, signal })
      return begun
    },
    cancel(id) {
      const run = known(id)
      if (isInProgress(run.phase)) kept.get(id)?.ending.abort()
      return run
    },
    settle(id, { outcome, reason }) {
      if (known(id).phase !== 'Unknown') refuse('NotUnknown', `run ${id} is not Unknown`)
      const settled = settledBy(outcome) as Outcome
      return end(id, settled.error ? { ...settled, error: { code: 'Settled', message: reason ?? '' } } : settled)
    },
    async verify({ action, params = {} }, signal = new AbortController().signal) {
      const { lifecycle, way } = ground()
      const compiled = lifecycle.actions.get(action) ?? refuse('UnknownAction', `there is no action ${action}`)
      const call = verifyCall(compiled.action, way)
      if ('why' in call) return refuse('UnknownAction', `${action} cannot be verified: ${call.why}`)
      const checked = compiled.params.check(params)
      if (!checked.params) return refuse('InvalidParams', checked.problems.join('; '))
      const timeout = parseDuration(compiled.action.verify?.timeout ?? defaults.verify.timeout) ?? 0
      const answer = await ask(call, { params: checked.params, timeout, signal })
      const absent: readonly number[] = compiled.action.verify?.http?.absent ?? defaults.verify.absent
      const isAbsent =
        answer.is === 'refused' && (answer.exitCode === 1 || (answer.status !== null && absent.includes(answer.status)))
      return { outcome: answer.is === 'done' ? 'Succeeded' : isAbsent ? 'Failed' : 'Unknown' } as Verdict
    },
    drop(id) {
      runs.delete(id)
      kept.delete(id)
    },
    log(id, { offset = 0, limit = 65_536 }) {
      known(id)
      const all = kept.get(id)?.log ?? Buffer.alloc(0)
      const piece = all.subarray(offset, offset + limit)
      return { offset, next: offset + piece.length, text: piece.toString() }
    },
    stop() {
      isStopped = true
      for (const { ending } of kept.values()) ending.abort()
    },
  }
}

/** @param done how many calls of the same action have gone well before */
function exitOf(answer: Answer, done: number): Exit {
  const none = { code: null, signal: null }
  switch (answer.is) {
    case 'done':
      return { cause: 'exited', code: 0, signal: null, error: null }
    case 'refused':
      if (answer.exitCode !== null)
        return { cause: 'exited', code: answer.exitCode, signal: null, error: answer.message }
      return { cause: 'exited', ...none, error: answer.message, why: 'Refused' }
    case 'unsent':
      return { cause: 'exited', ...none, error: answer.message, why: done > 0 ? 'Refused' : 'NotSent' }
    case 'lost':
      return { cause: 'lost', ...none, error: `${answer.message}; it may have happened, and may still go on` }
  }
}
