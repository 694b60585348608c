/**
 * The StatefulApp's reconciler: gathers, decides, acts, and says how things stand. Built on the toolkit, as any operator.
 *
 * Guarantees: one status write at the end, bound to the version that was read, and none when nothing changed; a step that a new status permits is taken in the next
 * reconciliation, which follows at once.
 */
import type { Clock } from '../../shared/clock.ts'
import { parseDuration } from '../../shared/duration.ts'
import type { CachedClient } from '../kube/cached.ts'
import type { Ref, Snapshot } from '../kube/kind.ts'
import {
  ConfigMap,
  DaemonSet,
  Deployment,
  Node,
  Pod,
  PodDisruptionBudget,
  Service,
  StatefulSet,
} from '../kube/kinds.ts'
import type { Context } from '../toolkit/context.ts'
import { freeStyle } from '../toolkit/freestyle.ts'
import { advancedReconciler, type Reconciler, watched } from '../toolkit/reconciler.ts'
import type { PodAddress } from './agents/address.ts'
import type { Agents } from './agents/agents.ts'
import { settle } from './carry-out.ts'
import { type AppDecision, isSame } from './decide/app.ts'
import { deletionPolicy, skipAnnotation } from './decide/wish.ts'
import { type Gathered, gather } from './gather.ts'
import { carryOut } from './hands.ts'
import { Lifecycle, Operation, StatefulApp } from './kinds.ts'
import { Learned } from './learned.ts'
import type { RunMemory } from './memory.ts'
import type { AppMetrics } from './metrics.ts'
import { conditionsOf, isThere, shownOf } from './status.ts'
import type { App, PodView, View } from './view.ts'
import { releaseClaim } from './workload/claim.ts'
import { type Concerns, nodeMatters } from './workload/concerns.ts'
import { decideGate, gate, gatherGate } from './workload/gate.ts'
import { livePodsOf, type Sources } from './workload/gather.ts'
import { portAnnotation } from './workload/marks.ts'
import { workloadRules } from './workload/rbac.ts'

export const appFinalizer = 'shipmate.dev/app'
const agentPort = 7443

export interface AppSurroundings {
  /** Those of the time that this process leads. */
  agents(): Agents
  readonly sources: Sources
  readonly concerns: Concerns
  readonly memory: RunMemory
  readonly clock: Clock
  /** Apps by the name of their Lifecycle. */
  appsOf(lifecycle: Snapshot): readonly Ref[]
  /** Writes the app's certificate, if it is due; answers when to look again. */
  certify(app: App, client: CachedClient): Promise<number>
  /** Whether this process looks after the app. */
  isMine(app: App): boolean
  readonly metrics: AppMetrics
  listen(wake: (ref: Ref, reason: string) => void): void
}

export function appReconciler(around: AppSurroundings): Reconciler<StatefulApp> {
  const go = (context: Context<StatefulApp>) => reconcile(context, around)
  return advancedReconciler(StatefulApp, {
    name: 'app',
    fieldManager: 'shipmate',
    finalizer: appFinalizer,
    statusByVersion: true,
    engine: freeStyle(go, { CRFinalizer: go }),
    permissions: [
      ...workloadRules,
      { apiGroups: ['shipmate.dev'], resources: ['operations'], verbs: ['create', 'patch'] },
      { apiGroups: ['shipmate.dev'], resources: ['operations/status'], verbs: ['patch'] },
      { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
    ],
    watches: [
      watched(Operation, op => [{ namespace: op.metadata.namespace, name: op.spec.app }]),
      watched(Lifecycle, lifecycle => around.appsOf(lifecycle as Snapshot)),
      watched(Pod, pod => around.concerns.ofPod(pod)),
      watched(Node, node => around.concerns.ofNode(node), { when: nodeMatters }),
      ...[StatefulSet, Deployment, DaemonSet].map(kind =>
        watched<object>(kind, workload => around.concerns.ofWorkload(workload)),
      ),
      ...[Service, ConfigMap, PodDisruptionBudget].map(kind =>
        watched<object>(kind, made => around.concerns.ofMade(made)),
      ),
    ],
    listen: wake => around.listen(wake),
    gone({ namespace = '', name }) {
      around.agents().unfollow({ namespace, name })
      around.metrics.gone({ namespace, name })
    },
  })
}

async function reconcile(context: Context<StatefulApp>, around: AppSurroundings): Promise<void> {
  const { client, signal } = context
  const app = context.cr as App
  const { clock, memory, metrics, sources } = around
  const agents = around.agents()
  if (!around.isMine(app)) return
  if (context.isDeleting && (await letGo(context, around))) return
  const addresses = new Map<string, PodAddress>()
  const learned = new Learned({
    ...{ agents, client, memory, signal },
    now: () => clock.now(),
    addressOf: pod => addresses.get(pod.uid),
  })
  const look = async (): Promise<Gathered> => {
    const found = await gather(app, { client, sources, now: clock.now(), seen: pod => learned.seen(pod) })
    if (found.workload) for (const pod of livePodsOf(client, found.workload)) remember(addresses, app, pod)
    return found
  }
  const certifiedUntil = await around.certify(app, client)
  const first = await look()
  agents.follow(refOf(app), followed(first.view, addresses), { isUrgent: isUrgent(app) })
  let workload = first.workload
  const isSeen = { ...first.view, pods: first.view.pods.map(pod => learned.seen(pod)) }
  let isGated = false
  const hold = async (isWanted: boolean) => {
    const step = decideGate(app, gatherGate(client, app, workload), isWanted)
    await gate(client, app, step)
    return step.gated
  }
  const { view, decision } = await settle(isSeen, {
    facts: () => learned.facts,
    async carryOut(effect, seen) {
      await carryOut(effect, seen, workload, {
        ...{ client, app, learned },
        event: context.event,
        wrote(op, status) {
          memory.wrote(op.status, status, clock.now())
          if (status.finishedAt !== undefined) metrics.ended(op, status)
        },
        async gate() {
          if (!isGated) await hold(true)
          isGated = true
        },
      })
      const next = await look()
      workload = next.workload
      return next.view
    },
  })
  const gated = await hold(decision.isExclusive)
  tell(context, view, decision, gated)
  metrics.stands(app, decision)
  comeBack(context, view, decision, { certifiedUntil, hasFailed: learned.hasFailed, memory, now: clock.now() })
}

const refOf = ({ metadata }: App) => ({ namespace: metadata.namespace ?? '', name: metadata.name })

function remember(addresses: Map<string, PodAddress>, app: App, pod: ReturnType<typeof livePodsOf>[number]): void {
  const { name, uid, annotations } = pod.metadata
  const ip = pod.status?.podIP
  if (!ip) return
  const port = Number(annotations?.[portAnnotation] ?? agentPort)
  addresses.set(uid, { app: refOf(app), pod: { name, uid }, ip, port })
}

function followed({ pods }: View, addresses: ReadonlyMap<string, PodAddress>): PodAddress[] {
  return pods.flatMap(({ uid, hasAgent, isEnded }: PodView) => (hasAgent && !isEnded ? (addresses.get(uid) ?? []) : []))
}

function isUrgent({ spec, status, metadata }: App): boolean {
  return spec.desired !== undefined || status?.operation !== undefined || metadata.deletionTimestamp !== undefined
}

/** Whether an app that is being deleted goes without a walk. */
async function letGo(context: Context<StatefulApp>, around: AppSurroundings): Promise<boolean> {
  const { client, event } = context
  const app = context.cr as App
  const { name, annotations, deletionTimestamp } = app.metadata
  const { view, workload } = await gather(app, {
    ...{ client, sources: around.sources, now: around.clock.now() },
    seen: pod => pod,
  })
  const deadline = parseDuration(app.spec.deletion?.deadline ?? '10m') ?? 600_000
  const isOverdue = around.clock.now() >= Date.parse(String(deletionTimestamp)) + deadline
  const isSkipped = annotations?.[skipAnnotation] === 'true'
  const end = view.lifecycle?.graph.nodes.find(({ kind }) => kind === 'delete')
  const isDone = app.status?.wish?.outcome === 'Succeeded' && app.status.wish.state === end?.name
  const isEnded = isDone && app.status?.wish?.passed !== undefined
  const isFree = deletionPolicy(app) === 'Orphan' || !end || view.isNamespaceTerminating
  if (!isFree && !isEnded && !isSkipped && !isOverdue) return false
  if (isSkipped && !isFree && !isEnded)
    event('Warning', 'LifecycleSkipped', `${name} goes without being stopped: ${skipAnnotation} says so`)
  else if (isOverdue && !isFree && !isEnded)
    event('Warning', 'DeletionOverdue', `${name} goes without being stopped: its deadline has passed`)
  await gate(client, app, decideGate(app, gatherGate(client, app, workload), false))
  await releaseClaim(client, app, workload)
  around.agents().unfollow(refOf(app))
  around.memory.forgetApp(app.metadata.uid)
  return true
}

function tell(
  context: Context<StatefulApp>,
  view: View,
  decision: AppDecision,
  gated: { status: 'True' | 'False'; reason: string; message: string } | undefined,
): void {
  const shown = shownOf(view, decision)
  const status = context.status as Record<string, unknown>
  const before = view.app.status
  for (const [key, value] of Object.entries({ wish: undefined, operation: undefined, ...shown, ...decision.status })) {
    if (value === undefined) delete status[key]
    else status[key] = value
  }
  for (const condition of conditionsOf(view, decision)) context.condition(condition)
  if (gated) context.condition({ type: 'Gated', ...gated })
  else context.dropCondition('Gated')
  if (before?.state !== undefined && before.state !== shown.state)
    context.event('Normal', 'StateChanged', `${before.state} → ${shown.state} (${shown.reason})`)
  if (decision.stalled) context.stall(decision.stalled.reason, decision.stalled.message)
  else if (!isThere(decision) || context.isDeleting) {
    const words = shown.waitingFor ?? `${shown.state}: ${shown.reason}`
    context.waitFor(decision.current ? 'OperationInProgress' : 'OnItsWay', `Waiting for ${words}.`)
  }
}

function comeBack(
  context: Context<StatefulApp>,
  view: View,
  decision: AppDecision,
  {
    certifiedUntil,
    hasFailed,
    memory,
    now,
  }: { certifiedUntil: number; hasFailed: boolean; memory: RunMemory; now: number },
): void {
  const { wish, operation, fence } = view.app.status ?? {}
  const stored = { ...(wish && { wish }), ...(operation && { operation }), ...(fence !== undefined && { fence }) }
  // What the new status permits is done at once.
  if (!isSame(decision.status, stored)) return context.comeBack(1, 'the status permits the next step')
  if (Number.isFinite(certifiedUntil)) context.comeBack(Math.max(certifiedUntil - now, 1000), 'its certificate')
  if (decision.until !== undefined) context.comeBack(Math.max(decision.until - now, 1), 'something is due')
  const isWaiting = hasFailed || decision.current || (decision.next && decision.next.is !== 'there')
  const { uid } = view.app.metadata
  if (isWaiting) context.comeBack(memory.patience(uid, JSON.stringify(decision.status)), 'the safety net')
  else memory.forgetApp(uid)
}
