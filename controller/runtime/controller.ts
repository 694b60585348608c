/**
 * Brings the objects of one kind to what they wish, one key at a time each, many keys at once.
 *
 * Guarantees
 *   - A change of an object, of what it owns, or of what is mapped to it leads to a reconciliation that begins after
 *     the change is visible.
 *   - No two reconciliations of one object at once. What a reconcile function throws concerns its own key alone.
 *   - Work begins when every required kind has been read whole, or may not be read: then whoever asks for it is told the missing rule, and
 *     every object is looked at again once it can be read. Work ends, finished or called off, before `run` returns.
 */
import { type Clock, systemClock } from '../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import type { Log, Logger } from '../../shared/log.ts'
import type { Reason } from '../../shared/reasons.ts'
import type { Cache } from '../kube/cache.ts'
import type { CachedClient, Write } from '../kube/cached.ts'
import type { EventRecorder } from '../kube/events.ts'
import type { Informer } from '../kube/informer.ts'
import { type Kind, keyOf, type Ref, refOfKey, type Snapshot } from '../kube/kind.ts'
import type { Change } from '../kube/store.ts'
import { HotLoop, type HotLoopOptions } from './hotloop.ts'
import type { Metrics } from './metrics.ts'
import { type Outcome, outcomeOf, outcomeOfError, type Result } from './outcome.ts'
import type { Predicate } from './predicates.ts'
import { type Addition, type Item, priorities, Queue, type QueueOptions } from './queue.ts'
import { Source } from './source.ts'
import type { Tracing } from './tracing.ts'

export interface ControllerOptions {
  /** In logs, metrics and events. Default: the kind, in lower case. */
  readonly name?: string | undefined
  /** Reconciliations at once. Default 10. */
  readonly concurrency?: number | undefined
  /** Which changes of the object itself count. Default: all. */
  readonly when?: Predicate | undefined
  /**
   * Reconcile every object again every so many milliseconds, behind everything else. Default: never; the watches are
   * trusted.
   */
  readonly resync?: number | undefined
  readonly backoff?: QueueOptions['backoff']
  /** Under which name its reconcile function writes, as in managedFields. Default: the manager's. */
  readonly fieldManager?: string | undefined
  /** Names under which it has applied before: what they own of objects that are watched with `owns` is taken over when it applies. */
  readonly formerFieldManagers?: readonly string[] | undefined
  readonly hotLoop?: HotLoopOptions | undefined
  /** Of the objects that exist when it begins, which come before the others. Default: none. */
  first?(object: Snapshot): boolean
  /**
   * How far an object has got, for those whose work is many steps without a change of the spec. Another answer than the last one is no loop. It must not come back to an
   * answer that it gave before. Default: none; only a change of the spec counts.
   */
  further?(object: Snapshot): unknown
}

export interface WatchedOptions<T extends object> {
  /** Which changes count. Default: all. */
  readonly when?: Predicate<T> | undefined
  /**
   * The kind may be absent: then the controller works without it, and watches it as soon as its CRD is there. Default
   * false.
   */
  readonly optional?: boolean | undefined
}

/** What a reconcile function gets. */
export interface Context<T extends object> {
  /** The object as it is in the cache, frozen. */
  readonly object: Snapshot<T>
  readonly client: CachedClient
  /** With the controller's and the object's name. */
  readonly log: Logger
  /** Why this reconciliation: every different cause since the last one. */
  readonly reasons: readonly string[]
  /** Aborted when the process stops or no longer leads. */
  readonly signal: AbortSignal
  /** 1, or one more than the failures in a row before it. */
  readonly attempt: number
  /** Tells a person, through an Event on the object. */
  event(type: 'Normal' | 'Warning', reason: string, note: string): void
}

export type Reconcile<T extends object> = (context: Context<T>) => Promise<Result> | Result

/** Called with what is left of an object that is gone: its name. */
export type Gone = (context: {
  ref: Ref
  client: CachedClient
  log: Logger
  signal: AbortSignal
}) => Promise<void> | void

/** One of a controller's wake-ups, from anywhere. */
export interface Trigger extends Omit<Addition, 'reason'> {
  readonly ref: Ref
  readonly reason: string
}

/** What a controller needs of its manager. */
export interface Surroundings {
  readonly cache: Cache
  readonly client: CachedClient
  readonly log: Log
  readonly metrics: Metrics
  readonly tracing: Tracing
  readonly events: EventRecorder
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
}

type End = ReturnType<ReturnType<Metrics['controller']>['begin']>

interface Watched {
  readonly informer: Informer<object>
  readonly optional: boolean
  /** Whether it is known what there is of it, if only that it is not served. */
  isSettled: boolean
  /** Begins to listen. */
  readonly subscribe: () => () => void
}

export class Controller<T extends object> {
  readonly kind: Kind<T>
  readonly name: string
  readonly #around: Surroundings
  readonly #options: ControllerOptions
  readonly #clock: Clock
  readonly #concurrency: number
  readonly #log: Logger
  readonly #informer: Informer<T>
  readonly #watched: Watched[] = []
  readonly #sources: Source<Trigger>[] = []
  readonly #hotLoop: HotLoop
  readonly #metrics: ReturnType<Metrics['controller']>
  #queue: Queue
  #reconcile: Reconcile<T> | undefined
  #gone: Gone | undefined
  /** Keys of objects that were there, are gone, and have not been dealt with. */
  readonly #removed = new Set<string>()

  constructor(kind: Kind<T>, around: Surroundings, options: ControllerOptions = {}) {
    this.kind = kind
    this.name = options.name ?? kind.kind.toLowerCase()
    this.#around = around
    this.#options = options
    this.#clock = around.clock ?? systemClock
    this.#concurrency = options.concurrency ?? 10
    if (!(Number.isInteger(this.#concurrency) && this.#concurrency > 0)) {
      throw new ShipmateError(
        'Misuse',
        `the concurrency of controller ${this.name} must be 1 or more, not ${this.#concurrency}`,
        'never',
      )
    }
    this.#log = around.log.child({ controller: this.name })
    this.#hotLoop = new HotLoop({ clock: this.#clock, ...options.hotLoop })
    this.#metrics = around.metrics.controller(this.name, this.#concurrency, () => this.#queue.length)
    this.#queue = this.#newQueue()
    // Until it works there is nothing to wake.
    this.#queue.close()
    this.#informer = around.cache.informer(kind)
    this.#watch(kind, change => [change.object.metadata], { when: options.when as Predicate<T> | undefined })
  }

  /**
   * Also when something changes that an object of this kind controls, by owner reference. What is applied to it is
   * compared first.
   */
  owns<O extends object>(kind: Kind<O>, options: WatchedOptions<O> = {}): this {
    const informer = this.#around.cache.informer(kind)
    for (const manager of this.#around.client.fieldManagers) informer.keepManager(manager)
    this.#watch(kind, change => this.#ownersOf(change.object), options)
    return this
  }

  /** Also when something changes that `map` relates to objects of this kind. */
  watches<O extends object>(
    kind: Kind<O>,
    map: (object: Snapshot<O>) => readonly Ref[],
    options: WatchedOptions<O> = {},
  ): this {
    this.#watch(kind, change => map(change.object), options)
    return this
  }

  /** Also when `source` says so. It is read while the controller works, and closed when the manager stops. */
  from(source: AsyncIterable<Trigger>): this {
    this.#sources.push(new Source(source))
    return this
  }

  reconcile(reconcile: Reconcile<T>): this {
    this.#reconcile = reconcile
    return this
  }

  /**
   * Called when an object that was there is gone, for what this process kept of it. Best effort: not for what went while nobody watched, or
   * another replica led. What must not be left behind elsewhere needs a finalizer.
   */
  gone(gone: Gone): this {
    this.#gone = gone
    return this
  }

  /** Wakes an object, as a watch does. Does nothing while the controller does not work. */
  trigger(ref: Ref, reason: string, options: Omit<Addition, 'reason'> = {}): void {
    this.#queue.add(this.#keyOf(ref), { ...options, reason })
  }

  /** That it can work at all; its reconcile function. */
  check(): Reconcile<T> {
    if (this.#reconcile) return this.#reconcile
    throw new ShipmateError('Misuse', `controller ${this.name} has no reconcile function`, 'never')
  }

  /** What it cannot work without. */
  get required(): Informer<object>[] {
    return this.#watched.filter(({ optional }) => !optional).map(({ informer }) => informer)
  }

  /** Optional kinds of which it is not known yet whether they are there: until then it does not work either. */
  get unsettled(): Informer<object>[] {
    return this.#watched.filter(({ optional, isSettled }) => optional && !isSettled).map(({ informer }) => informer)
  }

  /** Works until `stopping` is aborted, then finishes what is under way; `cancelled` calls that off too. */
  async run(stopping: AbortSignal, cancelled: AbortSignal = stopping): Promise<void> {
    const reconcile = this.check()
    if (!(await this.#settled(stopping))) return
    this.#queue = this.#newQueue()
    const queue = this.#queue
    const unsubscribe = this.#watched.map(({ subscribe }) => subscribe())
    const sources = this.#sources.map(source => this.#read(source, stopping))
    const resync = this.#resync()
    const stop = () => {
      for (const one of unsubscribe) one()
      resync?.cancel()
      queue.close()
    }
    if (stopping.aborted) stop()
    else stopping.addEventListener('abort', stop, { once: true })
    this.#awaitUnread(queue)
    const workers = Array.from({ length: this.#concurrency }, async () => {
      for (let item = await queue.take(); item; item = await queue.take())
        await this.#work(queue, reconcile, item, cancelled)
    })
    await Promise.all([...workers, ...sources])
  }

  /** It does not run again: closes what it reads. */
  close(): void {
    for (const source of this.#sources) source.close()
  }

  /** What may not be read when work begins concerns every object once it can be. */
  #awaitUnread(queue: Queue): void {
    for (const { informer, optional } of this.#watched) {
      if (informer.hasSynced || (optional && informer.missingRule === undefined)) continue
      void informer.synced.then(() => {
        for (const { metadata } of this.#informer.list())
          queue.add(keyOf(metadata), { reason: `${informer.kind.kind} can be read now` })
      })
    }
  }

  /**
   * Waits until every kind has been read or may not be, or is absent and optional. False if stopped before.
   */
  async #settled(signal: AbortSignal): Promise<boolean> {
    const ready = Promise.all(
      this.#watched.map(({ informer, optional }) =>
        optional ? Promise.race([informer.settled, informer.answered]) : informer.answered,
      ),
    )
    const stopped = new Promise<false>(resolve => {
      if (signal.aborted) resolve(false)
      else signal.addEventListener('abort', () => resolve(false), { once: true })
    })
    return Promise.race([ready.then(() => true), stopped])
  }

  async #work(queue: Queue, reconcile: Reconcile<T>, item: Item, signal: AbortSignal): Promise<void> {
    const ref = refOfKey(item.key)
    const began = this.#clock.monotonic()
    const end = this.#metrics.begin(item.since)
    const log = this.#log.child({ object: item.key })
    const object = this.#informer.get(ref)
    const writes: Write[] = []
    const { namespace } = ref
    const client = this.#around.client.with({
      signal,
      namespace,
      onWrite: write => write.changed && writes.push(write),
    })
    let outcome: Outcome
    try {
      if (object) {
        this.#removed.delete(item.key)
        const context: Context<T> = {
          ...{ object, client, log, signal, reasons: item.reasons, attempt: item.failures + 1 },
          event: (type, reason, note) =>
            this.#around.events.record(object, { type, reason, action: 'Reconcile', note }),
        }
        log.debug({ reasons: item.reasons, attempt: context.attempt }, 'reconciling')
        outcome = outcomeOf(
          await this.#around.tracing.span(`reconcile ${this.name}`, spanOf(this.name, item), () => reconcile(context)),
        )
      } else {
        this.#hotLoop.forget(item.key)
        if (this.#removed.has(item.key)) await this.#gone?.({ ref, client, log, signal })
        this.#removed.delete(item.key)
        outcome = { is: 'success' }
      }
    } catch (error) {
      outcome = outcomeOfError(error, signal.aborted)
    }
    if (object && writes.length > 0) this.#watchForLoop(queue, object, item.key, writes, log)
    log.debug({ outcome: outcome.is, writes: describeWrites(writes), ms: this.#since(began) }, 'reconciled')
    this.#conclude(queue, item, outcome, log, end)
  }

  #conclude(queue: Queue, item: Item, outcome: Outcome, log: Logger, end: End): void {
    const { key } = item
    switch (outcome.is) {
      case 'success':
        end('success')
        return queue.done(key)
      case 'comeBack':
        end('requeue_after')
        return queue.comeBack(key, `asked to come back after ${outcome.after} ms`, outcome.after)
      case 'cancelled':
        end('requeue')
        log.debug('called off')
        return queue.done(key)
      case 'outdated': {
        end('requeue')
        const after = queue.retry(key, `outdated: ${outcome.error.message}`)
        // Everyday life, unless reading again does not help.
        const level = item.failures < 5 ? 'debug' : 'warn'
        return log[level](
          { attempt: item.failures + 1, retryInMs: Math.round(after) },
          `somebody else was faster, deciding anew: ${outcome.error.message}`,
        )
      }
      case 'terminal':
        end('error', 'terminal')
        queue.done(key)
        return log.error(
          { err: outcome.error },
          `failed, and is not retried until something changes: ${outcome.error.message}`,
        )
      case 'throttled':
      case 'failed': {
        end('error', outcome.panic ? 'panic' : undefined)
        const message = messageOf(outcome.error)
        const why = `retry after: ${message.slice(0, 80)}`
        const after = outcome.is === 'failed' ? queue.retry(key, why, outcome.after) : outcome.after
        if (outcome.is === 'throttled') queue.retryAfter(key, why, after)
        return log.error(
          { err: outcome.error, attempt: item.failures + 1, retryInMs: Math.round(after) },
          `failed: ${message}`,
        )
      }
    }
  }

  #watchForLoop(queue: Queue, object: Snapshot<T>, key: string, writes: readonly Write[], log: Logger): void {
    const { generation } = object.metadata
    const hold = this.#hotLoop.wrote(
      key,
      generation,
      this.#informer.get(object.metadata)?.metadata.generation ?? generation,
      this.#options.further?.(object as Snapshot),
    )
    if (hold === 0) return
    queue.hold(key, hold)
    this.#metrics.hotLoop()
    const what = describeWrites(writes).slice(0, 3).join(', ')
    log.warn(
      { reason: 'HotLoop' satisfies Reason, holdMs: hold, writes: what },
      'written again and again without getting further: slowed down',
    )
    this.#around.events.record(object, {
      ...{ type: 'Warning', reason: 'HotLoop' satisfies Reason, action: 'SlowDown' },
      note: `${this.name} writes again and again without getting further (${what}), and is slowed down`,
    })
  }

  #watch<O extends object>(
    kind: Kind<O>,
    map: (change: Change<O>) => readonly Ref[],
    options: WatchedOptions<O>,
  ): void {
    const informer = this.#around.cache.informer(kind)
    const { when, optional = false } = options
    const isOwn = informer === (this.#informer as unknown)
    const subscribe = () =>
      informer.subscribe(change => {
        if (when && !change.initial && !this.#ask(`the predicate for ${kind.kind}`, () => when(change), true)) return
        const reason = `${kind.kind} ${change.key} ${change.initial ? 'exists' : change.type}`
        const priority = change.initial ? this.#initialPriority(isOwn, change.object) : priorities.fresh
        // What it belonged to before is concerned as well.
        const states: Change<O>[] = change.old
          ? [change, { ...change, type: 'removed', object: change.old, old: undefined }]
          : [change]
        // Each once: who is idle begins with the first addition, and would begin anew for a second.
        const keys = new Set(
          states.flatMap(state =>
            this.#ask(`the mapping of ${kind.kind}`, () => map(state).map(ref => this.#keyOf(ref, state.object)), []),
          ),
        )
        if (isOwn && change.type === 'removed') this.#removed.add(change.key)
        for (const key of keys) this.#queue.add(key, { reason, priority })
        // A new wish is worth a try, whatever the last one led to.
        if (isOwn && hasNewWish(change)) this.#queue.release(change.key)
      })
    const watched = { informer: informer as unknown as Informer<object>, optional, isSettled: false, subscribe }
    void informer.settled.then(() => {
      watched.isSettled = true
    })
    this.#watched.push(watched)
  }

  #initialPriority(isOwn: boolean, object: Snapshot<object>): number {
    const { first } = this.#options
    const isFirst = isOwn && first !== undefined && this.#ask('`first`', () => first(object as Snapshot), false)
    return isFirst ? priorities.first : priorities.initial
  }

  /**
   * What a function of the user's says; `otherwise`, and a line in the log, if it throws: what happened must not be
   * lost for that.
   */
  #ask<R>(what: string, question: () => R, otherwise: R): R {
    try {
      return question()
    } catch (error) {
      this.#log.error({ err: error }, `${what} threw: ${messageOf(error)}`)
      return otherwise
    }
  }

  /** Where an object of this kind is, to whoever names it: without a namespace, in that of what named it, or the client's own. */
  #keyOf({ name, namespace }: Ref, by?: Snapshot): string {
    if (!this.kind.namespaced) return name
    return keyOf({ name, namespace: namespace ?? by?.metadata.namespace ?? this.#around.client.live.namespace })
  }

  #ownersOf(object: Snapshot): Ref[] {
    const owner = object.metadata.ownerReferences?.find(reference => reference.controller)
    if (owner?.kind !== this.kind.kind || groupOf(owner.apiVersion) !== this.kind.group) return []
    return [this.kind.namespaced ? { name: owner.name, namespace: object.metadata.namespace } : { name: owner.name }]
  }

  async #read(source: Source<Trigger>, signal: AbortSignal): Promise<void> {
    const wake = ({ ref, ...addition }: Trigger) => this.#queue.add(this.#keyOf(ref), addition)
    try {
      await source.read(wake, signal)
    } catch (error) {
      this.#log.error({ err: error }, `a source of wake-ups ended with an error: ${messageOf(error)}`)
    }
  }

  #since(began: number): number {
    return Math.round(this.#clock.monotonic() - began)
  }

  #resync() {
    const every = this.#options.resync
    if (!every) return undefined
    const again = () => {
      for (const object of this.#informer.list()) {
        this.#queue.add(keyOf(object.metadata), { reason: 'resync', priority: priorities.initial })
      }
      timer = this.#clock.after(every, again)
    }
    let timer = this.#clock.after(every, again)
    return { cancel: () => timer.cancel() }
  }

  #newQueue(): Queue {
    const { clock, random } = this.#around
    return new Queue({ clock, random, backoff: this.#options.backoff, onEvent: event => this.#metrics.queued(event) })
  }
}

/** Somebody else changed the spec. */
function hasNewWish<O extends object>(change: Change<O>): boolean {
  return (
    change.type === 'changed' && !change.own && change.old.metadata.generation !== change.object.metadata.generation
  )
}

/** `apply ConfigMap x`, each once. */
function describeWrites(writes: readonly Write[]): string[] {
  return [...new Set(writes.map(({ verb, kind, ref }) => `${verb} ${kind.kind} ${ref.name}`))]
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? '' : apiVersion.slice(0, slash)
}

function spanOf(controller: string, item: Item) {
  return {
    'shipmate.controller': controller,
    'shipmate.object': item.key,
    'shipmate.reasons': [...item.reasons],
    'shipmate.attempt': item.failures + 1,
  }
}
