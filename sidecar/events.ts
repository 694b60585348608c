/**
 * The stream of numbered messages of one boot, with a memory of the last ones.
 *
 * Guarantees: numbers rise by one; every subscriber hears every message after its subscription, in order, in the same turn; one that throws
 * disturbs nobody; a message published by a subscriber comes after the one it hears. The memory is bounded by count and by size.
 */
import type { Clock } from '../shared/clock.ts'
import type { Message } from '../shared/protocol/schemas.ts'
import type { Events } from './api.ts'

type Content<M> = M extends Message ? Omit<M, 'seq' | 'cursor' | 'at'> : never
/** A message before it has a number. Resets and logs have none of their own. */
export type News = Content<Extract<Message, { type: 'state' | 'probe' | 'run' }>>

export interface EventsOptions {
  /** This start of the agent: part of each cursor. */
  readonly bootId: string
  readonly clock: Clock
  /** How many messages are remembered. Default 512. */
  readonly keep?: number | undefined
  /** How many characters of JSON they may have together. Default 256 Ki. */
  readonly keepSize?: number | undefined
  /** Hears what subscribers throw. */
  readonly failed?: ((error: unknown) => void) | undefined
}

export interface EventStream extends Events {
  /** Numbers it, remembers it, tells everybody. The number of a state message is that of the state in it. */
  publish(news: News): void
  /** The log of a run has grown, or the run has ended. */
  logGrown(id: string): void
}

interface Subscription {
  /** The last number before it. */
  readonly after: number
  readonly listener: (message: Message) => void
}

export function createEvents(options: EventsOptions): EventStream {
  const { bootId, clock, keep = 512, keepSize = 256 * 1024, failed = () => {} } = options
  // As JSON: it takes a fraction of the memory of the objects, and cannot be changed by anybody who holds them.
  const memory: string[] = []
  let size = 0
  let seq = 0
  const subscriptions = new Set<Subscription>()
  const followers = new Map<string, Set<() => void>>()
  const waiting: Message[] = []
  let telling = false

  const guard = (call: () => void) => {
    try {
      call()
    } catch (error) {
      failed(error)
    }
  }

  const remember = (message: Message) => {
    const text = JSON.stringify(message)
    memory.push(text)
    size += text.length
    while (memory.length > keep || size > keepSize) size -= memory.shift()?.length ?? 0
  }

  const tell = (message: Message) => {
    for (const subscription of [...subscriptions]) {
      if (message.seq > subscription.after && subscriptions.has(subscription)) {
        guard(() => subscription.listener(message))
      }
    }
  }

  return {
    get seq() {
      return seq
    },
    get cursor() {
      return `${bootId}.${seq}`
    },
    since(cursor) {
      const from = numberOf(cursor, bootId)
      if (from === undefined || from > seq || from < seq - memory.length) return undefined
      return memory.slice(memory.length - (seq - from)).map(text => JSON.parse(text) as Message)
    },
    subscribe(listener) {
      const subscription = { after: seq, listener }
      subscriptions.add(subscription)
      return () => void subscriptions.delete(subscription)
    },
    followLog(id, grown) {
      const follower = () => grown()
      const all = followers.get(id) ?? new Set()
      followers.set(id, all.add(follower))
      return () => {
        all.delete(follower)
        if (all.size === 0 && followers.get(id) === all) followers.delete(id)
      }
    },
    publish(news) {
      seq++
      const stamp = { seq, cursor: `${bootId}.${seq}` }
      const at = new Date(clock.now()).toISOString()
      const message: Message =
        news.type === 'state'
          ? { ...stamp, at, ...news, state: { ...news.state, ...stamp } }
          : { ...stamp, at, ...news }
      remember(message)
      waiting.push(message)
      if (telling) return
      telling = true
      for (let next = waiting.shift(); next; next = waiting.shift()) tell(next)
      telling = false
    },
    logGrown(id) {
      for (const follower of [...(followers.get(id) ?? [])]) guard(follower)
    },
  }
}

/** The number in a cursor of this boot. */
function numberOf(cursor: string, bootId: string): number | undefined {
  if (!cursor.startsWith(`${bootId}.`)) return undefined
  const digits = cursor.slice(bootId.length + 1)
  return /^(0|[1-9]\d{0,15})$/.test(digits) ? Number(digits) : undefined
}
