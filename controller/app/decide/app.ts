/**
 * What to do for an app now: from the view of it to its next status, and to what the status as stored permits. Pure.
 *
 * Guarantees: nothing is done that the stored status does not permit: a wish's Operation is begun only once its uid is stored, runs are asked for only by the
 * operation that is stored as current, an Operation is let go only when its outcome is stored. So whoever crashes, or acts on an old view, repeats a step or is
 * refused by the version; it never takes a second one. To make a wish's Operation needs no permission: until it is stored it is a proposal, and one that is
 * not taken up is passed over, so that it is ended.
 */

import { timeOf } from '../../../shared/clock.ts'
import { unknownState } from '../../../shared/lifecycle/observe.ts'
import { same } from '../../kube/applied.ts'
import type { App, AppStatus, Op, OpStatus, View, Wish, WishStatus } from '../view.ts'
import type { Ask, Facts } from './facts.ts'
import { mintFence } from './fence.ts'
import { type Observed, observe } from './observe.ts'
import { decideOperation, type OperationDecision, overdueAt } from './operation.ts'
import { type Next, planNext } from './plan.ts'
import { isCancelled, isOfWish, type Queue, queueOf } from './queue.ts'
import { earlier, type Waiting } from './waiting.ts'
import {
  arrive,
  type Ending,
  endingOf,
  operationName,
  remember,
  serialOf,
  settleWish,
  wishOf,
  wishProblem,
} from './wish.ts'

export const operationFinalizer = 'shipmate.dev/operation'

/** What the stored status permits, in the order in which it is done. */
export type Effect =
  | { readonly do: 'writeOperation'; readonly op: Op; readonly status: OpStatus }
  | { readonly do: 'createOperation'; readonly name: string; readonly action: string; readonly wish: Wish | undefined }
  | { readonly do: 'holdOperation' | 'releaseOperation' | 'cancelOperation'; readonly op: Op }
  | { readonly do: 'ask'; readonly ask: Ask }
  | { readonly do: 'claim' }
  | { readonly do: 'create' }
  | { readonly do: 'end'; readonly state: string }

export interface Stalled {
  readonly reason: string
  readonly message: string
}

export interface AppDecision {
  readonly observed: Observed
  /** Without conditions. */
  readonly status: Pick<AppStatus, 'wish' | 'operation' | 'fence'>
  readonly effects: readonly Effect[]
  readonly next: Next | undefined
  readonly wish: Wish | undefined
  readonly current: Op | undefined
  readonly queue: Queue
  readonly waiting: Waiting | undefined
  readonly stalled: Stalled | undefined
  /** Whether an exclusive run may be in progress: disruptions are held back. */
  readonly isExclusive: boolean
  /** When to look again, if nothing changes. */
  readonly until: number | undefined
}

export interface AppFacts extends Facts {
  /** Whether what `onEnd` says is done; undefined until it was tried. */
  readonly isEndDone: boolean | undefined
  /** What is waited for until it is. */
  readonly endWaits: string | undefined
  /** What is waited for until the workload can be made. */
  readonly createWaits?: string | undefined
}

export function decideApp(view: View, facts: AppFacts): AppDecision {
  const { app, lifecycle } = view
  const stored = app.status ?? {}
  const now = timeOf(view.now)
  let observed = observe(view)
  const wish = wishOf(view)
  const base = { observed, wish, isExclusive: false, until: observed.until }
  const quiet = { next: undefined, current: undefined, queue: { next: undefined, waiting: [] }, effects: [] }
  if (!lifecycle || lifecycle.problems.length > 0) {
    const missing = { reason: 'NoLifecycle', message: `there is no Lifecycle ${app.spec.lifecycle} in this namespace` }
    const wrong = { reason: 'InvalidLifecycle', message: `${app.spec.lifecycle}: ${lifecycle?.problems.join('; ')}` }
    return { ...base, ...quiet, status: kept(stored), waiting: undefined, stalled: lifecycle ? wrong : missing }
  }
  const { graph } = lifecycle
  const problem = wish && wishProblem(wish, lifecycle, app.spec.lifecycle)
  const claimant = claimedByOther(view)
  let memory = memoryOf(stored.wish, problem === undefined ? wish : undefined, now)
  if (memory) memory = arrive(memory, graph, observed.state)
  let { operation, fence } = stored
  const effects: Effect[] = []

  // What has become of the current operation.
  let current = operation && view.operations.find(({ metadata }) => metadata.uid === operation?.uid)
  const ending = operation && (current ? endingOf(current.status) : 'Lost')
  if (operation && ending !== undefined) {
    // Told together with its end: what is observed without it.
    const freed = withoutOperation(app)
    observed = observe({ ...view, app: freed })
    if (memory?.operation?.uid === operation.uid && memory.operation.outcome === undefined) {
      memory = settleWish(memory, { ending, transient: operation.state, observed: observed.state, now })
      // What was just stopped is on its way to its end, though its pods may still say otherwise.
      observed = observe({ ...view, app: { ...freed, status: { ...freed.status, wish: memory } } })
    }
    operation = undefined
    current = undefined
  }
  // One that vanished before its turn came.
  const own = memory?.operation
  if (memory && own?.uid !== undefined && own.outcome === undefined && own.uid !== operation?.uid) {
    const mine = view.operations.find(({ metadata }) => metadata.uid === own.uid)
    const was = mine ? endingOf(mine.status) : 'Lost'
    if (was !== undefined)
      memory = settleWish(memory, { ending: was, transient: undefined, observed: observed.state, now })
  }
  effects.push(...housekeeping(view, memory, observed, facts))

  // The current operation goes on.
  let going: OperationDecision | undefined
  if (current && operation) {
    going = decideOperation(view, current, { fence: operation.fence, observed, facts })
    // Before anything of it is stored, what pods say can be read: its targets and the first runs are then one write.
    const first = current.status?.targets === undefined ? going.asks.filter(({ ask }) => ask === 'state') : []
    if (first.length > 0) for (const ask of first) effects.push({ do: 'ask', ask })
    else if (!isSame(going.status, current.status))
      effects.push({ do: 'writeOperation', op: current, status: going.status })
    else for (const ask of going.asks) effects.push({ do: 'ask', ask })
    if (going.needsFence) {
      fence = mintFence(fence, seenBy(view, facts))
      operation = { ...operation, fence }
    }
    const isOwn = memory?.operation?.uid === operation.uid
    if (wish?.preempt && memory === stored.wish && !isOwn && !isCancelled(current))
      effects.push({ do: 'cancelOperation', op: current })
  }

  const isStored = memory !== undefined && isSame(memory, stored.wish)
  // Then nothing but a proposal may come of it yet.
  const isNew = memory !== undefined && memory.hash !== stored.wish?.hash
  const isPaused = app.spec.paused === true
  const failure = memory?.outcome !== undefined && memory.outcome !== 'Succeeded' ? memory.outcome : undefined
  const wishedNode = memory && graph.node(memory.state)
  const isHeld = failure !== undefined && wishedNode?.kind !== 'transient'
  const isClaimed = !app.spec.workload || !view.workload || view.workload.claimedBy !== undefined
  let next: Next | undefined
  if (wish && memory && problem === undefined) {
    const position = {
      graph,
      state: observed.state,
      wish,
      memory,
      workload: view.workload,
      isOwn: app.spec.template !== undefined,
    }
    next = planNext(position)
  }
  const stray = strayOf(view, memory, next)
  const mayAct = !operation && !isPaused && !claimant && !isHeld
  if (stray !== undefined) memory = passedOver(memory, stray, now)
  else if (memory && next && mayAct && (isStored || (isNew && isClaimed && next.is === 'act'))) {
    if (!isClaimed) effects.push({ do: 'claim' })
    const step = stepOn(view, memory, next, facts, now)
    memory = step.memory
    effects.push(...step.effects)
  }

  // Whose turn it is.
  const isEnding = wish !== undefined && wishedNode?.kind === 'delete'
  const asked = next?.is === 'act' ? next.action : undefined
  const queue = operation
    ? {
        next: undefined,
        waiting: queueOf(view, { wished: memory?.operation?.name, state: observed.state, isEnding, asked }).waiting,
      }
    : queueOf(view, { wished: memory?.operation?.name, state: observed.state, isEnding, asked })
  for (const { op } of queue.waiting)
    if (op.status?.phase === undefined)
      effects.push({ do: 'writeOperation', op, status: { ...op.status, phase: 'Queued' } })
  const turn = queue.next
  if (!operation && turn && !claimant && (!isPaused || isCancelled(turn))) {
    const isWished = turn.metadata.name === memory?.operation?.name
    const isRecorded =
      !isWished || (memory?.operation?.uid === turn.metadata.uid && memory.operation.outcome === undefined)
    if (!turn.metadata.finalizers?.includes(operationFinalizer) && turn.metadata.deletionTimestamp === undefined)
      effects.push({ do: 'holdOperation', op: turn })
    else if (isRecorded && endingOf(turn.status) === undefined) {
      fence = mintFence(fence, seenBy(view, facts))
      const transient = graph.transientOf(turn.spec.action)
      operation = {
        name: turn.metadata.name,
        uid: turn.metadata.uid,
        fence,
        action: turn.spec.action,
        ...(transient && { state: transient.name }),
      }
      // Told together with its beginning.
      if (transient) observed = { ...observed, state: transient.name, reason: 'OperationInProgress' }
    }
  }

  return {
    ...base,
    observed,
    status: { ...(memory && { wish: memory }), ...(operation && { operation }), ...(fence !== undefined && { fence }) },
    effects,
    next,
    current,
    queue,
    waiting: waitingOf({ view, observed, next, going, operation, queue, isPaused, facts }),
    stalled: stalledOf({ problem, claimant, going, next, failure, memory }),
    isExclusive: operation !== undefined && isExclusive(operation.action, view),
    until: queue.waiting.reduce(
      (until, { op }) => earlier(until, overdueAt(op)),
      earlier(observed.until, going?.until),
    ),
  }
}

/** The memory of wishes: without a wish, that there is none; that has a serial too, so that whatever was made before is of the past. */
function memoryOf(before: WishStatus | undefined, wish: Wish | undefined, now: string): WishStatus | undefined {
  if (wish) return remember(before, wish, now)
  if (!before || before.hash === noWish) return before
  return { hash: noWish, serial: before.serial + 1, state: noWish, passed: [], at: now }
}

const noWish = 'none'

function stepOn(
  view: View,
  memory: WishStatus,
  next: Next,
  facts: AppFacts,
  now: string,
): { readonly memory: WishStatus; readonly effects: Effect[] } {
  const { app, workload } = view
  const stay = { memory, effects: [] as Effect[] }
  const isOutdated = workload?.isOutdated
  switch (next.is) {
    case 'act': {
      const { operation } = memory
      if (operation?.uid !== undefined && operation.outcome === undefined) {
        const pending = view.operations.find(({ metadata }) => metadata.uid === operation.uid)
        return pending && pending.spec.action !== next.action ? givenUp(view, memory, now) : stay
      }
      const serial = nextSerial(memory)
      const name = operationName(app, { ...memory, serial })
      const made = view.operations.find(op => isProposal(op, name, next.action, app))
      // From the memory on that has its uid, it is the one Operation of this serial.
      if (made)
        return {
          memory: { ...memory, serial, operation: { name, uid: made.metadata.uid }, ...(operation && { at: now }) },
          effects: [],
        }
      const isWished = next.state.name === memory.state
      return {
        memory,
        effects: [{ do: 'createOperation', name, action: next.action, wish: isWished ? wishOf(view) : undefined }],
      }
    }
    case 'create':
      return { memory, effects: [{ do: 'create' }] }
    case 'end':
      if (facts.isEndDone) return { memory: { ...memory, outcome: 'Succeeded', at: now }, effects: [] }
      return { memory, effects: facts.isEndDone === undefined ? [{ do: 'end', state: next.goal.name }] : [] }
    case 'there':
    case 'wait':
      return isOutdated ? { memory, effects: [{ do: 'create' }] } : givenUp(view, memory, now)
    default:
      return stay
  }
}

/** The serial of the next Operation of the wish: where the last one has been recorded, this is a further one, under a name of its own. */
function nextSerial({ serial, operation }: WishStatus): number {
  return operation ? serial + 1 : serial
}

function isProposal(op: Op, name: string, action: string, app: App): boolean {
  return op.metadata.name === name && op.spec.action === action && isOfWish(op, app)
}

/** The highest serial of what was proposed for a wish that has changed, or for a way that is not gone any more, before it was stored. */
function strayOf(view: View, memory: WishStatus | undefined, next: Next | undefined): number | undefined {
  const { app } = view
  const asked = memory && next?.is === 'act' ? next.action : undefined
  const isAsked = (op: Op) =>
    memory !== undefined &&
    asked !== undefined &&
    isProposal(op, operationName(app, { ...memory, serial: nextSerial(memory) }), asked, app)
  const serials = view.operations.flatMap(op => {
    const { uid, name } = op.metadata
    const isKnown = uid === memory?.operation?.uid || uid === app.status?.operation?.uid
    const isOver = endingOf(op.status) !== undefined || op.status?.targets !== undefined
    if (isKnown || isOver || !isOfWish(op, app) || isPast(app, op, memory) || isAsked(op)) return []
    return serialOf(app, name) ?? []
  })
  return serials.length > 0 ? Math.max(...serials) : undefined
}

/** The memory, past a serial that is used up: what has it is never taken up. */
function passedOver(memory: WishStatus | undefined, serial: number, now: string): WishStatus {
  const before = memory ?? { hash: noWish, serial: 0, state: noWish, passed: [], at: now }
  return { ...before, serial: serial + 1, at: now }
}

/** The way has become another one before the wish's Operation was begun: what is asked next has another name. */
function givenUp(
  view: View,
  memory: WishStatus,
  now: string,
): { readonly memory: WishStatus; readonly effects: Effect[] } {
  const { operation, ...rest } = memory
  const pending = view.operations.find(({ metadata }) => metadata.uid === operation?.uid)
  const isBegun = !pending || pending.status?.targets !== undefined
  if (operation?.outcome !== undefined || isBegun) return { memory, effects: [] }
  return { memory: { ...rest, serial: memory.serial + 1, at: now }, effects: [] }
}

/** What is to be done for Operations that are not the current one. */
function housekeeping(view: View, memory: WishStatus | undefined, observed: Observed, facts: Facts): Effect[] {
  const stored = view.app.status ?? {}
  const isStored = isSame(memory, stored.wish)
  return view.operations.flatMap((op): Effect[] => {
    const { uid, finalizers = [] } = op.metadata
    if (uid === stored.operation?.uid) return []
    const isMade = isOfWish(op, view.app)
    if (endingOf(op.status) !== undefined) {
      const isRecorded = !isMade || isPast(view.app, op, stored.wish) || isOutcomeOf(op, stored.wish)
      if (!isRecorded || !finalizers.includes(operationFinalizer)) return []
      const { asks } = decideOperation(view, op, { fence: 0, observed, facts })
      return [...asks.map((ask): Effect => ({ do: 'ask', ask })), { do: 'releaseOperation', op }]
    }
    if ((op.status?.targets ?? []).length > 0) return []
    const isSuperseded = isMade && isStored && isPast(view.app, op, memory)
    const isLate = view.now >= (overdueAt(op) ?? Number.POSITIVE_INFINITY)
    if (!isSuperseded && !isCancelled(op) && !isLate) return []
    const why: OpStatus = isSuperseded
      ? { phase: 'Cancelled', reason: 'Superseded', message: 'something else was wished before it was begun' }
      : isCancelled(op)
        ? { phase: 'Cancelled', reason: 'Cancelled', message: 'it was cancelled before it was begun' }
        : { phase: 'Failed', reason: 'DeadlineExceeded', message: 'it was not begun before its deadline' }
    const status: OpStatus = { ...op.status, ...why, finishedAt: timeOf(view.now) }
    return [{ do: 'writeOperation', op, status }]
  })
}

/** Whether the memory has gone on from an Operation of a wish. One with a higher serial is of a wish that this view is too old to know. */
function isPast(app: App, { metadata }: Op, memory: WishStatus | undefined): boolean {
  const serial = serialOf(app, metadata.name)
  if (!memory || serial === undefined || serial > memory.serial) return false
  return serial < memory.serial || (memory.operation?.uid !== undefined && memory.operation.uid !== metadata.uid)
}

function isOutcomeOf({ metadata }: Op, memory: WishStatus | undefined): boolean {
  return memory?.operation?.uid === metadata.uid && memory.operation.outcome !== undefined
}

function kept({ wish, operation, fence }: AppStatus): AppDecision['status'] {
  return { ...(wish && { wish }), ...(operation && { operation }), ...(fence !== undefined && { fence }) }
}

function withoutOperation(app: App): App {
  const { operation: _, ...status } = app.status ?? {}
  return { ...app, status }
}

/** What pods have seen: as they said just now, or else last. */
function seenBy({ pods }: View, { states }: Facts): { fence: number }[] {
  return pods.flatMap(({ uid, agent }) => states.get(uid) ?? agent?.state ?? [])
}

function claimedByOther({ app, workload }: View): string | undefined {
  const by = workload?.claimedBy
  return by && by.uid !== app.metadata.uid ? `${by.namespace}/${by.name}` : undefined
}

/** From its turn on: evictions are held back before the first run is sent. */
function isExclusive(name: string, { lifecycle }: View): boolean {
  return !lifecycle?.spec.actions?.find(action => action.name === name)?.shared
}

function waitingOf({
  view,
  observed,
  next,
  going,
  operation,
  queue,
  isPaused,
  facts,
}: {
  readonly view: View
  readonly observed: Observed
  readonly next: Next | undefined
  readonly going: OperationDecision | undefined
  readonly operation: AppStatus['operation']
  readonly queue: Queue
  readonly isPaused: boolean
  readonly facts: AppFacts
}): Waiting | undefined {
  const { graph } = view.lifecycle as NonNullable<View['lifecycle']>
  const since = view.app.status?.since
  if (operation) {
    const after = graph.node(operation.state ?? '')?.next[0]
    const goal = after ?? (next && 'goal' in next ? next.goal.name : undefined)
    const back = goal === undefined ? undefined : `then ${goal}`
    return { next: back, ...(going?.waiting ?? { what: `${operation.name} to be carried out` }) }
  }
  if (isPaused && next && next.is !== 'there')
    return { what: 'paused to be taken away', since, next: `then ${goalName(next)}` }
  switch (next?.is) {
    case 'wait': {
      const guard = view.lifecycle?.spec.states?.find(({ name }) => name === next.for.name)?.when
      const all = view.workload?.replicas ?? 0
      const of = all === 1 ? 'its pod' : `all ${view.app.spec.quorum ?? all} pods`
      const what =
        guard === undefined ? `${next.for.name} to be observed` : `${next.for.name}, when ${guard} holds in ${of}`
      return { what, since, ...(next.for.name !== next.goal.name && { next: `then ${next.goal.name}` }) }
    }
    case 'unknown': {
      const pod = observed.pods.find(({ state }) => state === unknownState)
      const why = pod ? ` (${pod.reason})` : ''
      return { what: `${pod?.name ?? 'the app'} to be known${why}`, since, next: `then ${next.goal.name}` }
    }
    case 'busy':
      return { what: `${next.state.name} to be over`, since, next: `then ${next.goal.name}` }
    case 'create':
      if (!view.workload && view.app.spec.workload)
        return { what: `${view.app.spec.workload.kind} ${view.app.spec.workload.name} to be there`, since }
      return { what: facts.createWaits ?? `the pods to be there`, since, next: `then ${next.goal.name}` }
    case 'end':
      return { what: facts.endWaits ?? `the workload to be ended`, since, next: `then ${next.goal.name}` }
    case 'act': {
      const mine = queue.waiting.find(({ op }) => op.metadata.name === view.app.status?.wish?.operation?.name)
      return {
        what: mine?.for ?? `${next.action} to be begun`,
        since,
        next: `then ${graph.node(next.state.name)?.next[0] ?? next.goal.name}`,
      }
    }
    default:
      return undefined
  }
}

function goalName(next: Next): string {
  return 'goal' in next ? next.goal.name : next.to
}

function stalledOf({
  problem,
  claimant,
  going,
  next,
  failure,
  memory,
}: {
  readonly problem: string | undefined
  readonly claimant: string | undefined
  readonly going: OperationDecision | undefined
  readonly next: Next | undefined
  readonly failure: Ending | undefined
  readonly memory: WishStatus | undefined
}): Stalled | undefined {
  if (problem !== undefined) return { reason: 'InvalidWish', message: problem }
  if (claimant !== undefined)
    return { reason: 'Claimed', message: `the workload belongs to the app ${claimant}: delete one of the two` }
  if (going?.stalled) return going.stalled
  if (next?.is === 'noPath') return { reason: 'NoPath', message: `no path leads from ${next.from} to ${next.to}` }
  if (failure !== undefined && memory) {
    const name = memory.operation?.name
    const how = failure === 'Lost' ? 'vanished without an outcome' : `ended ${failure}`
    return {
      reason: 'WishFailed',
      message: `${name ?? memory.state} ${how}: change the wish (\`request\`) to try again`,
    }
  }
  return undefined
}

/** Equal as JSON. */
export function isSame(a: unknown, b: unknown): boolean {
  return same(a as never, b as never)
}
