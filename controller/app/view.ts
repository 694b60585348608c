/**
 * What the app controller decides from: plain data, gathered from the API server's cache and from the sidecars. Decisions are functions of a View alone.
 *
 * Guarantee: nothing here comes from the memory of a process but what the sidecars said last, which a restart asks anew.
 */
import type { Graph } from '../../shared/lifecycle/graph.ts'
import type { LifecycleSpec } from '../../shared/lifecycle/model.ts'
import type { PodState, Run } from '../../shared/protocol/schemas.ts'
import type { Snapshot } from '../kube/kind.ts'
import type { Operation, StatefulApp } from './kinds.ts'

export type App = Snapshot<StatefulApp>
export type Op = Snapshot<Operation>
export type AppStatus = NonNullable<App['status']>
export type WishStatus = NonNullable<AppStatus['wish']>
export type Wish = NonNullable<App['spec']['desired']>
export type OpStatus = NonNullable<Op['status']>
export type RunRecord = NonNullable<OpStatus['runs']>[number]
export type Target = NonNullable<OpStatus['targets']>[number]

export interface View {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly app: App
  /** Undefined: there is none of that name. */
  readonly lifecycle: LifecycleView | undefined
  /** Undefined: it is not there. */
  readonly workload: WorkloadView | undefined
  /** Those that the workload's selector finds, terminating ones too. */
  readonly pods: readonly PodView[]
  /** The Nodes of the pods, and those on which runs were begun that have not ended, by name. One that is gone is not here. */
  readonly nodes: ReadonlyMap<string, NodeView>
  /** Every Operation whose `spec.app` is this app. */
  readonly operations: readonly Op[]
  readonly isNamespaceTerminating: boolean
}

export interface LifecycleView {
  readonly spec: LifecycleSpec
  readonly graph: Graph
  /** The config hash of its pods, once they have it. */
  readonly hash: string
  /** What is wrong with it; empty if nothing is. */
  readonly problems: readonly string[]
}

export interface WorkloadView {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  /** The wished number of pods. */
  readonly replicas: number
  /** Whether it can be scaled. */
  readonly isScalable: boolean
  /** The number that we scaled down from, if we did and nobody scaled since. */
  readonly keptReplicas: number | undefined
  readonly isRollingOut: boolean
  /** Whether it differs from the app's `template`. Always false for an existing one. */
  readonly isOutdated: boolean
  /** Whether a pod is replaced under its own name. */
  readonly hasStableNames: boolean
  readonly isBeingDeleted: boolean
  /** Who has claimed it. */
  readonly claimedBy: { readonly namespace: string; readonly name: string; readonly uid: string } | undefined
}

export interface PodView {
  readonly name: string
  readonly uid: string
  readonly ip: string | undefined
  readonly node: string | undefined
  readonly isReady: boolean
  readonly isTerminating: boolean
  /** Every container, init containers too, was seen terminated, and none is started again. */
  readonly isEnded: boolean
  /** Whether there is a sidecar in it. */
  readonly hasAgent: boolean
  /** Undefined: not connected yet. */
  readonly agent: AgentView | undefined
}

export interface NodeView {
  readonly name: string
  /** The kernel's. */
  readonly bootId: string
  /** It carries the taint `node.kubernetes.io/out-of-service`. */
  readonly isOutOfService: boolean
}

/** What a sidecar has said. */
export interface AgentView {
  readonly isReachable: boolean
  /** Since when it is, or is not, in milliseconds since 1970. */
  readonly since: number
  /** Why it is not. */
  readonly error: string | undefined
  /** The last that it said; undefined if it never did. */
  readonly state: PodState | undefined
  /** Every run that it knows, by id, as it said last. Undefined while that is not known. */
  readonly runs: ReadonlyMap<string, Run> | undefined
  readonly features: readonly string[]
}
