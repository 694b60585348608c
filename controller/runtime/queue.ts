/**
 * The keys that wait to be reconciled.
 *
 * Guarantees
 *   - A key waits at most once, and is never worked on twice at the same time; what is added meanwhile is worked on
 *     afterwards.
 *   - Higher priorities first; within one, the namespaces take turns; within those, first come, first served. No
 *     priority is starved: every eighth turn is for the one whose last turn is the longest ago.
 *   - A key's backoff grows by its own failures alone, and an addition from outside is not held up by it.
 *   - Why a key was added is kept, merged and handed over with it.
 */
import { type Backoff, delay } from '../../shared/backoff.ts'
import { type Clock, systemClock, type Timer } from '../../shared/clock.ts'

/** Fresh changes, and what is no news: the first list, of which some come before the others, and a resync. */
export const priorities = { fresh: 0, first: -50, initial: -100 } as const

export interface Addition {
  /** Why, for a person: "ConfigMap x changed". */
  readonly reason: string
  /** Default 0. */
  readonly priority?: number | undefined
  /** Milliseconds to wait first. Default 0. */
  readonly after?: number | undefined
}

export interface Item {
  readonly key: string
  /**
   * Every different reason since it was last worked on, oldest first; at most 16, then "and N more" for all additions
   * after them.
   */
  readonly reasons: readonly string[]
  /** The highest of its additions. */
  readonly priority: number
  /** When it began to wait, on the monotonic clock. */
  readonly since: number
  /** Failures in a row. */
  readonly failures: number
}

export interface QueueOptions {
  /** Between a key's own failures. Default 5 ms to 1000 s, as controller-runtime has it, with a fifth of jitter. */
  readonly backoff?: Backoff | undefined
  /** The namespace of a key, for turns. Default: what stands before the slash. */
  readonly namespaceOf?: ((key: string) => string) | undefined
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
  readonly onEvent?: ((event: QueueEvent) => void) | undefined
}

export type QueueEvent = 'added' | 'retried'

const mostReasons = 16
/** One turn in so many is not the highest priority's. */
const othersTurn = 8

/** What is known of a key while it waits, is delayed, worked on, or has failed. Forgotten when none is the case. */
interface Entry {
  readonly key: string
  state: 'idle' | 'waiting' | 'working'
  priority: number
  since: number
  reasons: Reasons
  failures: number
  /** Added while it was being worked on. */
  again: boolean
  /** Set by additions with a delay: when the earliest is due, with the reasons of all. */
  later: (Later & { reasons: Reasons; priority: number }) | undefined
  /** Set by the outcome of the last work: a retry, or a wished return. The next outcome replaces it. */
  comeback: Later | undefined
  /** Until then it is not handed out, whatever happens. */
  held: Later | undefined
  /** Tells an entry in a line from one that has moved on. */
  ticket: number
}

interface Later {
  readonly at: number
  readonly timer: Timer
}

export class Queue {
  readonly #clock: Clock
  readonly #backoff: Backoff
  readonly #random: () => number
  readonly #namespaceOf: (key: string) => string
  readonly #onEvent: ((event: QueueEvent) => void) | undefined
  readonly #entries = new Map<string, Entry>()
  /** Lines by priority, highest first. */
  readonly #lines: Line[] = []
  readonly #takers: ((item: Item | undefined) => void)[] = []
  #length = 0
  #turn = 0
  #tickets = 0
  #closed = false

  constructor(options: QueueOptions = {}) {
    this.#clock = options.clock ?? systemClock
    this.#backoff = options.backoff ?? { first: 5, longest: 1_000_000, jitter: 0.2 }
    this.#random = options.random ?? Math.random
    this.#namespaceOf = options.namespaceOf ?? (key => key.slice(0, Math.max(key.indexOf('/'), 0)))
    this.#onEvent = options.onEvent
  }

  /** How many wait. */
  get length(): number {
    return this.#length
  }

  add(key: string, addition: Addition): void {
    if (this.#closed) return
    const entry = this.#entry(key)
    if (addition.after && addition.after > 0) return this.#delay(entry, addition, addition.after)
    this.#arrive(entry, addition.reason, addition.priority ?? priorities.fresh)
  }

  /**
   * The next key to work on; waits for one. Undefined when the queue is closed. Whoever takes one must call done, retry
   * or comeBack.
   */
  take(): Promise<Item | undefined> {
    if (this.#closed) return Promise.resolve(undefined)
    const entry = this.#next()
    if (entry) return Promise.resolve(this.#hand(entry))
    return new Promise(resolve => this.#takers.push(resolve))
  }

  /** It succeeded, and nothing is to be done until something happens. Ends its backoff. */
  done(key: string): void {
    const entry = this.#working(key)
    entry.failures = 0
    this.#settle(entry)
  }

  /**
   * It failed: it comes back after its backoff, or `after` milliseconds where the server asked for that. Returns how
   * long.
   */
  retry(key: string, reason: string, after?: number): number {
    const entry = this.#working(key)
    entry.failures++
    const wait = Math.max(after ?? 0, delay(this.#backoff, entry.failures, this.#random))
    this.#onEvent?.('retried')
    this.#comeBack(entry, reason, wait)
    this.#settle(entry)
    return wait
  }

  /** It failed, and whoever worked on it says when to try again: `after` milliseconds from now, whatever its backoff. */
  retryAfter(key: string, reason: string, after: number): void {
    const entry = this.#working(key)
    entry.failures++
    this.#onEvent?.('retried')
    this.#comeBack(entry, reason, after)
    this.#settle(entry)
  }

  /**
   * It succeeded, and is to be looked at again after `after` milliseconds, unless something happens before. Ends its
   * backoff.
   */
  comeBack(key: string, reason: string, after: number): void {
    const entry = this.#working(key)
    entry.failures = 0
    this.#comeBack(entry, reason, after)
    this.#settle(entry)
  }

  /**
   * Whatever happens to this key, it is not handed out for so long: for one that does harm. While it is being worked
   * on.
   */
  hold(key: string, ms: number): void {
    const entry = this.#working(key)
    if (this.#closed) return
    entry.held?.timer.cancel()
    const timer = this.#clock.after(ms, () => {
      entry.held = undefined
      if (entry.state === 'idle') this.#settle(entry)
    })
    entry.held = { at: this.#clock.monotonic() + ms, timer }
  }

  /** Ends a hold before its time. */
  release(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry?.held) return
    entry.held.timer.cancel()
    entry.held = undefined
    if (entry.state === 'idle') this.#settle(entry)
  }

  /** No more: takers get undefined, what waits is dropped. */
  close(): void {
    this.#closed = true
    for (const entry of this.#entries.values()) {
      entry.later?.timer.cancel()
      entry.comeback?.timer.cancel()
      entry.held?.timer.cancel()
    }
    this.#entries.clear()
    this.#lines.length = 0
    this.#length = 0
    for (const taker of this.#takers.splice(0)) taker(undefined)
  }

  #entry(key: string): Entry {
    let entry = this.#entries.get(key)
    if (!entry) {
      entry = newEntry(key)
      this.#entries.set(key, entry)
    }
    return entry
  }

  #working(key: string): Entry {
    const entry = this.#entries.get(key)
    if (entry?.state === 'working') return entry
    // Whoever was at work when the queue was closed may still say how it ended.
    if (this.#closed) return { ...newEntry(key), state: 'working' }
    throw new TypeError(`"${key}" is not being worked on`)
  }

  #delay(entry: Entry, addition: Addition, after: number): void {
    const { reason, priority = priorities.fresh } = addition
    const known = entry.later
    const at = Math.min(this.#clock.monotonic() + after, known?.at ?? Number.POSITIVE_INFINITY)
    const reasons = known?.reasons ?? new Reasons()
    reasons.add(reason)
    const later = { at, reasons, priority: Math.max(priority, known?.priority ?? priority) }
    if (known?.at === at) {
      entry.later = { ...later, timer: known.timer }
      return
    }
    known?.timer.cancel()
    const timer = this.#clock.after(after, () => {
      const due = entry.later as NonNullable<Entry['later']>
      entry.later = undefined
      this.#arrive(entry, due.reasons, due.priority)
    })
    entry.later = { ...later, timer }
  }

  #comeBack(entry: Entry, reason: string, after: number): void {
    const timer = this.#clock.after(after, () => {
      entry.comeback = undefined
      this.#arrive(entry, reason, priorities.fresh)
    })
    entry.comeback = { at: this.#clock.monotonic() + after, timer }
  }

  #arrive(entry: Entry, reason: string | Reasons, priority: number): void {
    entry.reasons.add(reason)
    if (entry.state === 'working' || (entry.state === 'idle' && entry.held)) {
      entry.priority = entry.again ? Math.max(entry.priority, priority) : priority
      entry.again = true
      return
    }
    switch (entry.state) {
      case 'waiting':
        if (priority <= entry.priority) return
        // Into a better line; the place in the old one is void by its ticket.
        entry.priority = priority
        this.#line(priority).push(this.#namespaceOf(entry.key), entry, this.#stamp(entry))
        return
      case 'idle':
        entry.priority = priority
        this.#enqueue(entry)
    }
  }

  #enqueue(entry: Entry): void {
    entry.state = 'waiting'
    entry.since = this.#clock.monotonic()
    this.#length++
    this.#onEvent?.('added')
    this.#line(entry.priority).push(this.#namespaceOf(entry.key), entry, this.#stamp(entry))
    const taker = this.#takers.shift()
    if (!taker) return
    taker(this.#hand(this.#next() as Entry))
  }

  #next(): Entry | undefined {
    if (this.#length === 0) return undefined
    this.#turn++
    const isOthers = this.#turn % othersTurn === 0
    const lines = isOthers
      ? this.#lines.toSorted((a, b) => a.turn - b.turn || a.priority - b.priority)
      : [...this.#lines]
    for (const line of lines) {
      const entry = line.shift()
      if (entry) {
        line.turn = this.#turn
        return entry
      }
      this.#lines.splice(this.#lines.indexOf(line), 1)
    }
    return undefined
  }

  #hand(entry: Entry): Item {
    this.#length--
    entry.state = 'working'
    entry.ticket = 0
    // This work's outcome decides when the key comes back, not the last one's.
    entry.comeback?.timer.cancel()
    entry.comeback = undefined
    // What is left in the lines when nobody waits are places of keys that have moved on.
    if (this.#length === 0 && this.#lines.some(line => !line.isEmpty)) this.#lines.length = 0
    const reasons = entry.reasons.list()
    entry.reasons = new Reasons()
    return { key: entry.key, reasons, priority: entry.priority, since: entry.since, failures: entry.failures }
  }

  #settle(entry: Entry): void {
    if (this.#closed) {
      entry.comeback?.timer.cancel()
      entry.held?.timer.cancel()
      return
    }
    entry.state = 'idle'
    if (entry.held) return
    if (entry.again) {
      entry.again = false
      this.#enqueue(entry)
    } else if (!entry.later && !entry.comeback && entry.failures === 0) this.#entries.delete(entry.key)
  }

  #stamp(entry: Entry): number {
    this.#tickets++
    entry.ticket = this.#tickets
    return entry.ticket
  }

  #line(priority: number): Line {
    let at = this.#lines.findIndex(line => line.priority <= priority)
    if (at < 0) at = this.#lines.length
    const there = this.#lines[at]
    if (there?.priority === priority) return there
    const line = new Line(priority, this.#turn)
    this.#lines.splice(at, 0, line)
    return line
  }
}

function newEntry(key: string): Entry {
  return {
    ...{ key, state: 'idle', priority: 0, since: 0, reasons: new Reasons(), failures: 0, again: false, ticket: 0 },
    ...{ later: undefined, comeback: undefined, held: undefined },
  }
}

/** Different reasons, oldest first, as many as a person may want to read. */
class Reasons {
  readonly #all = new Set<string>()
  #more = 0

  add(reason: string | Reasons): void {
    if (typeof reason === 'string') {
      if (this.#all.size < mostReasons) this.#all.add(reason)
      else if (!this.#all.has(reason)) this.#more++
      return
    }
    for (const one of reason.#all) this.add(one)
    this.#more += reason.#more
  }

  list(): string[] {
    return this.#more > 0 ? [...this.#all, `and ${this.#more} more`] : [...this.#all]
  }
}

/** The entries of one priority: a line for each namespace, taking turns. */
class Line {
  readonly priority: number
  /** When it last had its turn, or began. */
  turn: number
  readonly #turns: Fifo<Fifo<{ entry: Entry; ticket: number }>> = new Fifo()
  readonly #byNamespace = new Map<string, Fifo<{ entry: Entry; ticket: number }>>()

  constructor(priority: number, turn: number) {
    this.priority = priority
    this.turn = turn
  }

  get isEmpty(): boolean {
    return this.#turns.length === 0
  }

  push(namespace: string, entry: Entry, ticket: number): void {
    let own = this.#byNamespace.get(namespace)
    if (!own) {
      own = new Fifo(namespace)
      this.#byNamespace.set(namespace, own)
      this.#turns.push(own)
    }
    own.push({ entry, ticket })
  }

  shift(): Entry | undefined {
    for (;;) {
      const own = this.#turns.shift()
      if (!own) return undefined
      let place = own.shift()
      while (place && place.entry.ticket !== place.ticket) place = own.shift()
      if (own.length > 0) this.#turns.push(own)
      else this.#byNamespace.delete(own.name)
      if (place) return place.entry
    }
  }
}

/** First in, first out, in constant time. */
class Fifo<V> {
  readonly name: string
  #items: V[] = []
  #head = 0

  constructor(name = '') {
    this.name = name
  }

  get length(): number {
    return this.#items.length - this.#head
  }

  push(value: V): void {
    this.#items.push(value)
  }

  shift(): V | undefined {
    if (this.#head === this.#items.length) return undefined
    const value = this.#items[this.#head] as V
    this.#items[this.#head++] = undefined as V
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return value
  }
}
