/**
 * The line between an operator and the API server: what it asks is written down, and what a test wishes to go wrong goes wrong here.
 *
 * Guarantees: after `cut` nothing that the process sends reaches the server, and no answer reaches the process, whatever it does: it is dead. A request is
 * counted when it is sent; watches are not requests, but their events are counted.
 */
import { errorOf, Forbidden } from '../../controller/kube/errors.ts'
import { describeTarget, type Interceptor, type Request, type Response } from '../../controller/kube/transport.ts'
import type { Refusal } from './rule.ts'

/** A request of the operator that was answered. */
export interface Asked {
  readonly text: string
  readonly isWrite: boolean
  /** Whether it is the operator's own housekeeping: its lease, its events. */
  readonly isAside: boolean
  readonly status: number
}

/** What goes wrong. Each is asked with the number of the request or event, from 1, over all processes of a run. */
export interface Weather {
  /** Whether the process dies before a request has reached the server. */
  diesBefore?(number: number, request: Request): boolean
  /** The same when the server has answered, before that is heard. */
  diesAfter?(number: number, request: Request): boolean
  /** Called when a request has been answered; the operator hears of it when this has resolved. */
  onAnswer?(number: number, request: Request, response: Response): Promise<void> | void
  /** A request in another one's stead: of an older state. */
  instead?: ((request: Request) => Request) | undefined
  /** Whether the operator does not hear of an event, and of none that comes after it on that watch. */
  isDeaf?(number: number): boolean
  /** What a watch waits for before its first event. */
  held?: Promise<void> | undefined
  /** Ends the watches that are open when it resolves with "too old", so that all is listed anew. */
  expired?: Promise<void> | undefined
}

/** Counts go on from one process to the next. */
export interface Ledger {
  requests: number
  events: number
  readonly asked: Asked[]
  readonly refusals: Map<string, Refusal>
  /** Requests under way. */
  busy: number
}

export const newLedger = (): Ledger => ({ requests: 0, events: 0, asked: [], refusals: new Map(), busy: 0 })

export interface Line {
  readonly interceptor: Interceptor
  /** The process is dead. */
  cut(): void
  readonly isCut: boolean
}

export function createLine(user: string, ledger: Ledger, weather: Weather, onDeath: () => void): Line {
  const dead = new AbortController()
  let isCut = false
  const never = new Promise<never>(() => undefined)

  async function exchange(request: Request, next: (request: Request) => Promise<Response>): Promise<Response> {
    if (isCut) return never
    if (request.stream) return watched(request, next)
    const number = ++ledger.requests
    if (weather.diesBefore?.(number, request)) return death()
    ledger.busy++
    try {
      const response = await next(weather.instead?.(request) ?? request)
      note(request, response)
      if (isCut) return never
      if (weather.diesAfter?.(number, request)) return death()
      await weather.onAnswer?.(number, request, response)
      return isCut ? never : response
    } catch (error) {
      if (isCut) return never
      throw error
    } finally {
      ledger.busy--
    }
  }

  function cut(): void {
    isCut = true
    dead.abort()
  }

  function death(): Promise<never> {
    cut()
    onDeath()
    return never
  }

  async function watched(request: Request, next: (request: Request) => Promise<Response>): Promise<Response> {
    // The server is to know that nobody listens any more.
    const signal = request.signal ? AbortSignal.any([request.signal, dead.signal]) : dead.signal
    const response = await next({ ...request, signal }).catch(error => (isCut ? never : Promise.reject(error)))
    if (isCut) return never
    if (!response.chunks) note(request, response)
    return response.chunks ? { ...response, chunks: events(response.chunks, request.signal) } : response
  }

  async function* events(
    chunks: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const { held, expired } = weather
    if (held) await Promise.race([held, aborted(signal)])
    const source = chunks[Symbol.asyncIterator]()
    const end = expired?.then(() => 'expired' as const)
    // Characters may be split between pieces.
    const text = new TextDecoder()
    let rest = ''
    try {
      for (;;) {
        const next = source.next().catch(error => (isCut ? never : Promise.reject(error)))
        const piece = await (end ? Promise.race([next, end]) : next)
        if (isCut) return await never
        if (piece === 'expired') {
          yield Buffer.from(tooOld)
          return
        }
        if (piece.done) return
        const lines = `${rest}${text.decode(piece.value, { stream: true })}`.split('\n')
        rest = lines.pop() ?? ''
        const passed = lines.filter(line => {
          // A bookmark would say that nothing was missed.
          const number = line.startsWith('{"type":"BOOKMARK"') ? ledger.events : ++ledger.events
          return !weather.isDeaf?.(number)
        })
        if (passed.length > 0) yield Buffer.from(`${passed.join('\n')}\n`)
      }
    } finally {
      // Not waited for: a source that waits for its next event ends by its signal.
      void source.return?.()
    }
  }

  function note(request: Request, response: Response): void {
    const { verb, resource } = request.target
    ledger.asked.push({
      text: describeTarget(request.target),
      isWrite: !['get', 'list', 'watch'].includes(verb),
      isAside: resource === 'leases' || resource === 'events',
      status: response.status,
    })
    if (response.status !== 403) return
    const error = errorOf(request, response)
    if (!(error instanceof Forbidden) || !/ cannot \w+ /.test(error.message)) return
    const what = describeTarget({ ...request.target, verb: error.rule.verbs[0] ?? verb })
    const key = JSON.stringify(error.rule)
    ledger.refusals.set(key, { user, what, rule: error.rule, count: (ledger.refusals.get(key)?.count ?? 0) + 1 })
  }

  return {
    interceptor: next => request => exchange(request, next),
    cut,
    get isCut() {
      return isCut
    },
  }
}

const tooOld = `${JSON.stringify({
  type: 'ERROR',
  object: {
    ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' },
    ...{ message: 'too old resource version', reason: 'Expired', code: 410 },
  },
})}\n`

function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => {
    if (signal?.aborted) resolve()
    else signal?.addEventListener('abort', () => resolve(), { once: true })
  })
}
