/**
 * Keeps a Store like a collection on the server: the I/O around reflect.ts.
 *
 * Guarantees: it goes on until its signal is aborted, whatever the server or the network do. A connection that is open but dead is found
 * by a watchdog. What is read of the server at a time is a page, or one piece of a stream.
 */
import { type Backoff, delay } from '../../shared/backoff.ts'
import { type Clock, sleep, systemClock } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Client, Selection } from './client.ts'
import {
  BadRequest,
  Expired,
  Forbidden,
  Invalid,
  type KubeError,
  MethodNotAllowed,
  NotFound,
  Unavailable,
} from './errors.ts'
import type { Kind, Live } from './kind.ts'
import type { Presence } from './presence.ts'
import { type Command, type Happening, initial, type State, step } from './reflect.ts'
import type { Round, Store } from './store.ts'
import type { WatchEvent } from './watch.ts'

export interface ReflectorOptions extends Selection {
  /** Whether to let the server stream what exists, where it can. Default true; else it is listed page by page. */
  readonly streaming?: boolean | undefined
  /** Objects a page. Default 500. */
  readonly pageSize?: number | undefined
  /** After so many seconds, give or take a tenth, the server ends a watch and it is taken up again. Default 290. */
  readonly watchSeconds?: number | undefined
  /**
   * Milliseconds of silence after which a stream is given up as dead. A stream that has brought a bookmark brings one a minute; until then
   * only the server's own end of the watch can be relied on: where nothing happens at all, there may be none. Default 150,000, and
   * `watchSeconds` and 15 s more. While what exists is being streamed, 15,000: then it is listed instead, in case the server does not know
   * how to mark the end.
   */
  readonly silence?:
    | {
        readonly withBookmarks?: number | undefined
        readonly without?: number | undefined
        readonly streaming?: number | undefined
      }
    | undefined
  /** Between failures. Default 200 ms to 30 s. */
  readonly backoff?: Backoff | undefined
  /** Tells when a kind that is not served may be served again. Default: it is asked for every 30 s. */
  readonly presence?: Presence | undefined
  /** Called when `health` changes. */
  readonly onHealth?: ((health: Health) => void) | undefined
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
}

/** How the copy is. */
export type Health =
  /** The first copy is being made. */
  | { readonly is: 'syncing' }
  /** Up to date. */
  | { readonly is: 'watching' }
  /** The server or the network fail us. What is in the store is as of `since`, on the monotonic clock. */
  | {
      readonly is: 'failing'
      readonly since: number
      readonly failures: number
      readonly why: string
      /** The server does not let us read it: what would have to stand in a Role. */
      readonly missingRule?: string | undefined
    }
  /** The kind is not served. */
  | { readonly is: 'absent' }

/** A stream that was open this long was worth opening, even if nothing happened. */
const decentLife = 5000

/** The watchdog bit. */
class Silence extends Unavailable {}

export class Reflector<T extends object> {
  readonly #client: Client
  readonly #kind: Kind<T>
  readonly #store: Store<T>
  readonly #options: ReflectorOptions
  readonly #clock: Clock
  readonly #random: () => number
  readonly #appears: ReturnType<Presence['waiter']> | undefined
  #state: State
  #round: Round<T> | undefined
  #health: Health = { is: 'syncing' }
  /** The stream that has just failed had been open for a decent time. */
  #lived = false

  constructor(client: Client, kind: Kind<T>, store: Store<T>, options: ReflectorOptions = {}) {
    this.#client = client
    this.#kind = kind
    this.#store = store
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#random = options.random ?? Math.random
    this.#appears = options.presence?.waiter()
    this.#state = initial(options.streaming ?? true)
  }

  get health(): Health {
    return this.#health
  }

  /** Goes on until the signal is aborted, then resolves. */
  async run(signal: AbortSignal): Promise<void> {
    let todo: Command<Live<T>> | undefined = this.#take({ is: 'started' })
    while (todo && !signal.aborted) {
      try {
        todo = await this.#do(todo, signal)
      } catch (error) {
        if (signal.aborted) return
        todo = this.#fail(error)
      }
    }
  }

  /** One step; carries out what concerns the store and returns what is to be asked of the server, if anything. */
  #take(happened: Happening<Live<T>>): Command<Live<T>> | undefined {
    const [state, commands] = step(this.#state, happened)
    this.#state = state
    let next: Command<Live<T>> | undefined
    let whole = false
    for (const command of commands) {
      switch (command.do) {
        case 'begin':
          this.#round = this.#store.round(this.#options.namespace, command.rolledBack)
          break
        case 'put':
          if (command.initial) this.#round?.put(command.object)
          else this.#store.put(command.object)
          break
        case 'remove':
          this.#store.remove(command.object)
          break
        case 'prune':
          this.#round?.prune(command.version)
          this.#round = undefined
          whole = true
          break
        default:
          next = command
      }
    }
    const isNews = happened.is === 'put' || happened.is === 'removed' || happened.is === 'bookmark'
    if (whole || (isNews && state.phase.at === 'Watching')) this.#become({ is: 'watching' })
    return next
  }

  async #do(command: Command<Live<T>>, signal: AbortSignal): Promise<Command<Live<T>> | undefined> {
    switch (command.do) {
      case 'list': {
        const { namespace, labels, fields, pageSize } = this.#options
        const page = await this.#client.page(this.#kind, {
          namespace,
          labels,
          fields,
          pageSize,
          continue: command.token,
          signal,
        })
        return this.#take({ is: 'page', items: page.items, version: page.resourceVersion, token: page.continue })
      }
      case 'check': {
        const { namespace, labels, fields } = this.#options
        const { resourceVersion } = await this.#client.page(this.#kind, {
          namespace,
          labels,
          fields,
          pageSize: 1,
          signal,
        })
        return this.#take({ is: 'checked', version: resourceVersion })
      }
      case 'stream':
        return this.#read({ sendInitialEvents: true }, signal)
      case 'watch':
        return this.#read({ resourceVersion: command.version }, signal)
      case 'wait':
        await sleep(
          this.#clock,
          delay(this.#options.backoff ?? { first: 200, longest: 30_000 }, command.failures, this.#random),
          signal,
        )
        return this.#take({ is: 'waited' })
      case 'park':
        this.#become({ is: 'absent' })
        // What is not served may still exist, in another version or behind a server that is confused for a moment.
        if (await this.#options.presence?.isGone(this.#kind, signal)) this.#store.clear(this.#options.namespace)
        await (this.#appears?.(this.#kind, signal) ?? sleep(this.#clock, 30_000, signal))
        return this.#take({ is: 'appeared' })
      default:
        return undefined
    }
  }

  /** Reads a stream to its end, or until a step asks for something else. */
  async #read(
    from: { sendInitialEvents?: boolean; resourceVersion?: string },
    signal: AbortSignal,
  ): Promise<Command<Live<T>> | undefined> {
    const { namespace, labels, fields, watchSeconds = 290 } = this.#options
    const opened = this.#clock.monotonic()
    const own = new AbortController()
    const end = () => own.abort(signal.reason)
    signal.addEventListener('abort', end, { once: true })
    const watchdog = this.#watchdog(own)
    let heard = false
    let accepted: number | undefined
    try {
      const batches = this.#client.watchBatches(this.#kind, {
        ...{ namespace, labels, fields, ...from, signal: own.signal, onActivity: watchdog.pat },
        onOpen: () => {
          accepted = this.#clock.monotonic()
          // A quiet collection brings no news for long; that the server watches it for us is news enough.
          if (this.#state.phase.at === 'Watching') this.#become({ is: 'watching' })
        },
        timeoutSeconds: Math.max(1, Math.round(watchSeconds * (0.9 + 0.2 * this.#random()))),
      })
      for await (const batch of batches) {
        heard = true
        for (const event of batch) {
          if (event.type === 'BOOKMARK' && !event.initialEventsEnd) watchdog.hasBookmarks = true
          const next = this.#take(happeningOf(event))
          if (next) return next
        }
      }
      const lived = this.#clock.monotonic() - opened
      return this.#take({ is: 'ended', idle: !heard && lived < decentLife })
    } catch (error) {
      this.#lived = accepted !== undefined && this.#clock.monotonic() - accepted >= decentLife
      throw watchdog.bit && !signal.aborted
        ? new Silence('Unavailable', this.#target(), watchdog.bit, { mayHaveActed: false })
        : error
    } finally {
      watchdog.stop()
      signal.removeEventListener('abort', end)
    }
  }

  /** Aborts `stream` after too long a silence. A pat costs no timer: the dog looks at the time when it wakes. */
  #watchdog(stream: AbortController) {
    const { silence, watchSeconds = 290 } = this.#options
    const clock = this.#clock
    const patience = () => {
      if (this.#state.phase.at === 'Streaming') return silence?.streaming ?? 15_000
      return dog.hasBookmarks ? (silence?.withBookmarks ?? 150_000) : (silence?.without ?? watchSeconds * 1100 + 15_000)
    }
    let last = clock.monotonic()
    const dog = {
      /** Why it bit; empty as long as it did not. */
      bit: '',
      hasBookmarks: false,
      pat: () => {
        last = clock.monotonic()
      },
      stop: () => timer.cancel(),
    }
    const look = () => {
      const left = last + patience() - clock.monotonic()
      if (left > 0) {
        timer = clock.after(Math.min(left, often), look)
        return
      }
      dog.bit = `nothing heard for ${Math.round((clock.monotonic() - last) / 1000)} s`
      stream.abort(new Error(dog.bit))
    }
    // Patience may shrink, when the first bookmark comes.
    const often = silence?.withBookmarks ?? 150_000
    let timer = clock.after(Math.min(patience(), often), look)
    return dog
  }

  #fail(error: unknown): Command<Live<T>> | undefined {
    const how = this.#classify(error)
    const todo = this.#take({ is: 'failed', how, lived: this.#lived })
    this.#lived = false
    if (how !== 'absent' && this.#state.phase.at === 'Waiting') {
      const since = this.#health.is === 'failing' ? this.#health.since : this.#clock.monotonic()
      const missingRule = error instanceof Forbidden ? ruleToRead(this.#kind) : undefined
      this.#become({ is: 'failing', since, failures: this.#state.failures, why: messageOf(error), missingRule })
    }
    return todo
  }

  #classify(error: unknown): (Happening<never> & { is: 'failed' })['how'] {
    if (error instanceof Expired) return 'expired'
    if ((error instanceof NotFound || error instanceof MethodNotAllowed) && isTheServers(error)) return 'absent'
    const streaming = this.#state.phase.at === 'Streaming'
    if (streaming && (error instanceof Invalid || error instanceof BadRequest || error instanceof Silence))
      return 'unsupported'
    return 'passing'
  }

  #become(health: Health): void {
    if (health.is === this.#health.is && health.is !== 'failing') return
    this.#health = health
    this.#options.onHealth?.(health)
  }

  #target() {
    return { verb: 'watch', group: this.#kind.group, resource: this.#kind.plural, namespace: this.#options.namespace }
  }
}

function happeningOf<T extends object>(event: WatchEvent<T>): Happening<Live<T>> {
  if (event.type === 'BOOKMARK') {
    return { is: 'bookmark', version: event.resourceVersion, endsInitial: event.initialEventsEnd }
  }
  const { object } = event
  return { is: event.type === 'DELETED' ? 'removed' : 'put', object, version: object.metadata.resourceVersion }
}

/** All that reading takes, as each refusal names one verb alone. */
function ruleToRead({ group, plural }: Kind): string {
  return `{apiGroups: ["${group}"], resources: ["${plural}"], verbs: ["get", "list", "watch"]}`
}

/** Whether the API server itself says that there is no such thing; a page of a proxy's must not empty the copy. */
function isTheServers({ answer }: KubeError): boolean {
  return answer.kind === 'Status' || answer.message === '404 page not found'
}
