/**
 * What a process of controllers needs around them: connection, cache, election, events, health, metrics, log, signals.
 *
 * Guarantees: it starts and stops in order. Starting: servers, watches, election, work. Stopping, within the grace
 * period: no new work, work under way is finished, called off or left behind with nothing to write through, the lease
 * is released, events are written, watches and connections closed, servers last. Losing the lease stops the work, not
 * the process.
 */
import { setFlagsFromString } from 'node:v8'
import { type Clock, systemClock, type Timer } from '../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import { createLog, type Log, type LogOptions } from '../../shared/log.ts'
import type { Reason } from '../../shared/reasons.ts'
import { type Access, type AccessOptions, connect, connectThrough } from '../kube/access.ts'
import { Cache, type CacheOptions } from '../kube/cache.ts'
import { CachedClient } from '../kube/cached.ts'
import type { Client } from '../kube/client.ts'
import { createElection, type Election, type ElectionOptions, type Standing } from '../kube/election.ts'
import { createEventRecorder, type EventRecorder } from '../kube/events.ts'
import type { Informer } from '../kube/informer.ts'
import { apiVersionOf, type Kind } from '../kube/kind.ts'
import { Lease } from '../kube/kinds.ts'
import type { CredentialsSource } from '../kube/kubeconfig.ts'
import { createPresence } from '../kube/presence.ts'
import type { Health } from '../kube/reflector.ts'
import { describeTarget, type Interceptor, type Send } from '../kube/transport.ts'
import { warnings } from '../kube/warnings.ts'
import { createCallers } from './callers.ts'
import { Controller, type ControllerOptions } from './controller.ts'
import { type Address, type Checks, type Serving, serve } from './health.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { createTracing, noTracing, type Tracing } from './tracing.ts'

export interface ManagerOptions extends AccessOptions {
  /** Watch these namespaces only. Default: all. */
  readonly namespaces?: readonly string[] | undefined
  /** Of several processes that contest the same lease, one works. Default: none, every one works. */
  readonly leaderElection?: Omit<ElectionOptions, 'clock' | 'random' | 'log' | 'onChange'> | undefined
  /** Where /healthz, /readyz and /log-level are served. Default: nowhere. */
  readonly health?: Address | undefined
  /** Where /metrics is served, and for whom; on the same address as `health` if that is the same and has no certificate. Default: nowhere. */
  readonly metrics?: MetricsOptions | undefined
  readonly log?: LogOptions | Log | undefined
  /**
   * Milliseconds from the wish to stop to the end of `start`. Work under way is called off when four fifths are over,
   * and left behind when nine tenths are. Default 30,000.
   */
  readonly gracePeriod?: number | undefined
  /** Stop on SIGTERM and SIGINT. Default true. */
  readonly signals?: boolean | undefined
  /** Log promises that are rejected with nobody waiting, instead of letting them end the process. Default true. */
  readonly containRejections?: boolean | undefined
  /**
   * Keep the young generation of the heap small: a fifth less memory, for a little more garbage collection. Default
   * true.
   */
  readonly compact?: boolean | undefined
  readonly cache?: CacheOptions | undefined
  /** Instead of a connection of its own: for tests. */
  readonly send?: Send | undefined
}

export interface MetricsOptions extends Address {
  /**
   * Only for who shows a bearer token of a user that may get the path /metrics: the API server is asked. The token travels as it is: serve it with `tls`. Default false,
   * for anybody.
   */
  readonly auth?: boolean | undefined
}

/** Something else that runs while this process leads. */
export type Task = (signal: AbortSignal) => Promise<void>

/**
 * A watch that has failed for so long is dead to whoever asks for readiness; shorter failures are everyday
 * reconnections.
 */
const deadAfter = 5000

/**
 * When, as shares of the grace period: work is called off; what still goes on is left behind; the lease must be
 * released; events must be written; servers must be closed. The rest is for closing what else is open.
 */
const shares = { callOff: 0.8, leaveBehind: 0.9, release: 0.95, flush: 0.98, close: 0.99 }

export function createManager(options: ManagerOptions = {}): Manager {
  return new Manager(options)
}

export class Manager {
  readonly log: Log
  /** Straight to the server, whether we lead or not: for what every replica may do. */
  readonly client: Client
  readonly cache: Cache
  readonly metrics: Metrics
  readonly events: EventRecorder
  readonly election: Election | undefined
  readonly #options: ManagerOptions
  readonly #clock: Clock
  readonly #grace: number
  readonly #access: Omit<Access, 'credentials'> & Partial<Pick<Access, 'credentials'>>
  /** What reconcilers use: through the cache, and only while we lead. */
  readonly #working: CachedClient
  readonly #controllers: Controller<object>[] = []
  readonly #tasks: Task[] = []
  readonly #early: Task[] = []
  readonly #openings: ((stopping: AbortSignal) => Promise<Serving>)[] = []
  readonly #checks = new Map<string, () => string | undefined>()
  readonly #stopping = new AbortController()
  readonly #ready = Promise.withResolvers<void>()
  readonly #serving: Serving[] = []
  /** Kinds, by namespace, that could not be watched when last heard of. */
  readonly #troubled = new Set<string>()
  /** Work that goes on although the lease is lost, for a person. */
  #stuck: string | undefined
  #tracing: Tracing = noTracing
  #started: Promise<void> | undefined
  /** When it was asked to stop, on the monotonic clock. */
  #stoppedAt: number | undefined
  /** What made it stop, if that was an error. */
  #failure: { readonly error: unknown } | undefined

  constructor(options: ManagerOptions = {}) {
    const { name = 'shipmate', clock = systemClock, random } = options
    this.#options = options
    this.#clock = clock
    this.#grace = options.gracePeriod ?? 30_000
    // V8 reads this one whenever it thinks of growing; its other size flags count only on the command line.
    if (options.compact ?? true) setFlagsFromString('--semi-space-growth-factor=1')
    this.log = options.log && 'logger' in options.log ? options.log : createLog(options.log)
    this.metrics = createMetrics({ clock })
    const traced = late(() => this.#tracing.interceptor)
    let counting: Interceptor | undefined
    const counted = late(() => (counting ??= this.metrics.interceptor(this.#access.host)))
    const warned = warnings((text, { target }) =>
      this.log.logger.warn(`the server warns: ${describeTarget(target)}: ${text}`),
    )
    const interceptors = [...(options.interceptors ?? []), traced, counted, warned]
    this.#access = options.send
      ? connectThrough(options.send, { ...options, interceptors })
      : connect({ ...options, interceptors })
    this.client = this.#access.client
    this.events = createEventRecorder(this.client, {
      component: name,
      clock,
      random,
      log: this.log.child({ part: 'events' }),
    })
    this.election = options.leaderElection && this.#contest(options.leaderElection)
    this.cache = new Cache(this.client, {
      ...{ clock, random, namespaces: options.namespaces },
      presence: createPresence(this.client, { clock, random, onNotice: message => this.log.logger.warn(message) }),
      ...options.cache,
      onError: error => this.log.logger.error({ err: error }, `a listener of the cache threw: ${messageOf(error)}`),
      onHealth: (health, namespace, kind) => this.#hear(health, namespace, kind),
    })
    // Nobody has to wait for it.
    this.#ready.promise.catch(() => undefined)
    this.#stopping.signal.addEventListener('abort', () => (this.#stoppedAt = clock.monotonic()), { once: true })
    this.#working = new CachedClient(
      this.election ? this.#access.clientWith(this.election.gate()) : this.client,
      this.cache,
    )
  }

  /** A controller for a kind; say what it watches and how it reconciles before `start`. */
  controller<T extends object>(kind: Kind<T>, options: ControllerOptions = {}): Controller<T> {
    if (this.#started) throw new ShipmateError('Misuse', 'controllers are declared before the manager starts', 'never')
    const { cache, metrics, events } = this
    const { fieldManager, formerFieldManagers = [] } = options
    const isNamed = fieldManager !== undefined || formerFieldManagers.length > 0
    const around = {
      cache,
      metrics,
      events,
      client: isNamed ? this.#working.as(fieldManager ?? this.client.fieldManager, formerFieldManagers) : this.#working,
      log: this.log,
      tracing: this.#spans(),
      clock: this.#clock,
    }
    const controller = new Controller(kind, { ...around, random: this.#options.random }, options)
    if (this.#controllers.some(other => other.name === controller.name)) {
      throw new ShipmateError(
        'Misuse',
        `two controllers are named "${controller.name}": give one a name of its own`,
        'never',
      )
    }
    this.#controllers.push(controller as unknown as Controller<object>)
    return controller
  }

  get clock(): Clock {
    return this.#clock
  }

  get random(): () => number {
    return this.#options.random ?? Math.random
  }

  /** For `exec` and `portForward`; undefined where there is no connection of its own. */
  get credentials(): CredentialsSource | undefined {
    return this.#access.credentials
  }

  /** One more condition of readiness: answers what is wrong, or nothing. */
  readyCheck(name: string, check: () => string | undefined): this {
    this.#checks.set(name, check)
    return this
  }

  /** Runs from the start on, whether this process leads or not. One that throws is logged, and ends nothing else. */
  onStart(task: Task): this {
    this.#early.push(task)
    return this
  }

  /**
   * One more server, of every replica, whether it leads or not: open before anything is watched, closed when the work has ended and the connection to the API server is
   * still there. It is told when all begins to stop.
   */
  server(open: (stopping: AbortSignal) => Promise<Serving>): this {
    this.#openings.push(open)
    return this
  }

  /** Runs while this process leads. One that throws stops the manager. */
  task(task: Task): this {
    this.#tasks.push(task)
    return this
  }

  /** Resolves when every required kind has been read; rejects if that is not so when all has stopped. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** Where health and metrics are served. */
  get addresses(): readonly Serving[] {
    return this.#serving
  }

  /** Works until `stop` is called, SIGTERM or SIGINT comes, or `signal` is aborted; resolves when all has stopped. */
  start(signal?: AbortSignal): Promise<void> {
    this.#started ??= this.#run(signal).finally(() => this.#ready.reject(new Error('the manager has stopped')))
    return this.#started
  }

  /** Resolves when all has stopped. */
  async stop(why = 'asked to'): Promise<void> {
    this.#stopping.abort(why)
    await this.#started
  }

  async #run(signal: AbortSignal | undefined): Promise<void> {
    for (const controller of this.#controllers) controller.check()
    const release = this.#listen(signal)
    const watching = new AbortController()
    let cache: Promise<void> | undefined
    const servers: Serving[] = []
    const { name = 'shipmate' } = this.#options
    this.log.logger.info({ name, server: this.#access.host, node: process.version }, 'starting')
    try {
      this.#tracing = await createTracing()
      await this.#serve()
      for (const open of this.#openings) servers.push(await open(this.#stopping.signal))
      cache = this.cache.run(watching.signal)
      void this.#announce()
      for (const task of this.#early) {
        task(this.#stopping.signal).catch(error =>
          this.log.logger.error({ err: error }, `what runs from the start on failed: ${messageOf(error)}`),
        )
      }
      const work = this.election
        ? this.election.run(lead => this.#lead(lead), this.#stopping.signal)
        : this.#lead(this.#stopping.signal)
      await this.#inTime(work, 'release', 'the lease was not released in time: a successor waits until it runs out')
      await this.#flush()
      if (this.#failure) throw this.#failure.error
    } finally {
      this.#stopping.abort('stopping')
      await this.#inTime(Promise.all(servers.map(server => server.close())), 'close', 'a server did not close in time')
      watching.abort('stopping')
      for (const controller of this.#controllers) controller.close()
      await cache
      this.events.stop()
      await this.#access.close()
      await Promise.all(this.#serving.map(serving => serving.close()))
      release()
      this.log.logger.info('stopped')
    }
  }

  /** The work itself, while we lead. */
  async #lead(signal: AbortSignal): Promise<void> {
    const cancelled = new AbortController()
    let timer: Timer | undefined
    const stop = () => {
      // Without the lease there is no time to finish anything; on a stop there is.
      if (signal.reason instanceof ShipmateError && signal.reason.code === 'NotLeading') {
        cancelled.abort(signal.reason)
        timer = this.#clock.after(this.#grace, () => {
          this.#stuck =
            'work that was called off when the lease was lost goes on: reconcile functions must heed their signal'
          this.log.logger.error(this.#stuck)
        })
      } else timer = this.#clock.after(this.#left('callOff'), () => cancelled.abort(signal.reason))
    }
    signal.addEventListener('abort', stop, { once: true })
    try {
      const controllers = this.#controllers.map(controller =>
        this.#guard(() => controller.run(signal, cancelled.signal), signal),
      )
      const tasks = this.#tasks.map(task => this.#guard(() => task(signal), signal))
      const all = Promise.all([...controllers, ...tasks, aborted(signal)])
      const words = `work did not end within ${Math.round(this.#grace * shares.leaveBehind)} ms and is left behind`
      // Only on a stop, when the gate shuts for good: who loses the lease may lead again, and must not meet itself.
      await this.#inTime(all, 'leaveBehind', `${words}: reconcile functions must heed their signal`)
    } finally {
      timer?.cancel()
      this.#stuck = undefined
      signal.removeEventListener('abort', stop)
    }
  }

  /** Runs one part of the work. If it fails, all is stopped; how it ends when it was to stop is nobody's failure. */
  async #guard(run: () => Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await run()
    } catch (error) {
      if (signal.aborted) {
        if (error !== signal.reason)
          this.log.logger.warn({ err: error }, `work that was to stop ended with an error: ${messageOf(error)}`)
        return
      }
      this.log.logger.error({ err: error }, `stopping, since a part of the work failed: ${messageOf(error)}`)
      this.#failure ??= { error }
      this.#stopping.abort('a part of the work failed')
    }
  }

  /** Milliseconds until a share of the grace period is over. */
  #left(share: keyof typeof shares): number {
    const now = this.#clock.monotonic()
    return Math.max((this.#stoppedAt ?? now) + this.#grace * shares[share] - now, 0)
  }

  async #flush(): Promise<void> {
    const late = new AbortController()
    const timer = this.#clock.after(this.#left('flush'), () => late.abort())
    await this.events.flush(late.signal).catch(() => undefined)
    timer.cancel()
  }

  /**
   * Waits for `work`; once all is to stop, only until a share of the grace period is over. Then the log says in `words`
   * what was not waited for.
   */
  async #inTime(work: Promise<unknown>, share: keyof typeof shares, words: string): Promise<void> {
    const { signal } = this.#stopping
    const late = Promise.withResolvers<void>()
    let timer: Timer | undefined
    const stop = () => {
      timer = this.#clock.after(this.#left(share), () => {
        this.log.logger.error(words)
        late.resolve()
      })
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    try {
      await Promise.race([work, late.promise])
    } finally {
      timer?.cancel()
      signal.removeEventListener('abort', stop)
    }
  }

  async #announce(): Promise<void> {
    await Promise.all(this.#controllers.flatMap(({ required }) => required.map(informer => informer.synced)))
    this.log.logger.info(
      { controllers: this.#controllers.map(({ name }) => name) },
      'ready: every watched kind has been read',
    )
    this.#ready.resolve()
  }

  async #serve(): Promise<void> {
    const { health, metrics } = this.#options
    const { registry } = this.metrics
    const together = health && metrics && !metrics.tls && health.port !== 0 && health.port === metrics.port
    const callers = metrics?.auth
      ? createCallers(this.client, { clock: this.#clock, log: this.log.child({ part: 'metrics' }) })
      : undefined
    const counts = { metrics: registry, callers }
    const probes = {
      health: () => ({ ping: () => undefined, work: () => this.#stuck }),
      ready: () => this.#readiness(),
      log: this.log,
    }
    if (metrics) this.metrics.collectProcess()
    if (health) this.#serving.push(await serve(together ? { ...probes, ...counts } : probes, health))
    if (metrics && !together) this.#serving.push(await serve(counts, metrics))
    for (const { host, port } of this.#serving) this.log.logger.info({ host, port }, 'listening: health or metrics')
  }

  #readiness(): Checks {
    const needed = this.#controllers.flatMap(({ required, unsettled }) => [...required, ...unsettled])
    return Object.fromEntries([
      ...needed.map(
        informer => [`watch-${servedName(informer.kind)}`, () => wrongWith(informer, this.#clock)] as const,
      ),
      ...this.#checks,
    ])
  }

  #hear(health: Health, namespace: string | undefined, kind: Kind): void {
    const labels = { resource: servedName(kind), namespace: namespace ?? '' }
    const id = `${labels.resource} ${labels.namespace}`
    this.metrics.watches.labels(labels).set(health.is === 'watching' ? 1 : 0)
    if (health.is === 'failing') this.metrics.watchFailures.labels(labels).inc()
    const { logger } = this.log
    if (health.is === 'absent')
      logger.warn(
        { ...labels, reason: 'KindAbsent' satisfies Reason },
        `${labels.resource} is not served: watched as soon as it is`,
      )
    if (health.is === 'failing')
      logger.warn({ ...labels, failures: health.failures }, `watching fails, and is tried again: ${whyOf(health)}`)
    if (health.is === 'watching') logger[this.#troubled.has(id) ? 'info' : 'debug'](labels, 'watching')
    if (health.is === 'watching') this.#troubled.delete(id)
    else this.#troubled.add(id)
  }

  #contest(options: NonNullable<ManagerOptions['leaderElection']>): Election {
    const log = this.log.child({ part: 'election' })
    const leading = this.metrics.leading.labels({ name: options.name })
    const metadata = { name: options.name, namespace: options.namespace ?? this.client.namespace }
    const lease = { apiVersion: apiVersionOf(Lease), kind: Lease.kind, metadata }
    const onChange = (standing: Standing) => {
      leading.set(standing.leading ? 1 : 0)
      if (!standing.leading) {
        if (standing.leader)
          log.info({ holder: standing.leader }, `waiting for lease ${metadata.namespace}/${metadata.name}`)
        return
      }
      const news = { type: 'Normal', reason: 'LeaderElection' satisfies Reason, action: 'Lead' } as const
      this.events.record(lease, { ...news, note: `${standing.leader} became the leader` })
    }
    return createElection(this.#access.clientAside(), {
      ...options,
      clock: this.#clock,
      random: this.#options.random,
      log,
      onChange,
    })
  }

  /** Spans by whatever tracing is found at the start. */
  #spans(): Tracing {
    return { span: (name, attributes, work) => this.#tracing.span(name, attributes, work), interceptor: next => next }
  }

  /** Listens for wishes to stop, and for rejections that nobody handles. Returns how to cease. */
  #listen(signal: AbortSignal | undefined): () => void {
    const { signals = true, containRejections = true } = this.#options
    const stop = (why: string) => {
      if (!this.#stopping.signal.aborted) this.log.logger.info({ why }, 'stopping')
      this.#stopping.abort(why)
    }
    const onSignal = (name: string) => {
      // Whoever asks twice does not want to wait.
      if (this.#stopping.signal.aborted) process.exit(1)
      stop(name)
    }
    const onAbort = () => stop('called off')
    const onRejection = (error: unknown) =>
      this.log.logger.error({ err: error }, `a promise was rejected with nobody waiting for it: ${messageOf(error)}`)
    if (signals) for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, onSignal)
    if (containRejections) process.on('unhandledRejection', onRejection)
    if (signal?.aborted) onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    return () => {
      for (const name of ['SIGTERM', 'SIGINT']) process.off(name, onSignal)
      process.off('unhandledRejection', onRejection)
      signal?.removeEventListener('abort', onAbort)
    }
  }
}

/** An interceptor that is asked for with each request: it may not be known yet, and become another one. */
function late(interceptor: () => Interceptor): Interceptor {
  return next => {
    let known: Interceptor | undefined
    let send = next
    return request => {
      const now = interceptor()
      if (now !== known) send = now(next)
      known = now
      return send(request)
    }
  }
}

/** `plural.version.group`, as kubectl takes it. */
function servedName(kind: Kind): string {
  return [kind.plural, kind.version, kind.group].filter(Boolean).join('.')
}

/** Why a controller that needs it cannot work as it should; undefined where it can. */
function wrongWith(informer: Informer<object>, clock: Clock): string | undefined {
  const { health } = informer
  if (health.is === 'absent') return 'not served: is its CRD installed?'
  if (health.is !== 'failing') return informer.hasSynced ? undefined : 'not read yet'
  const why = whyOf(health)
  if (!informer.hasSynced) return `not read yet: ${why}`
  if (clock.monotonic() - health.since > deadAfter) return `the watch is dead: ${why}`
  return undefined
}

/** A refusal names one verb; reading takes three. */
function whyOf({ why, missingRule }: Health & { is: 'failing' }): string {
  return missingRule === undefined ? why : `${why} (to read it takes the rule ${missingRule})`
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
