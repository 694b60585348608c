/**
 * A pod with its sidecar: what it answers, by the sidecar's own rules of admission, and what befalls it. Pure.
 */
import type { RunRecord as Sent } from '../../../controller/app/view.ts'
import type { CompiledLifecycle } from '../../../shared/lifecycle/compile.ts'
import { compileLifecycle } from '../../../shared/lifecycle/compile.ts'
import { configHash } from '../../../shared/lifecycle/hash.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import { Problem } from '../../../shared/protocol/problems.ts'
import type { Phase, PodState, Run } from '../../../shared/protocol/schemas.ts'
import { advance, isInProgress, isTerminal, settledBy, type Verdict } from '../../../shared/run.ts'
import type { RunRecord } from '../../../sidecar/journal/records.ts'
import { admit } from '../../../sidecar/runs/admit.ts'
import { viewOf } from '../../../sidecar/runs/view.ts'
import type { Mutant } from './mutants.ts'
import { type Execution, old, type Pod, recent } from './world.ts'

export interface Config {
  readonly lifecycle: CompiledLifecycle
  readonly hash: string
}

export function configOf(spec: LifecycleSpec): Config {
  return { lifecycle: compileLifecycle(spec), hash: configHash(spec) }
}

export function newPod(name: string, uid: string): Pod {
  const journalId = `journal-of-${uid}`
  return { name, uid, isEnded: false, isUp: true, since: old, journalId, fence: 0, runs: [] }
}

export function stateOf({ name, uid, fence, journalId, runs }: Pod, { lifecycle, hash }: Config): PodState {
  const going = runs.find(({ phase }) => isInProgress(phase))
  const transient = going && lifecycle.graph.transientOf(going.action)
  return {
    state: transient?.name ?? 'Running',
    since: '',
    reason: transient ? 'RunInProgress' : 'GuardHolds',
    role: null,
    probes: {},
    run: going ? { id: going.id, action: going.action, phase: going.phase } : null,
    pod: { name, namespace: 'default', uid },
    configHash: hash,
    journalId,
    fence,
    bootId: '',
    seq: 0,
    cursor: '',
    version: '',
  }
}

export function runOf(pod: Pod, id: string): RunRecord | undefined {
  return pod.runs.find(run => run.id === id)
}

export type Answer = { readonly pod: Pod; readonly run: Run } | { readonly pod: Pod; readonly refused: string }

/** PUT of a run as it stands in the status; `isAnnul`: to be written down as cancelled. */
export function put(
  pod: Pod,
  sent: Sent,
  action: string,
  { config, isAnnul, mutant }: { config: Config; isAnnul: boolean; mutant: Mutant | undefined },
): Answer {
  const { id, attempt, uid, fence, configHash: hash, journalId } = sent
  const body = {
    ...{ action, params: {}, attempt, podUid: uid, fence },
    ...(hash !== undefined && { configHash: hash }),
    ...(journalId !== undefined && { journalId }),
    ...(isAnnul && { cancelled: true }),
  }
  try {
    const admitted = admit(id, body, {
      podUid: pod.uid,
      draining: undefined,
      journalId: mutant === 'noJournalCheck' ? (journalId ?? '') : pod.journalId,
      fence: mutant === 'noFenceCheck' ? -1 : pod.fence,
      configHash: config.hash,
      actions: config.lifecycle.actions,
      preStop: undefined,
      run: runOf(pod, id),
      inProgress: pod.runs.filter(({ phase }) => isInProgress(phase)),
      reserved: undefined,
      now: 0,
    })
    if ('known' in admitted) return { pod, run: viewOf(admitted.known) }
    const run = isAnnul ? endedAs(admitted.run, 'Cancelled', 'Cancelled') : admitted.run
    return { pod: { ...pod, fence: Math.max(pod.fence, fence), runs: [...pod.runs, run] }, run: viewOf(run) }
  } catch (error) {
    if (error instanceof Problem) return { pod, refused: error.code }
    throw error
  }
}

export function withRun(pod: Pod, id: string, change: Partial<RunRecord>): Pod {
  return {
    ...pod,
    runs: pod.runs.map(run => {
      if (run.id !== id) return run
      if (change.phase !== undefined && change.phase !== run.phase) advance(run.phase, change.phase)
      return { ...run, ...change }
    }),
  }
}

/** What verify or a person has said of an Unknown run. */
export function settled(pod: Pod, id: string, verdict: Verdict): Pod {
  const outcome = settledBy(verdict)
  if (runOf(pod, id)?.phase !== 'Unknown' || !outcome) return pod
  return withRun(pod, id, { ...outcome, finishedAt: recent })
}

/** The agent starts anew, and finds what the one before has left. */
export function restarted(pod: Pod, executions: readonly Execution[]): Pod {
  const runs = pod.runs.map((run): RunRecord => {
    if (run.phase === 'Accepted') return endedAs(run, 'Failed', 'NotStarted')
    const was = executions.find(({ id, uid }) => id === run.id && uid === pod.uid)
    if (run.phase !== 'Running' || !was || was.is === 'alive') return run
    if (!was.isSeen) return { ...run, phase: 'Unknown', error: { code: 'Lost', message: '' } }
    return was.is === 'happened' ? endedAs(run, 'Succeeded') : endedAs(run, 'Failed', 'ExitCode')
  })
  return { ...pod, isUp: true, since: old, runs }
}

export function endedAs(run: RunRecord, phase: Phase, code?: string): RunRecord {
  return { ...run, phase, finishedAt: recent, error: code === undefined ? null : { code, message: '' } }
}

/** It has forgotten what has ended. */
export function swept(pod: Pod): Pod {
  return { ...pod, runs: pod.runs.filter(({ phase }) => !isTerminal(phase)) }
}
