/** Views to decide from, as short as a test wants them. */
import type { AppFacts } from '../../../controller/app/decide/app.ts'
import { noFacts } from '../../../controller/app/decide/facts.ts'
import type {
  AgentView,
  App,
  LifecycleView,
  Op,
  PodView,
  RunRecord,
  View,
  WorkloadView,
} from '../../../controller/app/view.ts'
import { graphOf } from '../../../shared/lifecycle/graph.ts'
import { configHash } from '../../../shared/lifecycle/hash.ts'
import type { LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import type { PodState, Run } from '../../../shared/protocol/schemas.ts'
import { lifecycle } from './sim.ts'

export const now = Date.parse('2026-01-01T12:00:00Z')
export const at = (seconds: number) => new Date(now + seconds * 1000).toISOString().replace('.000', '')

export function lifecycleViewOf(spec: LifecycleSpec = lifecycle): LifecycleView {
  return { spec, graph: graphOf(spec), hash: configHash(spec), problems: [] }
}

export const base = lifecycleViewOf()

export function stateOf(over: Partial<PodState> = {}): PodState {
  return {
    ...{ state: 'Running', since: at(0), reason: 'GuardHolds', role: null, probes: {}, run: null },
    ...{ pod: { name: 'db-0', namespace: 'default', uid: 'pod-0' }, configHash: base.hash, journalId: 'journal' },
    ...{ fence: 0, bootId: 'boot', seq: 0, cursor: '', version: '1', ...over },
  }
}

export function agentOf(
  over: Partial<Omit<AgentView, 'state'>> & { state?: Partial<PodState> | undefined } = {},
): AgentView {
  const { state, ...rest } = over
  return {
    ...{ isReachable: true, since: now, error: undefined, runs: new Map() },
    features: ['adopt', 'annul', 'fence', 'verify'],
    ...rest,
    state: 'state' in over && state === undefined ? undefined : stateOf(state),
  }
}

export function podOf(n: number, over: Partial<PodView> = {}): PodView {
  return {
    ...{ name: `db-${n}`, uid: `pod-${n}`, ip: '10.0.0.1', node: 'node', isReady: true, isTerminating: false },
    ...{ isEnded: false, hasAgent: true, agent: agentOf() },
    ...over,
  }
}

/** A pod whose sidecar says this. */
export const says = (n: number, state: string, more: Partial<PodState> = {}) =>
  podOf(n, { agent: agentOf({ state: { state, ...more } }) })

export function workloadOf(over: Partial<WorkloadView> = {}): WorkloadView {
  return {
    ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'sts', replicas: 1, isScalable: true },
    ...{ keptReplicas: undefined, isRollingOut: false, isOutdated: false, hasStableNames: true, isBeingDeleted: false },
    ...{ claimedBy: { namespace: 'default', name: 'db', uid: 'app' }, ...over },
  }
}

export function appOf(over: { spec?: object; status?: object; metadata?: object } = {}): App {
  return {
    apiVersion: 'shipmate.dev/v1alpha1',
    kind: 'StatefulApp',
    metadata: { name: 'db', namespace: 'default', uid: 'app', generation: 1, ...over.metadata },
    spec: { lifecycle: 'lc', workload: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db' }, ...over.spec },
    ...(over.status && { status: over.status }),
  } as unknown as App
}

export function viewOf(over: Partial<View> = {}): View {
  return {
    ...{ now, app: appOf(), lifecycle: base, workload: workloadOf(), pods: [podOf(0)], operations: [] },
    nodes: new Map([['node', { name: 'node', bootId: 'kernel', isOutOfService: false }]]),
    isNamespaceTerminating: false,
    ...over,
  }
}

export function opOf(over: { spec?: object; status?: object; metadata?: object } = {}): Op {
  return {
    apiVersion: 'shipmate.dev/v1alpha1',
    kind: 'Operation',
    metadata: {
      ...{ name: 'op', namespace: 'default', uid: 'op', resourceVersion: '1', creationTimestamp: at(0) },
      ...{ finalizers: ['shipmate.dev/operation'], ...over.metadata },
    },
    spec: { app: 'db', action: 'backup', priority: 0, suspend: false, cancel: false, ...over.spec },
    ...(over.status && { status: over.status }),
  } as unknown as Op
}

/** A run as the status has it. */
export function recordOf(over: Partial<RunRecord> = {}): RunRecord {
  return {
    ...{ pod: 'db-0', uid: 'pod-0', id: 'run', attempt: 1, fence: 65_537, journalId: 'journal', configHash: base.hash },
    ...{ node: 'node', nodeBootId: 'kernel', timeout: '1h', phase: 'Written', writtenAt: at(0) },
    ...over,
  } as RunRecord
}

/** A run as its sidecar says it. */
export function saidOf(over: Partial<Run> = {}): Run {
  return {
    ...{ id: 'run', action: 'backup', params: {}, phase: 'Running', attempt: 1, startedAt: at(0), finishedAt: null },
    ...{ exitCode: null, progress: null, result: null, error: null, log: { size: 0, keptHead: 0, tailFrom: 0 } },
    ...over,
  }
}

export const facts = (over: Partial<AppFacts> = {}): AppFacts => ({
  ...noFacts,
  ...{ isEndDone: undefined, endWaits: undefined },
  ...over,
})
