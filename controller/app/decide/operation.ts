/**
 * The current operation of an app, moved on by what is known now: its targets, its runs, how it ends, and what to ask of the sidecars. Pure.
 *
 * Guarantees: targets are resolved once; a run is asked for only if it stands in the status as stored; there is a new attempt only where it is known that the
 * last one cannot be alive and did not happen, or may happen twice (`idempotent`), or failed with a retry left; an operation with an Unknown run has not ended.
 */
import { hashOf } from '../../../shared/canonical.ts'
import { timeOf } from '../../../shared/clock.ts'
import { parseDuration } from '../../../shared/duration.ts'
import { type Action, defaults } from '../../../shared/lifecycle/model.ts'
import type { Op, OpStatus, PodView, RunRecord, Target, View } from '../view.ts'
import type { Ask, Facts } from './facts.ts'
import { askKey } from './facts.ts'
import { runFence } from './fence.ts'
import type { Observed } from './observe.ts'
import { isCancelled } from './queue.ts'
import {
  advanceRun,
  aliveUntil,
  askable,
  isInProgress,
  isTerminal,
  needsTail,
  quiet,
  type RunSurroundings,
} from './run.ts'
import { inTurn, type Order, resolveTargets } from './targets.ts'
import { earlier, type Waiting } from './waiting.ts'
import { paramsProblem } from './wish.ts'

const retryDelay = { least: 1000, most: 60_000 }

export interface OperationDecision {
  readonly status: OpStatus
  /** To be asked once the status is stored. */
  readonly asks: readonly Ask[]
  readonly waiting: Waiting | undefined
  /** Only a person can go on. */
  readonly stalled: { readonly reason: string; readonly message: string } | undefined
  /** Pods have seen a fence that is not below the operation's: it has to be minted anew first. */
  readonly needsFence: boolean
  /** When to look again, if nothing changes. */
  readonly until: number | undefined
}

export interface OperationOptions {
  /** The operation's fence, as stored in the app's status. */
  readonly fence: number
  readonly observed: Observed
  readonly facts: Facts
}

type Standing =
  | { readonly is: 'open'; readonly attempt: number; readonly from: number }
  | { readonly is: 'busy'; readonly run: RunRecord }
  | { readonly is: 'alive'; readonly run: RunRecord; readonly until: number }
  | { readonly is: 'unknown'; readonly run: RunRecord }
  | { readonly is: 'done' }
  | { readonly is: 'failed'; readonly code: string; readonly message: string; readonly phase: 'Failed' | 'TimedOut' }
  | { readonly is: 'cancelled' }

export function decideOperation(view: View, op: Op, options: OperationOptions): OperationDecision {
  const stored = op.status ?? {}
  if (stored.finishedAt !== undefined) return { ...nothing, status: stored, asks: drops(view, stored, options.facts) }
  const action = view.lifecycle?.spec.actions?.find(({ name }) => name === op.spec.action)
  const actionHash = action && hashOf(action)
  const isSameAction = stored.actionHash === undefined || stored.actionHash === actionHash
  const around: RunSurroundings = { view, op, action, isSameAction, facts: options.facts }
  const runs = (stored.runs ?? []).map(run => advanceRun(run, around))
  const told = { ...stored, ...(runs.length > 0 && { runs }) }
  const refusal = runs.length === 0 ? refusalOf(op, action, view) : undefined
  if (refusal) return { ...nothing, status: finished(told, 'Failed', refusal, view.now) }

  const overdue = overdueAt(op)
  const isOverdue = overdue !== undefined && view.now >= overdue
  const stopping = isCancelled(op) || isOverdue
  if (!stored.targets) {
    if (stopping)
      return {
        ...nothing,
        status: isOverdue
          ? finished(told, 'Failed', tooLate, view.now)
          : finished(told, 'Cancelled', calledOff, view.now),
      }
    const resolved = resolveTargets({
      target: op.spec.target ?? action?.target ?? defaults.action.target,
      order: orderOf(action),
      workload: view.workload,
      pods: view.pods,
      observed: options.observed.pods,
    })
    if ('stalled' in resolved) return { ...nothing, status: told, stalled: resolved.stalled, until: overdue }
    if ('waitFor' in resolved || resolved.targets.length === 0) {
      const what = 'waitFor' in resolved ? resolved.waitFor : 'a pod to be there'
      return { ...nothing, status: told, waiting: { what, until: overdue }, until: overdue }
    }
    const begun: OpStatus = {
      ...told,
      phase: 'Running',
      targets: resolved.targets,
      startedAt: timeOf(view.now),
      ...(actionHash !== undefined && { actionHash }),
    }
    return carryOn(view, op, begun, { ...options, action, isSameAction, stopping, isOverdue, overdue })
  }
  return carryOn(view, op, told, { ...options, action, isSameAction, stopping, isOverdue, overdue })
}

const nothing = { asks: [], waiting: undefined, stalled: undefined, needsFence: false, until: undefined } as const
const calledOff = { code: 'Cancelled', message: 'it was cancelled before it was begun' }
const tooLate = { code: 'DeadlineExceeded', message: 'it was not begun before its deadline' }

interface Going extends OperationOptions {
  readonly action: Action | undefined
  readonly isSameAction: boolean
  /** Nothing new is begun, what runs is ended. */
  readonly stopping: boolean
  readonly isOverdue: boolean
  readonly overdue: number | undefined
}

function carryOn(view: View, op: Op, before: OpStatus, going: Going): OperationDecision {
  const { action, facts, stopping } = going
  const targets = (before.targets ?? []).map(target => rebound(target, before, view))
  let until = going.overdue
  const runs = (before.runs ?? []).map(run => {
    if (!stopping) return run
    const stopped = quiet(run, view)
    until = earlier(until, stopped.until)
    return stopped.run
  })
  let status: OpStatus = { ...before, targets, ...(runs.length > 0 && { runs }) }
  const standing = new Map(targets.map(target => [target.pod, standingOf(target, status, view, going)]))
  const at = (target: Target) => standing.get(target.pod) as Standing
  const has = (is: Standing['is']) => targets.some(target => at(target).is === is)
  const asks: Ask[] = []
  let waiting: Waiting | undefined
  let needsFence = false

  for (const run of status.runs ?? []) asks.push(...asksFor(run, view, op, going))
  const mayBegin = !stopping && !has('failed') && !has('unknown') && !view.app.spec.paused
  if (mayBegin) {
    for (const target of inTurn(targets, orderOf(action), one => at(one).is === 'done')) {
      const one = at(target)
      if (one.is !== 'open') continue
      if (view.now < one.from) {
        until = earlier(until, one.from)
        waiting ??= { what: `another attempt in ${target.pod}`, until: one.from }
        continue
      }
      const begun = beginRun(view, op, status, target, one.attempt, going)
      if ('run' in begun) status = { ...status, runs: [...(status.runs ?? []), begun.run] }
      else if ('ask' in begun) asks.push(begun.ask)
      else if ('needsFence' in begun) needsFence = true
      else if ('failed' in begun) return { ...nothing, status: finished(status, 'Failed', begun.failed, view.now) }
      else waiting ??= { what: begun.waitFor }
    }
  }
  for (const target of targets) {
    const one = at(target)
    if (one.is === 'alive') {
      until = earlier(until, one.until)
      const { node = 'its node' } = one.run
      waiting ??= {
        what: `${one.run.pod} on ${node} to be known to have ended ${op.spec.action}`,
        since: one.run.lostAt,
        until: one.until,
      }
    }
    if (one.is === 'busy') {
      const began = beganAt(one.run)
      const timeout = parseDuration(one.run.timeout) ?? 0
      const refusal = one.run.phase === 'Written' ? facts.refusals.get(one.run.id) : undefined
      if (refusal)
        waiting ??= { what: `${one.run.pod} to accept ${op.spec.action} (${refusal.code}: ${refusal.message})` }
      // It is told together with what the pod says of it.
      const agent = view.pods.find(({ uid }) => uid === one.run.uid)?.agent
      if (one.run.phase === 'Written' && agent?.isReachable && agent.state?.run?.id !== one.run.id) continue
      waiting ??= {
        what: `${one.run.pod} to finish ${op.spec.action}`,
        since: began,
        until: began + timeout,
      }
    }
    if (one.is === 'unknown' && action?.verify && askable(one.run, view))
      until = earlier(until, facts.verifyAt(one.run.id))
  }
  const unwritten = status.runs?.length !== before.runs?.length
  const isGoing = unwritten || has('busy') || has('alive') || (has('open') && mayBegin)
  if (isGoing) return { ...nothing, status: running(status), asks, waiting, needsFence, until }
  return { ...nothing, asks, until, waiting, ...ended(view, op, status, targets.map(at), going) }
}

/** For people: that it began a moment after it was written is not worth another sentence. */
function beganAt({ writtenAt, startedAt }: RunRecord): number {
  const written = Date.parse(writtenAt)
  const started = startedAt === undefined ? written : Date.parse(startedAt)
  return started - written > 60_000 ? started : written
}

/** How it stands when nothing of it is going on. */
function ended(
  view: View,
  op: Op,
  status: OpStatus,
  all: readonly Standing[],
  { stopping, isOverdue }: Going,
): Pick<OperationDecision, 'status' | 'stalled'> {
  const end = (phase: NonNullable<OpStatus['phase']>, why?: { code: string; message: string }) => ({
    status: finished(status, phase, why, view.now),
    stalled: undefined,
  })
  const unknown = all.find(one => one.is === 'unknown')
  if (unknown) {
    const { id, pod, error } = unknown.run
    const message = `nobody saw how ${op.spec.action} ended in ${pod} (run ${id}: ${error?.message ?? 'no reason is known'})`
    if (op.metadata.deletionTimestamp !== undefined) return end('Unknown', { code: 'OutcomeUnknown', message })
    const todo = 'find out, and say so in spec.settle of the Operation'
    return {
      status: { ...status, phase: 'Unknown', reason: 'OutcomeUnknown', message },
      stalled: { reason: 'OutcomeUnknown', message: `${message}; ${todo}` },
    }
  }
  const failed = all.find(one => one.is === 'failed')
  if (failed) return end(failed.phase, failed)
  if (all.every(({ is }) => is === 'done')) return end('Succeeded')
  if (isOverdue) return end('Failed', { code: 'DeadlineExceeded', message: 'its deadline has passed' })
  if (stopping) return end('Cancelled', { code: 'Cancelled', message: 'it was cancelled' })
  if (all.some(({ is }) => is === 'cancelled'))
    return end('Cancelled', { code: 'Cancelled', message: 'a run of it was cancelled' })
  return { status, stalled: undefined }
}

function running({ reason: _, message: __, ...rest }: OpStatus): OpStatus {
  return { ...rest, phase: 'Running' }
}

function finished(
  status: OpStatus,
  phase: NonNullable<OpStatus['phase']>,
  why: { readonly code: string; readonly message: string } | undefined,
  now: number,
): OpStatus {
  const { reason: _, message: __, ...rest } = status
  return { ...rest, phase, finishedAt: timeOf(now), ...(why && { reason: why.code, message: why.message }) }
}

/** Why an Operation cannot be begun at all. */
function refusalOf(op: Op, action: Action | undefined, view: View): { code: string; message: string } | undefined {
  if (!view.lifecycle || isCancelled(op)) return undefined
  const names = (view.lifecycle.spec.actions ?? []).map(({ name }) => name)
  if (!action)
    return {
      code: 'UnknownAction',
      message: `${op.spec.action} is no action of lifecycle ${view.app.spec.lifecycle} (it has: ${names.join(', ')})`,
    }
  const problem = paramsProblem(action.params, op.spec, 'spec')
  return problem === undefined ? undefined : { code: 'InvalidParams', message: problem }
}

/** A pod that was replaced before anything was written for it is the same target under its new uid. */
function rebound(target: Target, { runs = [] }: OpStatus, { pods, workload }: View): Target {
  if (!workload?.hasStableNames || runs.some(({ pod }) => pod === target.pod)) return target
  if (pods.some(({ uid }) => uid === target.uid)) return target
  const now = pods.find(({ name, isTerminating }) => name === target.pod && !isTerminating)
  return now ? { ...target, uid: now.uid } : target
}

function standingOf(
  target: Target,
  { runs = [] }: OpStatus,
  view: View,
  { action, facts, isSameAction }: Going,
): Standing {
  const own = runs.filter(({ pod }) => pod === target.pod)
  const last = own.at(-1)
  const isThere = view.pods.some(({ name, uid }) =>
    view.workload?.hasStableNames ? name === target.pod : uid === target.uid,
  )
  const gone = { is: 'failed', phase: 'Failed', code: 'TargetGone', message: `${target.pod} is gone` } as const
  const again = (attempt: number, from = 0): Standing =>
    isThere || view.workload?.hasStableNames ? { is: 'open', attempt, from } : gone
  if (!last) return again(1)
  if (last.phase === 'Succeeded') return { is: 'done' }
  if (isInProgress(last)) return { is: 'busy', run: last }
  if (last.phase === 'Unknown') {
    const until = aliveUntil(last, view, action)
    if (until !== undefined) return { is: 'alive', run: last, until }
    const isVerified = !action?.verify || facts.verdicts.get(last.id) === 'Unknown' || !askable(last, view)
    if (action?.idempotent && isVerified && isSameAction) return again(last.attempt + 1)
    return { is: 'unknown', run: last }
  }
  if (last.phase === 'Cancelled') return { is: 'cancelled' }
  const { code = last.phase, message = '' } = last.error ?? {}
  if (code === 'NotStarted') return again(last.attempt + 1)
  const failures = own.filter(run => isTerminal(run) && run.error?.code !== 'NotStarted').length
  const neverHelps = ['LifecycleChanged', 'UnknownAction', 'InvalidParams'].includes(code)
  if (failures > (action?.retries ?? defaults.action.retries) || neverHelps || !isSameAction)
    return {
      is: 'failed',
      phase: last.phase === 'TimedOut' ? 'TimedOut' : 'Failed',
      code,
      message: `${last.pod}: ${message}`,
    }
  const delay = Math.min(retryDelay.least * 2 ** (failures - 1), retryDelay.most)
  return again(last.attempt + 1, Date.parse(last.finishedAt ?? last.writtenAt) + delay)
}

type Begun =
  | { readonly run: RunRecord }
  | { readonly ask: Ask }
  | { readonly waitFor: string }
  | { readonly needsFence: true }
  | { readonly failed: { readonly code: string; readonly message: string } }

function beginRun(view: View, op: Op, { runs = [] }: OpStatus, target: Target, attempt: number, going: Going): Begun {
  const { action, isSameAction, facts, fence } = going
  const { lifecycle, nodes, now } = view
  if (!isSameAction)
    return { failed: { code: 'LifecycleChanged', message: `${op.spec.action} was changed before all of it was begun` } }
  if (!lifecycle || !action) return { waitFor: `lifecycle ${view.app.spec.lifecycle} to be there` }
  if (view.workload?.isRollingOut && !action.duringRollout) return { waitFor: 'the rollout of the workload to be done' }
  const pod = podOf(target, view, attempt)
  if (!pod) return { waitFor: `pod ${target.pod} to be there` }
  const { agent } = pod
  if (!pod.hasAgent) return { waitFor: `a sidecar in ${pod.name}` }
  if (!agent?.isReachable || !agent.state || !agent.runs) return { waitFor: `the sidecar of ${pod.name} to be reached` }
  if (agent.state.configHash !== lifecycle.hash)
    return { waitFor: `${pod.name} to have the lifecycle ${view.app.spec.lifecycle} as it is now` }
  const fresh = facts.states.get(pod.uid)
  if (!fresh) {
    const ask: Ask = { ask: 'state', pod }
    return facts.asked.has(askKey(ask)) ? { waitFor: `the sidecar of ${pod.name} to answer` } : { ask }
  }
  const carried = runFence(fence, runs.length + 1)
  if (fresh.fence >= carried) return { needsFence: true }
  const node = pod.node === undefined ? undefined : nodes.get(pod.node)
  return {
    run: {
      pod: pod.name,
      uid: pod.uid,
      id: runIdOf(op, pod.uid, attempt),
      attempt,
      fence: carried,
      journalId: fresh.journalId,
      configHash: lifecycle.hash,
      ...(node && { node: node.name, nodeBootId: node.bootId }),
      timeout: action.timeout ?? defaults.action.timeout,
      phase: 'Written',
      writtenAt: timeOf(now),
    },
  }
}

function podOf(target: Target, { pods, workload }: View, attempt: number): PodView | undefined {
  const isFit = ({ isTerminating }: PodView) => !isTerminating
  const own = pods.find(pod => pod.uid === target.uid && isFit(pod))
  if (own || !workload?.hasStableNames || attempt === 1) return own
  return pods.find(pod => pod.name === target.pod && isFit(pod))
}

/** The same for the same operation, pod and attempt; never the same for others. */
export function runIdOf(op: Op, podUid: string, attempt: number): string {
  return `${op.spec.action}.${attempt}.${hashOf([op.metadata.uid, podUid, attempt]).slice(0, 32)}`
}

/** What a run that stands in the status asks for. */
function asksFor(run: RunRecord, view: View, op: Op, { action, facts, stopping }: Going): Ask[] {
  const pod = view.pods.find(({ uid }) => uid === run.uid)
  const agent = pod?.agent
  const said = agent?.runs?.get(run.id)
  const once = (ask: Ask): Ask[] => (facts.asked.has(askKey(ask)) ? [] : [ask])
  const word = op.spec.settle?.find(one => one.run === run.id)
  if (word && agent?.isReachable && pod && said?.phase === 'Unknown')
    return once({ ask: 'settle', pod, run, outcome: word.outcome, reason: word.reason })
  if (run.phase === 'Unknown') {
    const asked = askable(run, view)
    if (!asked || aliveUntil(run, view, action) !== undefined) return []
    if (!action?.verify || view.now < facts.verifyAt(run.id)) return []
    return once({ ask: 'verify', pod: asked, run })
  }
  if (!pod || !agent?.isReachable || !isInProgress(run)) return []
  if (said && needsTail(run, said, facts)) return [{ ask: 'tail', pod, run }]
  if (said || run.phase !== 'Written') return stopping ? once({ ask: 'cancel', pod, run }) : []
  if (facts.refusals.has(run.id)) return []
  if (stopping && !agent.features.includes('annul')) return []
  // Who must not begin it any more has it written down there as cancelled: whatever is still on its way then comes too late.
  return once({ ask: stopping ? 'annul' : 'put', pod, run })
}

/** The sidecars may forget what stands here. */
function drops(view: View, { runs = [] }: OpStatus, { asked }: Facts): Ask[] {
  return runs.filter(isTerminal).flatMap(run => {
    const pod = view.pods.find(({ uid }) => uid === run.uid)
    if (!pod?.agent?.isReachable || !pod.agent.runs?.has(run.id)) return []
    const ask: Ask = { ask: 'drop', pod, run }
    return asked.has(askKey(ask)) ? [] : [ask]
  })
}

function orderOf(action: Action | undefined): Order {
  return action?.order ?? defaults.action.order
}

/** When its deadline passes. */
export function overdueAt({ spec, metadata }: Op): number | undefined {
  const deadline = spec.deadline === undefined ? undefined : parseDuration(spec.deadline)
  return deadline === undefined ? undefined : Date.parse(String(metadata.creationTimestamp)) + deadline
}
