/**
 * One controller, one request at a time. What it does next is decided by the controller's own code, from what it has read, however old that is.
 *
 * Guarantee: a step is one request, with what it is decided from: whoever dies, dies between two steps.
 */
import { firstOf } from '../../../controller/app/carry-out.ts'
import {
  type AppDecision,
  decideApp,
  type Effect,
  isSame,
  operationFinalizer,
} from '../../../controller/app/decide/app.ts'
import { wishLabel } from '../../../controller/app/decide/queue.ts'
import type { App, LifecycleView, Op, PodView, RunRecord, View } from '../../../controller/app/view.ts'
import type { Action, LifecycleSpec } from '../../../shared/lifecycle/model.ts'
import type { Run } from '../../../shared/protocol/schemas.ts'
import { viewOf } from '../../../sidecar/runs/view.ts'
import { ask } from './asking.ts'
import type { Mutant } from './mutants.ts'
import { type Config, configOf, newPod, put, stateOf } from './sidecar.ts'
import {
  type Bounds,
  type Controller,
  controllerId,
  idOf,
  killed,
  type Pod,
  type Rest,
  recent,
  replaced,
  type World,
  withPod,
} from './world.ts'

export interface Step {
  readonly label: string
  readonly world: World
}

export interface Model {
  readonly bounds: Bounds
  readonly config: Config
  readonly lifecycle: LifecycleView
  readonly mutant: Mutant | undefined
  readonly decisions: Map<number, AppDecision>
}

export function modelOf(bounds: Bounds, mutant?: Mutant): Model {
  const config = configOf(bounds.spec)
  const { graph } = config.lifecycle
  const spec = mutated(bounds.spec, mutant)
  const lifecycle = { spec, graph, hash: config.hash, problems: [] }
  return { bounds, config, lifecycle, mutant, decisions: new Map() }
}

function mutated(spec: LifecycleSpec, mutant: Mutant | undefined): LifecycleSpec {
  const change: Partial<Action> =
    mutant === 'retryUnknown' ? { idempotent: true } : mutant === 'neverAlive' ? { cancel: { grace: '0s' } } : {}
  return { ...spec, actions: (spec.actions ?? []).map(action => ({ ...action, ...change })) }
}

const nothing = { states: [], refusals: [], verdicts: [], answers: [], isEndDone: undefined, done: [] }

/** It reads the app; everything else may be newer. */
export function begun(world: World): World {
  const controller: Controller = { app: world.app, rest: undefined, ...nothing }
  return { ...world, controllers: [...world.controllers, controller] }
}

/** It reads everything but the app; the app may be newer. */
export function begunLate(world: World): World {
  const controller: Controller = { app: undefined, rest: restOf(world), ...nothing }
  return { ...world, controllers: [...world.controllers, controller] }
}

function restOf({ ops, pods, replicas, kept }: World): Rest {
  return { now: recent, ops, pods, replicas, kept }
}

/** What the app's status names and the cache does not have is looked for on the server. */
function withNamed(ops: readonly Op[], app: App, { ops: live }: World): readonly Op[] {
  const { operation, wish } = app.status ?? {}
  const named = [operation?.uid, wish?.operation?.outcome === undefined ? wish?.operation?.uid : undefined]
  const missing = live.filter(
    ({ metadata: { uid } }) => named.includes(uid) && !ops.some(({ metadata }) => metadata.uid === uid),
  )
  return missing.length === 0 ? ops : [...ops, ...missing]
}

export function decisionOf(controller: Controller, model: Model): AppDecision {
  const id = controllerId(controller)
  let decision = model.decisions.get(id)
  if (!decision) {
    decision = decide(controller, model)
    model.decisions.set(id, decision)
  }
  return decision
}

function decide(controller: Controller, model: Model): AppDecision {
  const { refusals, states, verdicts, done, isEndDone } = controller
  const view = seenBy(controller, model)
  const facts = {
    states: new Map(states),
    refusals: new Map(refusals.map(([id, { code, isOfAnnul }]) => [id, { code, message: '', isOfAnnul }])),
    verdicts: new Map(verdicts),
    tails: new Map(),
    asked: new Set(done.flatMap(key => (key.startsWith('ask ') ? key.slice(4) : []))),
    verifyAt: () => 0,
    isProgressDue: () => true,
    ...{ isEndDone, endWaits: undefined },
  }
  return decideApp(view, facts)
}

function seenBy({ app, rest, answers }: Controller, model: Model): View {
  if (!rest) throw new Error('it has not looked')
  const { now, ops, pods, replicas, kept } = rest
  return {
    now,
    app: { ...app, ...unmade(app, ops, model.mutant), metadata: { ...app?.metadata, resourceVersion: '' } } as App,
    lifecycle: model.lifecycle,
    workload: {
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'sts', replicas, keptReplicas: kept },
      ...{ isScalable: true, isRollingOut: false, isOutdated: false, hasStableNames: true, isBeingDeleted: false },
      claimedBy: { namespace: 'default', name: 'db', uid: 'app' },
    },
    pods: pods.map(pod => podView(pod, answers, model)),
    nodes: new Map([['node', { name: 'node', bootId: 'boot', isOutOfService: false }]]),
    operations: ops.map(op => versioned(op, model.mutant)),
    isNamespaceTerminating: false,
  }
}

function unmade(app: App | undefined, ops: readonly Op[], mutant: Mutant | undefined): Partial<App> {
  const { wish, operation, ...rest } = app?.status ?? {}
  const isThere = ops.some(({ metadata }) => metadata.uid === wish?.operation?.uid)
  if (mutant !== 'madeAnew' || !wish?.operation || wish.operation.outcome !== undefined || isThere) return {}
  const { operation: _, ...before } = wish
  return { status: { ...rest, wish: before } } as Partial<App>
}

function versioned(op: Op, mutant: Mutant | undefined): Op {
  const metadata = { ...op.metadata, resourceVersion: String(idOf(op)) }
  if (mutant !== 'neverAlive' || !op.status?.runs) return { ...op, metadata }
  return { ...op, metadata, status: { ...op.status, runs: op.status.runs.map(run => ({ ...run, timeout: '0s' })) } }
}

function podView(pod: Pod, answers: Controller['answers'], { config, bounds }: Model): PodView {
  const { name, uid, isUp, isEnded, since } = pod
  const runs = new Map(pod.runs.map(run => [run.id, viewOf(run)]))
  for (const [of, run] of answers) if (of === uid && isNews(run, runs.get(run.id))) runs.set(run.id, run)
  return {
    ...{ name, uid, ip: '', node: 'node', isReady: true, isTerminating: isEnded, isEnded, hasAgent: true },
    agent: {
      ...{ isReachable: isUp, since, error: undefined, runs, features: bounds.features },
      state: stateOf(pod, config),
    },
  }
}

const order = ['Accepted', 'Running', 'Unknown', 'Succeeded', 'Failed', 'Cancelled', 'TimedOut']
const isNews = (answered: Run, pushed: Run | undefined) =>
  !pushed || order.indexOf(answered.phase) > order.indexOf(pushed.phase)

/** Everything that its next request can come to. */
export function requests(world: World, controller: Controller, model: Model): Step[] {
  if (!controller.app) {
    const { ops = [], ...rest } = controller.rest ?? restOf(world)
    const read = { ...controller, app: world.app, rest: { ...rest, ops: withNamed(ops, world.app, world) } }
    return [{ label: 'reads the app', world: replaced(world, controller, read) }]
  }
  if (!controller.rest) {
    const rest = restOf(world)
    return [{ label: 'looks', world: replaced(world, controller, { ...controller, rest }) }]
  }
  const decision = decisionOf(controller, model)
  const first = firstOf(decision, new Set(controller.done))
  if (!first) return [writeStatus(world, controller, decision, model)]
  const { effect, key } = first
  const early =
    model.mutant === 'sendBeforeWriting' && effect.do === 'writeOperation' ? unsent(effect, controller) : undefined
  if (early && effect.do === 'writeOperation') {
    const next = { ...controller, done: [...controller.done, `early ${early.id}`] }
    return [
      { label: `sends ${early.id} early`, world: sent(replaced(world, controller, next), early, effect.op, model) },
    ]
  }
  // A write is not repeated, as the version that it is bound to is gone.
  const done = effect.do === 'writeOperation' ? controller.done : [...controller.done, key]
  const next = { ...controller, rest: undefined, done }
  if (effect.do === 'ask') return ask(world, controller, next, effect.ask, model)
  return [write(world, controller, next, effect, model)]
}

/** The run that this write adds, if it has not been sent. */
function unsent(
  { status, op }: Extract<Effect, { do: 'writeOperation' }>,
  { done }: Controller,
): RunRecord | undefined {
  const before = new Set((op.status?.runs ?? []).map(({ id }) => id))
  return status.runs?.find(({ id }) => !before.has(id) && !done.includes(`early ${id}`))
}

function sent(world: World, run: RunRecord, op: Op, { config, mutant }: Model): World {
  const pod = world.pods.find(({ uid, isUp }) => uid === run.uid && isUp)
  return pod ? withPod(world, put(pod, run, op.spec.action, { config, isAnnul: false, mutant }).pod) : world
}

function writeStatus(world: World, controller: Controller, decision: AppDecision, { mutant }: Model): Step {
  if (!controller.app) throw new Error('it has not read the app')
  const { wish, operation, fence } = controller.app.status ?? {}
  const before = { ...(wish && { wish }), ...(operation && { operation }), ...(fence !== undefined && { fence }) }
  const over = replaced(world, controller, undefined)
  if (isSame(before, decision.status)) {
    if (mutant !== 'actBeforeStoring') return { label: 'is done', world: over }
    return {
      label: 'stores it at last',
      world: { ...over, app: { ...world.app, status: controller.app.status } as App },
    }
  }
  const status = JSON.parse(JSON.stringify(decision.status))
  if (mutant === 'actBeforeStoring') {
    const ahead = { ...controller, app: { ...controller.app, status }, rest: undefined }
    return { label: 'goes on as if it were stored', world: replaced(world, controller, ahead) }
  }
  if (idOf(controller.app) !== idOf(world.app) && mutant !== 'noVersions')
    return { label: 'writes the status: conflict', world: over }
  const app = { ...world.app, status } as App
  return { label: `writes the status ${JSON.stringify(decision.status)}`, world: { ...over, app } }
}

function write(world: World, before: Controller, after: Controller, effect: Effect, model: Model): Step {
  const over = replaced(world, before, undefined)
  const on = (change: Partial<World>, more: Partial<Controller> = {}): World => ({
    ...replaced(world, before, { ...after, ...more }),
    ...change,
  })
  switch (effect.do) {
    case 'createOperation':
      return { label: `creates ${effect.name}`, world: createOperation(world, before, effect, on) }
    case 'create': {
      if (world.kept === undefined) return { label: 'creates: nothing to do', world: on({}) }
      const pods = Array.from({ length: world.kept }, (_, n) => newPod(`db-${n}`, `pod-${world.uids + n}`))
      return {
        label: 'scales up',
        world: on({ replicas: world.kept, kept: undefined, pods, uids: world.uids + pods.length }),
      }
    }
    case 'end': {
      if (world.replicas === 0) return { label: 'ends: done', world: on({}, { isEndDone: true }) }
      const scaled = { replicas: 0, kept: world.replicas, pods: [], executions: killed(world, () => true) }
      return { label: 'scales to zero', world: on(scaled, { isEndDone: false }) }
    }
    case 'claim':
    case 'ask':
      return { label: effect.do, world: on({}) }
    default: {
      const { uid, resourceVersion, name } = effect.op.metadata
      const stored = world.ops.find(({ metadata }) => metadata.uid === uid)
      const isCurrent = stored && (String(idOf(stored)) === resourceVersion || model.mutant === 'noVersions')
      if (!stored || !isCurrent) return { label: `${effect.do} ${name}: conflict`, world: over }
      const op = changed(stored, effect, model)
      const isGone = op.metadata.deletionTimestamp !== undefined && (op.metadata.finalizers ?? []).length === 0
      const swap = (ops: readonly Op[]) => ops.flatMap(one => (one.metadata.uid !== uid ? [one] : isGone ? [] : [op]))
      const told = 'status' in effect ? JSON.stringify(effect.status) : ''
      return { label: `${effect.do} ${name} ${told}`, world: on({ ops: swap(world.ops) }) }
    }
  }
}

function createOperation(
  world: World,
  { app }: Controller,
  { name, action }: Extract<Effect, { do: 'createOperation' }>,
  on: (change: Partial<World>) => World,
): World {
  if (world.ops.some(({ metadata }) => metadata.name === name)) return on({})
  const uid = `op-${world.uids}`
  const op = {
    apiVersion: 'shipmate.dev/v1alpha1',
    kind: 'Operation',
    metadata: {
      ...{ name, namespace: 'default', uid, creationTimestamp: '2026-01-01T00:00:00Z' },
      ...{ finalizers: [operationFinalizer], labels: { [wishLabel]: 'app' } },
    },
    spec: { app: 'db', action, priority: 0, suspend: false, cancel: false },
  } as unknown as Op
  const ops = [...world.ops, op].toSorted((a, b) => a.metadata.name.localeCompare(b.metadata.name))
  const made = [...world.made, { name, uid, wish: app?.metadata.generation ?? 0 }]
  return on({ ops, made, uids: world.uids + 1 })
}

type Change = Extract<Effect, { op: Op }>

function changed(op: Op, effect: Change, { mutant }: Model): Op {
  switch (effect.do) {
    case 'writeOperation': {
      const status = JSON.parse(JSON.stringify(effect.status))
      if (mutant === 'forgetSettles')
        for (const run of status.runs ?? [])
          if (run.phase === 'Unknown') Object.assign(run, { phase: 'Failed', finishedAt: run.writtenAt })
      return { ...op, status }
    }
    case 'holdOperation':
      return { ...op, metadata: { ...op.metadata, finalizers: [operationFinalizer] } }
    case 'releaseOperation':
      return { ...op, metadata: { ...op.metadata, finalizers: [] } }
    case 'cancelOperation':
      return { ...op, spec: { ...op.spec, cancel: true } }
  }
}
