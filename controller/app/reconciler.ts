/**
 * The StatefulApp's reconciler: gathers, decides, acts, and says how things stand. Built on the toolkit, as any operator.
 *
 * Guarantees: one status write at the end, bound to the version that was read, and none when nothing changed; a step that a new status permits is taken in the next
 * reconciliation, which follows at once.
 */
import type { Clock } from '../../shared/clock.ts'
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
import { settle } from './carry-out.ts'
import { type AppDecision, isSame } from './decide/app.ts'
import { type Gathered, gather, gatherLetGo } from './gather.ts'
import { carryOut } from './hands.ts'
import { Lifecycle, Operation, StatefulApp } from './kinds.ts'
import { Learned } from './learned.ts'
import { decideLetGo, letGo } from './let-go.ts'
import { lifecycleView } from './lifecycle-view.ts'
import type { RunMemory } from './memory.ts'
import type { AppMetrics } from './metrics.ts'
import { isUntried, sayAgain } from './say-again.ts'
import { conditionsOf, isBeingMade, isThere, shownOf } from './status.ts'
import type { AllAgents } from './via/via.ts'
import type { App, PodView, View } from './view.ts'
import { type Concerns, nodeMatters } from './workload/concerns.ts'
import { decideGate, gate, gatherGate } from './workload/gate.ts'
import { livePodsOf, type Sources } from './workload/gather.ts'
import { portAnnotation } from './workload/marks.ts'
import { workloadRules } from './workload/rbac.ts'

const appFinalizer = 'shipmate.dev/app'
const agentPort = 7443

export interface AppSurroundings {
  /** Those of the time that this process leads. */
  agents(): AllAgents
  readonly sources: Sources
  readonly concerns: Concerns
  readonly memory: RunMemory
  readonly clock: Clock
  /** Apps by the name of their Lifecycle. */
  appsOf(lifecycle: Snapshot): readonly Ref[]
  /** Writes the app's certificate, if it is due; answers when to look again. */
  certify(app: App, client: CachedClient, signal: AbortSignal): Promise<number>
  /** Whether this process looks after it. */
  isMine(app: Snapshot): boolean
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
    only: app => around.isMine(app as Snapshot),
    // After a takeover they are to be connected to before the rest.
    first: app => isUrgent(app as App),
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
    // Operations and their runs are steps that its own generation tells nothing of.
    further: ({ metadata, status }) => `${status?.fence ?? 0} ${around.memory.steps(metadata.uid)}`,
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
  if (context.isDeleting && (await goes(context, around))) return
  const lifecycle = await client.find(Lifecycle, { namespace: app.metadata.namespace, name: app.spec.lifecycle })
  const agents = around.agents().of(app, lifecycle && lifecycleView(lifecycle))
  const addresses = new Map<string, PodAddress>()
  const learned = new Learned({
    ...{ agents, client, memory, signal },
    now: () => clock.now(),
    addressOf: pod => addresses.get(pod.uid),
  })
  // Without a sidecar every pod can be asked all the same.
  const asked = (pod: PodView) => learned.seen(app.spec.via ? { ...pod, hasAgent: true } : pod)
  const look = async (): Promise<Gathered> => {
    const found = await gather(app, { client, sources, now: clock.now(), seen: asked })
    if (found.workload) for (const pod of livePodsOf(client, found.workload)) remember(addresses, app, pod)
    return found
  }
  const certifiedUntil = await around.certify(app, client, signal)
  const first = await look()
  const pods = followed(first.view, addresses)
  agents.follow(refOf(app), pods, { isUrgent: isUrgent(app) })
  let workload = first.workload
  const isSeen = { ...first.view, pods: first.view.pods.map(asked) }
  const isFollowed = (uid: string) => pods.some(({ pod }) => pod.uid === uid)
  // It is woken when that is known.
  if (isUntried(app, isSeen.pods, isFollowed) && sayAgain(context)) return
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
        event: spoken(context),
        wrote(op, status) {
          memory.wrote(app.metadata.uid, op.status, status, clock.now())
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
  // How a run goes that has just been asked for is told with its first event.
  if (learned.hasBegun && isSame(decision.status, memoryOf(app)) && sayAgain(context)) context.comeBack(1000, 'a run')
  else tell(context, view, decision, gated)
  metrics.stands(app, decision)
  comeBack(context, view, decision, { certifiedUntil, learned, memory, now: clock.now() })
}

/** An Event, and a line in the log: what is told to those who look at the cluster and to those who look at the process. */
function spoken({ event, log }: Context<StatefulApp>): Context<StatefulApp>['event'] {
  return (type, reason, note) => {
    event(type, reason, note)
    log[type === 'Warning' ? 'warn' : 'info']({ reason }, note)
  }
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

/** What of an app's status is decided by. */
function memoryOf({ status }: App): AppDecision['status'] {
  const { wish, operation, fence } = status ?? {}
  return { ...(wish && { wish }), ...(operation && { operation }), ...(fence !== undefined && { fence }) }
}

function isUrgent({ spec, status, metadata }: App): boolean {
  return spec.desired !== undefined || status?.operation !== undefined || metadata.deletionTimestamp !== undefined
}

/** Whether an app that is being deleted goes now. */
async function goes({ cr, client, event, comeBack }: Context<StatefulApp>, around: AppSurroundings): Promise<boolean> {
  const app = cr as App
  const now = around.clock.now()
  const step = decideLetGo({ app, now, ...(await gatherLetGo(app, client)) })
  if (step.is === 'walk') {
    comeBack(Math.max(step.until - now, 1), 'its deadline')
    return false
  }
  if (step.event) event('Warning', step.event.reason, step.event.note)
  await letGo(client, app, around.sources)
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
    spoken(context)('Normal', 'StateChanged', `${before.state} → ${shown.state} (${shown.reason})`)
  if (decision.stalled) context.stall(decision.stalled.reason, decision.stalled.message)
  else if (!isThere(decision) || isBeingMade(view) || context.isDeleting) {
    const words = shown.waitingFor ?? `${shown.state}: ${shown.reason}`
    context.waitFor(decision.status.operation ? 'OperationInProgress' : 'OnItsWay', `Waiting for ${words}.`)
  }
}

function comeBack(
  context: Context<StatefulApp>,
  view: View,
  decision: AppDecision,
  {
    certifiedUntil,
    learned: { hasFailed, isMidway },
    memory,
    now,
  }: { certifiedUntil: number; learned: Learned; memory: RunMemory; now: number },
): void {
  // What the new status permits is done at once.
  if (!isSame(decision.status, memoryOf(view.app))) return context.comeBack(1, 'the status permits the next step')
  if (Number.isFinite(certifiedUntil)) context.comeBack(Math.max(certifiedUntil - now, 1000), 'its certificate')
  if (isMidway) context.comeBack(1, 'the next step of its end')
  if (decision.until !== undefined) context.comeBack(Math.max(decision.until - now, 1), 'something is due')
  const isWaiting = hasFailed || decision.current || (decision.next && decision.next.is !== 'there')
  const { uid } = view.app.metadata
  if (isWaiting) context.comeBack(memory.patience(uid, signOf(decision)), 'the safety net')
  else memory.rests(uid)
}

/** The same while nothing has moved on. */
function signOf({ status, waiting }: AppDecision): string {
  return JSON.stringify([status, waiting])
}
