/**
 * The connection to one sidecar's events, as a pure step: what is known, what happened, and what is to be done about it.
 *
 * Expected flow: waiting → (its turn) → dialing → (open; what was missed arrives) → live → (lost) → waiting, longer with each failure. A live one
 * that must be replaced, as credentials are new, waits and dials beside itself, and goes when its successor is up.
 *
 * Guarantees: a message is applied once and in order, whichever socket it comes on; a gap is never passed over, but read anew from a reset.
 * What another pod says is not believed. `tell` stands for every state or run message and every change of reachability, for nothing else; what
 * was missed is told once, when all of it is here.
 */
import { type Backoff, delay } from '../../../shared/backoff.ts'
import type { PodState, Run } from '../../../shared/protocol/schemas.ts'
import type { AgentView } from '../view.ts'
import type { Heard } from './answers.ts'

/** Where one that is to come is. Sockets are numbered, so that what comes late is known for what it is. */
export type Place =
  /** For its turn, or until some time after a failure. */
  { readonly at: 'waiting' } | { readonly at: 'dialing'; readonly socket: number }

export interface Connection {
  readonly uid: string
  /** The one that is up. */
  readonly live: { readonly socket: number; readonly since: number } | undefined
  /** The one that is to come: the first, or the successor of a live one. */
  readonly next: Place | undefined
  /** How many sockets there were. */
  readonly sockets: number
  /** Failures in a row. */
  readonly failures: number
  /** After which message the next is wanted; undefined: from a reset on. */
  readonly after: { readonly seq: number; readonly cursor: string } | undefined
  /** Undefined until the first attempt has succeeded or failed. */
  readonly reach: Pick<AgentView, 'isReachable' | 'since' | 'error'> | undefined
  readonly state: PodState | undefined
  readonly runs: ReadonlyMap<string, Run> | undefined
  readonly features: readonly string[]
}

export type Event =
  | { readonly type: 'turn' }
  /** Everything that was missed has arrived. */
  | { readonly type: 'up'; readonly socket: number; readonly features: readonly string[] }
  | { readonly type: 'heard'; readonly socket: number; readonly message: Heard }
  /** It never came up, or is no more. */
  | { readonly type: 'lost'; readonly socket: number; readonly error: string }
  /** The credentials are new. */
  | { readonly type: 'renewed' }
  /** The address is another one. */
  | { readonly type: 'moved' }
  /** The sidecar has forgotten a run, because we said so. */
  | { readonly type: 'dropped'; readonly id: string }

export type Why = 'state' | 'run' | 'reachable' | 'unreachable'

export type Effect =
  /** Ask for a turn, so many milliseconds from now; instead of what was asked for before. A successor is in no hurry. */
  | { readonly do: 'wait'; readonly ms: number; readonly isSuccessor: boolean }
  | { readonly do: 'dial'; readonly socket: number; readonly cursor: string | undefined }
  | { readonly do: 'end'; readonly socket: number }
  | { readonly do: 'tell'; readonly why: Why }

export interface Stepped {
  readonly connection: Connection
  readonly effects: readonly Effect[]
}

export interface Moment {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly random: () => number
  readonly backoff: Backoff
}

/** One that was up for less than this was not in good health. */
const steady = 10_000

export function begin(uid: string): Stepped {
  const nothing = { live: undefined, after: undefined, reach: undefined, state: undefined, runs: undefined }
  return {
    connection: { uid, ...nothing, next: { at: 'waiting' }, sockets: 0, failures: 0, features: [] },
    effects: [{ do: 'wait', ms: 0, isSuccessor: false }],
  }
}

/** What is shown of it. */
export function viewOf({ reach, state, runs, features }: Connection): AgentView | undefined {
  return reach && { ...reach, state, runs, features }
}

export function step(connection: Connection, event: Event, moment: Moment): Stepped {
  switch (event.type) {
    case 'turn':
      return dial(connection)
    case 'up':
      return up(connection, event.socket, event.features, moment)
    case 'heard':
      return hear(connection, event.socket, event.message, moment)
    case 'lost':
      return lose(connection, event.socket, event.error, moment)
    case 'renewed':
      return replace(connection)
    case 'moved':
      return move(connection, moment)
    case 'dropped':
      return only(forget(connection, event.id))
  }
}

const only = (connection: Connection): Stepped => ({ connection, effects: [] })
const end = (socket: number): Effect => ({ do: 'end', socket })
const isDialing = ({ next }: Connection, socket: number) => next?.at === 'dialing' && next.socket === socket

/** Nothing is told of one that is not up: then all that was missed is told at once. */
function telling(connection: Connection, why: Why, ...before: Effect[]): Stepped {
  return { connection, effects: connection.reach?.isReachable ? [...before, { do: 'tell', why }] : before }
}

function dial(connection: Connection): Stepped {
  if (connection.next?.at !== 'waiting') return only(connection)
  const socket = connection.sockets + 1
  return {
    connection: { ...connection, sockets: socket, next: { at: 'dialing', socket } },
    effects: [{ do: 'dial', socket, cursor: connection.after?.cursor }],
  }
}

function up(connection: Connection, socket: number, features: readonly string[], moment: Moment): Stepped {
  const { live, reach, state, runs } = connection
  const { now } = moment
  if (!isDialing(connection, socket)) return only(connection)
  if (!state || !runs) return lose(connection, socket, 'it did not say its state', moment)
  const since = reach?.isReachable ? reach.since : now
  return {
    connection: {
      ...connection,
      live: { socket, since: now },
      next: undefined,
      reach: { isReachable: true, since, error: undefined },
      features,
    },
    effects: [
      ...(live ? [end(live.socket)] : []),
      ...(reach?.isReachable ? [] : [{ do: 'tell', why: 'reachable' } as const]),
    ],
  }
}

function hear(connection: Connection, socket: number, message: Heard, moment: Moment): Stepped {
  const { live, after, uid, state } = connection
  const isNext = isDialing(connection, socket)
  if (!isNext && live?.socket !== socket) return only(connection)
  if ('state' in message && message.state.pod.uid !== uid) {
    const { name, uid: other } = message.state.pod
    return lose(connection, socket, `WrongPod: this is pod ${name} with uid ${other}`, moment)
  }
  const place = { seq: message.seq, cursor: message.cursor }
  if (message.type === 'reset') {
    const runs = new Map(message.runs.map(run => [run.id, run]))
    const known = { ...connection, after: place, state: message.state, runs }
    // What a predecessor still holds is from before this.
    if (isNext && live) return telling({ ...known, live: undefined }, 'state', end(live.socket))
    return telling(known, 'state')
  }
  // A log has the number of the message before it. Nobody here asks for logs.
  if (message.type === 'log') return only(connection)
  const isOfAnotherBoot = message.type === 'state' && message.state.bootId !== state?.bootId
  if (after && message.seq <= after.seq && !isOfAnotherBoot) return only(connection)
  if (!after || message.seq > after.seq + 1 || isOfAnotherBoot) {
    return lose({ ...connection, after: undefined }, socket, 'messages are missing', moment)
  }
  const on = { ...connection, after: place }
  switch (message.type) {
    case 'state':
      return telling({ ...on, state: message.state }, 'state')
    case 'run':
      return telling({ ...on, runs: new Map(on.runs).set(message.run.id, message.run) }, 'run')
    case 'probe':
      return only(
        state ? { ...on, state: { ...state, probes: { ...state.probes, [message.name]: message.probe } } } : on,
      )
    default:
      return only(on)
  }
}

function forget(connection: Connection, id: string): Connection {
  if (!connection.runs?.has(id)) return connection
  const runs = new Map(connection.runs)
  runs.delete(id)
  return { ...connection, runs }
}

function lose(connection: Connection, socket: number, error: string, moment: Moment): Stepped {
  const { live, next } = connection
  const { now, random, backoff } = moment
  if (isDialing(connection, socket)) {
    const failures = connection.failures + 1
    const waiting = { ...connection, next: { at: 'waiting' }, failures } as const
    const wait = { do: 'wait', ms: delay(backoff, failures, random), isSuccessor: live !== undefined } as const
    if (live) return { connection: waiting, effects: [end(socket), wait] }
    return unreachable(waiting, error, now, end(socket), wait)
  }
  if (live?.socket !== socket) return only(connection)
  const failures = now - live.since >= steady ? 1 : connection.failures + 1
  const without = { ...connection, live: undefined, failures }
  // A successor that is on its way is the next one anyhow.
  if (next?.at === 'dialing') return unreachable(without, error, now, end(socket))
  const wait = { do: 'wait', ms: delay(backoff, failures, random), isSuccessor: false } as const
  return unreachable({ ...without, next: { at: 'waiting' } }, error, now, end(socket), wait)
}

function unreachable(connection: Connection, error: string, now: number, ...before: Effect[]): Stepped {
  const { reach } = connection
  const isNews = reach === undefined || reach.isReachable
  return {
    connection: { ...connection, reach: { isReachable: false, since: isNews ? now : reach.since, error } },
    effects: isNews ? [...before, { do: 'tell', why: 'unreachable' }] : before,
  }
}

/** One that is dialing may have set out with what is old now; one that waits after failures may have failed because of it. */
function replace(connection: Connection): Stepped {
  const { next, live } = connection
  return {
    connection: { ...connection, next: { at: 'waiting' }, failures: 0 },
    effects: [
      ...(next?.at === 'dialing' ? [end(next.socket)] : []),
      { do: 'wait', ms: 0, isSuccessor: live !== undefined },
    ],
  }
}

/** Who answers at the old address is of no interest. */
function move(connection: Connection, { now }: Moment): Stepped {
  const { live, next } = connection
  const sockets = [...(live ? [live.socket] : []), ...(next?.at === 'dialing' ? [next.socket] : [])]
  const moved = { ...connection, live: undefined, next: { at: 'waiting' }, failures: 0 } as const
  const wait = { do: 'wait', ms: 0, isSuccessor: false } as const
  if (!connection.reach) return { connection: moved, effects: [...sockets.map(end), wait] }
  return unreachable(moved, 'its address has changed', now, ...sockets.map(end), wait)
}
