/**
 * The sidecars of all apps: what they have said last, kept up to date by their events, and what can be asked of them.
 *
 * Guarantees: there is a connection, or a wait for one, to exactly the pods that are followed; `onChange` is called in the same turn for every state
 * and run message, and when a sidecar becomes reachable or stops being so; ten thousand connect one after the other, the urgent first. New
 * credentials replace connections one by one, each when its successor is up. After `close` nothing is called and nothing is left open.
 */
import { type Clock, systemClock, type Timer } from '../../../shared/clock.ts'
import type { Logger } from '../../../shared/log.ts'
import type { PodState, PutRun, Run, Settle, Verdict, VerifyRun } from '../../../shared/protocol/schemas.ts'
import type { AgentView } from '../view.ts'
import { type AppRef, appKey, type PodAddress } from './address.ts'
import { createAsking, type LogPiece } from './asking.ts'
import { createCalls } from './calls.ts'
import { begin, type Connection, type Effect, type Event, type Moment, step, viewOf, type Why } from './connection.ts'
import type { AgentCredentialsSource } from './credentials.ts'
import type { AgentMetrics } from './metrics.ts'
import { createPace } from './pace.ts'
import { openStream, type Stream } from './stream.ts'

export interface AgentLimits {
  /** How many connections are being made at once. Default 32. */
  readonly connecting: number
  /** How many connections that are not urgent are begun in a second, on average. Default 200. */
  readonly perSecond: number
  /** Milliseconds until a connection must be up. Default 10,000. */
  readonly upWithin: number
  /** Milliseconds of silence after which a sidecar is not there any more; it pings every 15 s. Default 40,000. */
  readonly silence: number
  /** Milliseconds before the second attempt to connect, and at most; all of it is jittered. Default 200 and 30,000. */
  readonly firstRetry: number
  readonly longestRetry: number
  /** Milliseconds for a call. Default 30,000. */
  readonly call: number
  /** Milliseconds for a verify, whose length is declared by the action. Default 600,000. */
  readonly verify: number
  /** Milliseconds that a connection for calls is kept after the last one. Default 5,000. */
  readonly idle: number
}

const defaults: AgentLimits = {
  ...{ connecting: 32, perSecond: 200, upWithin: 10_000, silence: 40_000, firstRetry: 200, longestRetry: 30_000 },
  ...{ call: 30_000, verify: 600_000, idle: 5_000 },
}

export interface AgentsOptions {
  readonly credentials: AgentCredentialsSource
  /** Called at once; must not throw. */
  readonly onChange: (app: AppRef, why: Why) => void
  readonly log: Logger
  readonly metrics?: AgentMetrics | undefined
  readonly limits?: Partial<AgentLimits> | undefined
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
}

export interface Agents {
  /** Keeps connections to exactly these pods of the app. Urgent ones (a wish, an operation, a deletion) connect first. */
  follow(app: AppRef, pods: readonly PodAddress[], options?: { isUrgent?: boolean | undefined }): void
  unfollow(app: AppRef): void
  /** What the sidecar of a followed pod has said last; undefined until it was reached, or could not be. */
  seen(podUid: string): AgentView | undefined
  /** Asked now, not remembered. */
  state(pod: PodAddress, signal?: AbortSignal): Promise<PodState>
  /** Rejects with an AgentError, as all below do. */
  put(pod: PodAddress, id: string, body: PutRun, signal?: AbortSignal): Promise<Run>
  /** Undefined: the sidecar does not know it. */
  run(pod: PodAddress, id: string, signal?: AbortSignal): Promise<Run | undefined>
  cancel(pod: PodAddress, id: string, signal?: AbortSignal): Promise<Run>
  settle(pod: PodAddress, id: string, word: Settle, signal?: AbortSignal): Promise<Run>
  verify(pod: PodAddress, body: VerifyRun, signal?: AbortSignal): Promise<Verdict>
  /** The sidecar may forget the run, if it has not already. */
  drop(pod: PodAddress, id: string, signal?: AbortSignal): Promise<void>
  log(
    pod: PodAddress,
    id: string,
    piece?: { offset?: number | undefined; limit?: number | undefined },
    signal?: AbortSignal,
  ): Promise<LogPiece>
  close(): Promise<void>
}

interface Agent {
  address: PodAddress
  isUrgent: boolean
  connection: Connection
  readonly streams: Map<number, Stream>
  /** Until a turn is asked for. */
  timer: Timer | undefined
}

/** How often is looked for silent ones, at least. */
const sweepEvery = 5_000

export function createAgents(options: AgentsOptions): Agents {
  const { credentials, onChange, log, metrics, clock = systemClock, random = Math.random } = options
  const limits = { ...defaults, ...options.limits }
  const agents = new Map<string, Agent>()
  const apps = new Map<string, Set<string>>()
  const closing = new Set<Promise<void>>()
  const pace = createPace({ clock, random, atOnce: limits.connecting, perSecond: limits.perSecond })
  const calls = createCalls({
    credentials,
    clock,
    idle: limits.idle,
    connectWithin: limits.upWithin,
    pace,
    observe: (call, code, ms) => metrics?.called(call, code, ms),
  })
  const asking = createAsking(calls, limits)
  const backoff = { first: limits.firstRetry, longest: limits.longestRetry, jitter: 1 }
  let isClosed = false

  const moment = (): Moment => ({ now: clock.now(), random, backoff })

  const happened = (agent: Agent, event: Event) => {
    if (agents.get(agent.address.pod.uid) !== agent) return
    const before = agent.connection
    const { connection, effects } = step(before, event, moment())
    agent.connection = connection
    if (before.next?.at === 'dialing' && connection.next !== before.next) pace.leave(agent)
    const change = Number(connection.reach?.isReachable ?? false) - Number(before.reach?.isReachable ?? false)
    if (change !== 0) metrics?.connected.inc(change)
    if (event.type === 'lost' && effects.length > 0) {
      const { app, pod } = agent.address
      log.debug({ app, pod: pod.name, reason: event.error }, 'a connection to a sidecar was lost, or not made')
    }
    for (const effect of effects) carryOut(agent, effect)
  }

  const carryOut = (agent: Agent, effect: Effect) => {
    switch (effect.do) {
      case 'wait':
        agent.timer?.cancel()
        // A turn that it has asked for already would come too early, or with another urgency.
        pace.leave(agent)
        if (effect.ms === 0) return ask(agent, effect.isSuccessor)
        agent.timer = clock.after(effect.ms, () => ask(agent, effect.isSuccessor))
        return
      case 'dial':
        return open(agent, effect.socket, effect.cursor)
      case 'end':
        agent.streams.get(effect.socket)?.end()
        agent.streams.delete(effect.socket)
        return
      case 'tell':
        onChange(agent.address.app, effect.why)
    }
  }

  const ask = (agent: Agent, isSuccessor: boolean) => {
    agent.timer = undefined
    pace.ask(agent, agent.isUrgent && !isSuccessor ? 'urgent' : 'usual', () => happened(agent, { type: 'turn' }))
  }

  const open = (agent: Agent, socket: number, cursor: string | undefined) => {
    if (socket > 1) metrics?.reconnects.inc()
    const current = credentials.current()
    // Not in the same turn: one event is carried out before the next.
    if (!current) {
      queueMicrotask(() => happened(agent, { type: 'lost', socket, error: 'there are no credentials yet' }))
      return
    }
    const stream = openStream({
      address: agent.address,
      credentials: current,
      cursor,
      clock,
      deadline: limits.upWithin,
      up: features => happened(agent, { type: 'up', socket, features }),
      heard: message => happened(agent, { type: 'heard', socket, message }),
      lost: error => happened(agent, { type: 'lost', socket, error }),
    })
    agent.streams.set(socket, stream)
    closing.add(stream.closed)
    stream.closed.then(() => closing.delete(stream.closed))
  }

  const add = (address: PodAddress, isUrgent: boolean) => {
    const { connection, effects } = begin(address.pod.uid)
    const agent: Agent = { address, isUrgent, connection, streams: new Map(), timer: undefined }
    agents.set(address.pod.uid, agent)
    metrics?.followed.inc()
    for (const effect of effects) carryOut(agent, effect)
  }

  const remove = (uid: string) => {
    const agent = agents.get(uid)
    if (!agent) return
    agents.delete(uid)
    metrics?.followed.dec()
    if (agent.connection.reach?.isReachable) metrics?.connected.dec()
    agent.timer?.cancel()
    pace.leave(agent)
    for (const stream of agent.streams.values()) stream.end()
  }

  const update = (agent: Agent, address: PodAddress, isUrgent: boolean) => {
    const isMoved = agent.address.ip !== address.ip || agent.address.port !== address.port
    const isHurried = isUrgent && !agent.isUrgent
    agent.address = address
    agent.isUrgent = isUrgent
    if (isMoved) return happened(agent, { type: 'moved' })
    // It waits for its turn, not for the time after a failure.
    if (isHurried && agent.connection.next?.at === 'waiting' && !agent.connection.live && !agent.timer)
      ask(agent, false)
  }

  const sweep = () => {
    const oldest = clock.monotonic() - limits.silence
    for (const agent of agents.values()) {
      const { live } = agent.connection
      const stream = live && agent.streams.get(live.socket)
      if (stream && stream.lastHeard < oldest) stream.cut(`nothing was heard for ${limits.silence} ms`)
    }
    sweeper = clock.after(Math.min(sweepEvery, limits.silence / 4), sweep)
  }
  let sweeper = clock.after(Math.min(sweepEvery, limits.silence / 4), sweep)

  const stopListening = credentials.onChange(() => {
    for (const agent of agents.values()) happened(agent, { type: 'renewed' })
  })

  return {
    ...asking,
    follow(app, pods, { isUrgent = false } = {}) {
      if (isClosed) return
      const key = appKey(app)
      const wanted = new Set(pods.map(({ pod }) => pod.uid))
      for (const uid of apps.get(key) ?? []) if (!wanted.has(uid)) remove(uid)
      if (wanted.size === 0) apps.delete(key)
      else apps.set(key, wanted)
      for (const address of pods) {
        const agent = agents.get(address.pod.uid)
        if (agent) update(agent, address, isUrgent)
        else add(address, isUrgent)
      }
    },
    unfollow(app) {
      const key = appKey(app)
      for (const uid of apps.get(key) ?? []) remove(uid)
      apps.delete(key)
    },
    seen(podUid) {
      const agent = agents.get(podUid)
      return agent && viewOf(agent.connection)
    },
    async drop(pod, id, signal) {
      await asking.drop(pod, id, signal)
      const agent = agents.get(pod.pod.uid)
      if (agent) happened(agent, { type: 'dropped', id })
    },
    async close() {
      isClosed = true
      stopListening()
      sweeper.cancel()
      pace.close()
      for (const uid of [...agents.keys()]) remove(uid)
      apps.clear()
      await calls.close()
      await Promise.all(closing)
    },
  }
}
