/**
 * One run of an operation, as the status has it, moved on by what is known now. Pure.
 *
 * Guarantees: a terminal phase never changes; Unknown becomes Succeeded or Failed and nothing else; a run is Failed only if it is known that it did not
 * happen or did not succeed, and Unknown whenever that is not known.
 */

import { timeOf } from '../../../shared/clock.ts'
import { parseDuration } from '../../../shared/duration.ts'
import type { Action } from '../../../shared/lifecycle/model.ts'
import { defaults } from '../../../shared/lifecycle/model.ts'
import type { Run } from '../../../shared/protocol/schemas.ts'
import { isInProgress as isActive, isTerminal as isFinal } from '../../../shared/run.ts'
import type { Op, PodView, RunRecord, View } from '../view.ts'
import type { Facts } from './facts.ts'

/** Longer results are not kept in the status; the sidecar has them. */
const longestResult = 8192

export interface RunSurroundings {
  readonly view: View
  readonly op: Op
  readonly action: Action | undefined
  /** Whether the action is still declared as when the operation began. */
  readonly isSameAction: boolean
  readonly facts: Facts
}

export const isTerminal = ({ phase }: RunRecord): boolean => phase !== 'Written' && isFinal(phase)
export const isInProgress = ({ phase }: RunRecord): boolean => phase === 'Written' || isActive(phase)

/** Said by a sidecar before anything was begun. */
const refusedForGood = ['UnknownAction', 'InvalidParams', 'UnknownField', 'InvalidBody', 'TooLarge']

export function advanceRun(run: RunRecord, around: RunSurroundings): RunRecord {
  if (isTerminal(run)) return run
  const { view, op, facts, isSameAction } = around
  const pod = view.pods.find(({ uid }) => uid === run.uid)
  const said = pod?.agent?.runs?.get(run.id)
  const now = timeOf(view.now)
  if (said && (run.phase !== 'Unknown' || isFinal(said.phase)))
    return pod?.agent?.isReachable && needsTail(run, said, facts) ? run : copied(run, said, facts)
  const ended = (phase: 'Succeeded' | 'Failed', code?: string, message = ''): RunRecord => ({
    ...withoutError(run),
    phase,
    finishedAt: now,
    ...(code !== undefined && { error: { code, message } }),
  })
  const lost = (code: string, message: string, more: Partial<RunRecord> = {}): RunRecord =>
    run.phase === 'Unknown' ? { ...run, ...more } : { ...run, ...more, phase: 'Unknown', error: { code, message } }

  const word = op.spec.settle?.find(one => one.run === run.id)
  if (run.phase === 'Unknown' && word) {
    // Its sidecar, which would keep it as Unknown for ever, is told first.
    const isTold = said?.phase !== 'Unknown' || !pod?.agent?.isReachable || facts.asked.has(`settle ${run.id}`)
    if (!isTold) return run
    return word.outcome === 'Succeeded' ? ended('Succeeded') : ended('Failed', 'Settled', word.reason)
  }
  const verdict = run.phase === 'Unknown' ? facts.verdicts.get(run.id) : undefined
  if (verdict === 'Succeeded') return ended('Succeeded')
  if (verdict === 'Failed') return ended('Failed', 'NotApplied', 'verify says that it did not happen')

  if (!pod) {
    const other = view.pods.find(({ name }) => name === run.pod)
    const message = other ? `another pod has its name: ${other.uid}` : 'its pod is gone'
    return run.lostAt === undefined ? lost(other ? 'PodReplaced' : 'PodGone', message, { lostAt: now }) : run
  }
  if (pod.isEnded) return run.podEnded ? run : lost('PodEnded', 'its pod ended before it was said', { podEnded: true })
  const { agent } = pod
  if (!agent?.isReachable || !agent.state || !agent.runs) return run
  if (run.phase === 'Unknown') return run
  if (agent.state.journalId !== run.journalId)
    return lost('JournalLost', 'the journal of its sidecar is another one now', { lostAt: now })
  if (run.phase !== 'Written') return lost('Forgotten', 'its sidecar does not know it any more', { lostAt: now })

  const refusal = facts.refusals.get(run.id)
  if (!refusal) return run
  const { code, message, isOfAnnul } = refusal
  // Whoever still sends it is refused for the same reason: it will never be begun.
  if (isOfAnnul && ['Fenced', ...refusedForGood].includes(code)) return cancelled(run, now)
  if (code === 'WrongJournal') return lost('JournalLost', message, { lostAt: now })
  if (code === 'Fenced' || code === 'IdReused') return lost(code, message)
  if (refusedForGood.includes(code)) return ended('Failed', code, message)
  if (code === 'WrongConfig') {
    if (!isSameAction) return ended('Failed', 'LifecycleChanged', 'its action was changed before it was begun')
    const { hash } = view.lifecycle ?? {}
    if (hash !== undefined && agent.state.configHash === hash) return { ...run, configHash: hash }
  }
  return run
}

/** A sidecar that cannot write down that a run is cancelled: after so long nothing of it is on its way any more. */
const longestFlight = 60_000

/** A run that is not to be begun any more and that its sidecar, which is too old to be told so, does not know. */
export function quiet(run: RunRecord, { pods, now }: View): { readonly run: RunRecord; readonly until?: number } {
  const agent = pods.find(({ uid }) => uid === run.uid)?.agent
  if (run.phase !== 'Written' || !agent?.isReachable || !agent.runs || agent.runs.has(run.id)) return { run }
  if (agent.features.includes('annul') || agent.state?.journalId !== run.journalId) return { run }
  const until = Date.parse(run.writtenAt) + longestFlight
  return now >= until ? { run: cancelled(run, timeOf(now)) } : { run, until }
}

function cancelled(run: RunRecord, now: string): RunRecord {
  return { ...run, phase: 'Cancelled', finishedAt: now, error: { code: 'Cancelled', message: 'before it was begun' } }
}

function withoutError({ error: _, ...rest }: RunRecord): RunRecord {
  return rest
}

function copied(run: RunRecord, said: Run, facts: Facts): RunRecord {
  const { phase, startedAt, finishedAt, exitCode, error, progress, result } = said
  // It begins at once, and that is written.
  if (phase === 'Accepted' && run.phase === 'Written') return run
  const isOver = isFinal(phase) || phase === 'Unknown'
  // Progress alone is written now and then.
  const isNews = phase !== run.phase || isOver || hasMoved(run, said, facts)
  if (!isNews) return run
  const tail = facts.tails.get(run.id)
  return {
    ...withoutError(run),
    phase,
    ...(startedAt !== null && { startedAt: startedAt }),
    ...(finishedAt !== null && isFinal(phase) && { finishedAt }),
    ...(exitCode !== null && { exitCode }),
    ...(error !== null && { error: { code: error.code, message: error.message } }),
    ...(progress !== null && { progress }),
    ...(isOver && result !== null && result !== undefined && { result: bounded(result) }),
    ...(tail !== undefined && tail !== '' && { tail }),
  }
}

/** Whether the end of its log has to be read before it is told that it did not succeed. */
export function needsTail(run: RunRecord, { phase, log }: Run, { tails, asked }: Facts): boolean {
  if (isActive(phase) || phase === 'Succeeded' || log.size === 0) return false
  return !tails.has(run.id) && !asked.has(`tail ${run.id}`)
}

function hasMoved(run: RunRecord, { progress }: Run, facts: Facts): boolean {
  if (progress === null) return false
  const before = run.progress
  const hasMovedOn = Math.abs((progress.percent ?? 0) - (before?.percent ?? 0)) >= 1
  const isOther = progress.percent === undefined && progress.message !== before?.message
  return (before === undefined || hasMovedOn || isOther) && facts.isProgressDue(run.id)
}

function bounded(result: unknown): unknown {
  const { length } = JSON.stringify(result) ?? ''
  return length <= longestResult ? result : { omitted: `${length} characters; the sidecar has them` }
}

/** Whether processes of a run may still be alive, though nobody can ask them; if so, until when. */
export function aliveUntil(run: RunRecord, view: View, action: Action | undefined): number | undefined {
  const pod = view.pods.find(({ uid }) => uid === run.uid)
  if (run.podEnded || pod?.isEnded) return undefined
  // The sidecar itself says that nobody saw the end: whatever it had started is gone.
  if (!view.app.spec.via && pod?.agent?.runs?.get(run.id)?.phase === 'Unknown') return undefined
  if (!pod && isNodeDown(run, view)) return undefined
  const grace = parseDuration(action?.cancel?.grace ?? defaults.cancel.grace) ?? 0
  const timeout = parseDuration(run.timeout) ?? 0
  // It may have been begun long after it was written, but not after nobody could ask about it any more.
  const until = Date.parse(run.startedAt ?? run.lostAt ?? run.writtenAt) + timeout + grace
  return view.now >= until ? undefined : until
}

function isNodeDown({ node, nodeBootId }: RunRecord, { nodes }: View): boolean {
  if (node === undefined) return false
  const found = nodes.get(node)
  return !found || found.isOutOfService || (nodeBootId !== undefined && found.bootId !== nodeBootId)
}

/** The pod to ask whether a run happened: its own, or the one that has its name now. */
export function askable(run: RunRecord, view: View): PodView | undefined {
  const isFit = ({ agent, isTerminating }: PodView) => Boolean(agent?.isReachable && agent.state) && !isTerminating
  const own = view.pods.find(pod => pod.uid === run.uid && isFit(pod))
  if (own || !view.workload?.hasStableNames) return own
  return view.pods.find(pod => pod.name === run.pod && isFit(pod))
}
