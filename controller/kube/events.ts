/**
 * Events about objects (events.k8s.io/v1), for people to read with kubectl.
 *
 * Guarantees: recording never throws and never waits. What repeats is one Event with a count, written at most every `coalesce`, then ever more
 * rarely. An object costs `burst` writes and then one per `refill`, whatever happens to it. Memory is bounded, and what is dropped is counted.
 * With nothing to say there is no timer and no request.
 */
import { hostname } from 'node:os'
import type { EventsV1Event } from '@kubernetes/client-node'
import type { BaseLogger } from 'pino'
import { delay } from '../../shared/backoff.ts'
import { type Clock, sleep, systemClock, type Timer } from '../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import type { Client } from './client.ts'
import { AlreadyExists, NotFound } from './errors.ts'
import type { Draft } from './kind.ts'
import { Event } from './kinds.ts'
import { microTime } from './lease.ts'

export interface EventRecorderOptions {
  /** Who reports: a name, or a name with a domain before it (`example.com/thing`). */
  readonly component: string
  /** Which of its processes. Default: the component and the host's name. */
  readonly instance?: string | undefined
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
  readonly log?: Pick<BaseLogger, 'debug' | 'warn'> | undefined
  /** Writes that an object may have at once. Default 25. */
  readonly burst?: number | undefined
  /** After how many milliseconds it may have one more. Default 300,000. */
  readonly refill?: number | undefined
  /** The least time between two writes of the same Event, in milliseconds; it doubles while that repeats, up to 20 times. Default 30,000. */
  readonly coalesce?: number | undefined
  /** How many Events may wait to be written. Default 1,000. */
  readonly capacity?: number | undefined
  /** How many Events, and objects, are remembered, the latest. One that is forgotten and repeats is a new one. Default 4,096. */
  readonly memory?: number | undefined
}

/** What an event is about: any object, live or not. */
export interface Regarded {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name?: string | undefined
    readonly namespace?: string | undefined
    readonly uid?: string | undefined
    readonly resourceVersion?: string | undefined
  }
}

export interface Happening {
  readonly type: 'Normal' | 'Warning'
  /** One word in CamelCase, for programs: why. */
  readonly reason: string
  /** One word in CamelCase: what was done, or was to be. */
  readonly action: string
  /** A sentence for a person. Cut at 1,024 bytes. */
  readonly note: string
  /** Another object that has to do with it. */
  readonly related?: Regarded | undefined
}

/** Why something was dropped: too much about one object, too much at all, refused by the server, no server, or stopped. */
export type Dropped = 'limited' | 'full' | 'refused' | 'failed' | 'stopped'

export interface EventRecorder {
  /** Notes that something happened. The same thing of the same object, note included, is counted rather than said again. */
  record(object: Regarded, happening: Happening): void
  /** Writes all that waits, counts included. Resolves when that is done, or `signal` is aborted; never rejects. */
  flush(signal?: AbortSignal): Promise<void>
  /** Drops what waits and writes nothing more. To lose nothing, flush before. */
  stop(): void
  /** How many were recorded, how many writes that made, and how many were dropped and why. */
  stats(): { readonly recorded: number; readonly written: number; readonly dropped: Readonly<Record<Dropped, number>> }
}

type Reference = NonNullable<Draft<EventsV1Event>['regarding']>

/** What happened once or more. */
interface Series {
  readonly key: string
  readonly object: string
  readonly event: Omit<Draft<EventsV1Event>, 'metadata' | 'eventTime' | 'series'> & { regarding: Reference }
  /** Of the Event on the server, or to be there. */
  name: string
  first: number
  last: number
  count: number
  /** How often, as far as the server knows; 0 if it has no Event yet. */
  written: number
  /** When that was, on the monotonic clock, and how long no other write follows. */
  wroteAt: number
  interval: number
  /** When it wants to be written. */
  due: number
  tries: number
}

interface Bucket {
  readonly tokens: number
  readonly at: number
}

const tries = 6
const backoff = { first: 1_000, longest: 30_000 }
/** Milliseconds for one write. */
const deadline = 10_000

export function createEventRecorder(client: Client, options: EventRecorderOptions): EventRecorder {
  const { burst = 25, refill = 300_000, coalesce = 30_000, capacity = 1_000, memory = 4_096 } = options
  const { component, clock = systemClock, random = Math.random, log } = options
  const longest = 20 * coalesce
  const instance = cut(options.instance ?? `${component}-${hostname()}`, 128)
  let serial = 0
  const known = new Map<string, Series>()
  const buckets = new Map<string, Bucket>()
  /** To be written now, in this order. */
  const queue = new Set<Series>()
  /** Repeated, and to be written when that is due. */
  const waiting = new Set<Series>()
  const stopping = new AbortController()
  let timer: Timer | undefined
  let pumping = false
  let failures = 0
  let idle = Promise.withResolvers<void>()
  let recorded = 0
  let written = 0
  const dropped: Record<Dropped, number> = { limited: 0, full: 0, refused: 0, failed: 0, stopped: 0 }

  function drop(why: Dropped, count: number, what: object, error?: unknown) {
    dropped[why] += count
    log?.debug({ ...what, why, ...(error !== undefined && { error: messageOf(error) }) }, 'an event was dropped')
  }

  function forget(series: Series) {
    if (known.get(series.key) === series) known.delete(series.key)
    waiting.delete(series)
    queue.delete(series)
  }

  /** Takes a token of `object`, unless fewer than `reserve` would be left: then when there will be more. */
  function spend(object: string, reserve: number): number | undefined {
    const now = clock.monotonic()
    const { tokens, at } = buckets.get(object) ?? { tokens: burst, at: now }
    const full = Math.min(burst, tokens + (now - at) / refill)
    const missing = 1 + reserve - full
    remember(buckets, object, { tokens: missing > 0 ? full : full - 1, at: now }, memory)
    return missing > 0 ? now + Math.ceil(missing * refill) : undefined
  }

  function record(object: Regarded, happening: Happening) {
    const regarding = referenceTo(object)
    const event = {
      regarding,
      ...(happening.related && { related: referenceTo(happening.related) }),
      type: happening.type,
      reason: cut(happening.reason, 128),
      action: cut(happening.action, 128),
      note: shortened(happening.note),
      reportingController: component,
      reportingInstance: instance,
    }
    if (stopping.signal.aborted) return drop('stopped', 1, event)
    const id = regarding.uid || [object.apiVersion, object.kind, regarding.namespace, regarding.name].join('/')
    const other = event.related?.uid ?? event.related?.name
    const key = [id, event.type, event.reason, event.action, other, event.note].join('\n')
    const series = known.get(key)
    if (series) return repeat(series)
    if (queue.size >= capacity) return drop('full', 1, event)
    if (spend(id, 0) !== undefined) return drop('limited', 1, event)
    begin(key, id, event)
  }

  function begin(key: string, object: string, event: Series['event']) {
    const now = clock.now()
    const name = eventName(event.regarding.name, now, serial++, random)
    const unwritten = { count: 1, written: 0, wroteAt: 0, interval: coalesce, due: 0, tries: 0 }
    const series: Series = { key, object, event, name, first: now, last: now, ...unwritten }
    const forgotten = remember(known, key, series, memory)
    // One that is on its way is still written; counts that merely wait are not.
    if (forgotten && waiting.delete(forgotten)) drop('full', forgotten.count - forgotten.written, forgotten.event)
    enqueue(series)
  }

  function repeat(series: Series) {
    remember(known, series.key, series, memory)
    series.count++
    series.last = clock.now()
    if (!queue.has(series) && !waiting.has(series)) wait(series)
  }

  /** Has repetitions written when they are due. */
  function wait(series: Series) {
    const now = clock.monotonic()
    if (now - series.wroteAt > longest) series.interval = coalesce
    series.due = series.wroteAt + series.interval
    waiting.add(series)
    wake()
  }

  /** Puts what is due into the queue, and sets the timer for the next. */
  function wake() {
    timer?.cancel()
    timer = undefined
    const now = clock.monotonic()
    let next = Number.POSITIVE_INFINITY
    for (const series of waiting) {
      if (series.due <= now) {
        // One token stays for what is new: a thing that repeats for ever shall not silence the rest.
        const later = queue.size < capacity ? spend(series.object, 1) : now + coalesce
        if (later === undefined) {
          waiting.delete(series)
          enqueue(series)
          continue
        }
        series.due = later
      }
      next = Math.min(next, series.due)
    }
    if (next < Number.POSITIVE_INFINITY) timer = clock.after(Math.ceil(next - now), wake)
  }

  function enqueue(series: Series) {
    queue.add(series)
    if (pumping) return
    pumping = true
    idle = Promise.withResolvers()
    // Not now: who records does not even wait for a request to be put together.
    queueMicrotask(() => void pump())
  }

  async function pump() {
    for (const series of queue) {
      try {
        const count = await write(series)
        written++
        if (stopping.signal.aborted) break
        failures = 0
        Object.assign(series, { written: count, wroteAt: clock.monotonic(), tries: 0 })
        queue.delete(series)
        if (series.count > count) wait(series)
      } catch (error) {
        if (stopping.signal.aborted) break
        await fail(series, error)
      }
    }
    pumping = false
    idle.resolve()
  }

  /** Drops what cannot be written; puts what may be later to the end of the queue, and rests. */
  async function fail(series: Series, error: unknown) {
    const passes = error instanceof ShipmateError && error.retry !== 'never' && !final.has(error.code)
    if (passes && ++series.tries < tries) {
      failures++
      const words = 'events cannot be written for now'
      log?.[failures === 1 ? 'warn' : 'debug']({ error: messageOf(error), waiting: queue.size }, words)
      queue.delete(series)
      queue.add(series)
      return sleep(clock, delay(backoff, failures, random), stopping.signal).catch(() => {})
    }
    forget(series)
    drop(passes ? 'failed' : 'refused', series.count - series.written, series.event, error)
    if (error instanceof ShipmateError && ['Invalid', 'BadRequest'].includes(error.code)) {
      log?.warn({ error: messageOf(error) }, 'the server does not take an event for one')
    }
  }

  /** How often it happened, as the server now knows. */
  async function write(series: Series): Promise<number> {
    const call = { signal: stopping.signal, deadline }
    const namespace = series.event.regarding.namespace ?? 'default'
    if (series.written > 0) {
      const { count } = series
      try {
        await client.patch(Event, { namespace, name: series.name }, { merge: { series: seriesOf(series) } }, call)
        series.interval = Math.min(2 * series.interval, longest)
        return count
      } catch (error) {
        if (!(error instanceof NotFound)) throw error
        // The server keeps events for an hour or so. What happened since is a new one.
        series.first = series.last
        series.name = eventName(series.event.regarding.name, series.first, serial++, random)
        series.count -= series.written
        series.written = 0
      }
    }
    const { count } = series
    const repeated = count > 1 && { series: seriesOf(series) }
    const event = {
      ...series.event,
      ...repeated,
      metadata: { namespace, name: series.name },
      eventTime: microTime(series.first),
    }
    try {
      await client.create(Event, event, call)
    } catch (error) {
      // The name is ours alone: an earlier try came through, and only its answer was lost.
      if (!(error instanceof AlreadyExists)) throw error
    }
    return count
  }

  return {
    record(object, happening) {
      recorded++
      try {
        record(object, happening)
      } catch (error) {
        drop('refused', 1, {}, error)
      }
    },
    async flush(signal) {
      for (const series of waiting) enqueue(series)
      waiting.clear()
      wake()
      if (!pumping || signal?.aborted) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const aborted = () => resolve()
      signal?.addEventListener('abort', aborted, { once: true })
      await Promise.race([idle.promise, promise])
      signal?.removeEventListener('abort', aborted)
    },
    stop() {
      if (stopping.signal.aborted) return
      stopping.abort()
      timer?.cancel()
      for (const series of [...queue, ...waiting]) drop('stopped', series.count - series.written, series.event)
      for (const all of [queue, waiting, known, buckets]) all.clear()
      idle.resolve()
    },
    stats: () => ({ recorded, written, dropped: { ...dropped } }),
  }
}

/** Codes that no waiting mends: a namespace that is going, a right that is missing, a replica that does not lead. */
const final: ReadonlySet<string> = new Set(['Forbidden', 'NotLeading'])

function seriesOf({ count, last }: Series) {
  return { count, lastObservedTime: microTime(last) }
}

function referenceTo({ apiVersion, kind, metadata }: Regarded): Reference {
  const { name = '', namespace, uid, resourceVersion } = metadata
  return {
    apiVersion,
    kind,
    name,
    ...(namespace && { namespace }),
    ...(uid && { uid }),
    ...(resourceVersion && { resourceVersion }),
  }
}

/**
 * `NAME.HEX`, at most 253 characters. Names of some kinds (roles) may have characters that an Event's may not.
 * An object's are in the order of their time, which is the one that `kubectl describe` shows them in.
 * @param at in milliseconds @param serial tells those of one millisecond apart
 */
export function eventName(name: string | undefined, at: number, serial: number, random: () => number): string {
  const hex = (number: number, digits: number) =>
    Math.floor(number % 16 ** digits)
      .toString(16)
      .padStart(digits, '0')
  const labels = (name ?? '').toLowerCase().slice(0, 229).split('.')
  const valid = labels
    .map(label => label.replace(/[^a-z0-9-]+/g, '-').replace(/^-+|-+$/g, ''))
    .filter(label => label !== '')
  return [...valid, hex(at, 11) + hex(serial, 4) + hex(random() * 2 ** 32, 8)].join('.')
}

/** As much of a text as fits into so many bytes, without half a character. */
export function cut(text: string, bytes: number): string {
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(bytes)).read)
}

function shortened(note: string): string {
  const whole = cut(note, 1024)
  return whole === note ? note : `${cut(note, 1024 - 3)}…`
}

/** Makes `key` the latest of a map that keeps `limit`; what it forgot for that. */
function remember<V>(map: Map<string, V>, key: string, value: V, limit: number): V | undefined {
  map.delete(key)
  map.set(key, value)
  if (map.size <= limit) return undefined
  const [oldest, forgotten] = map.entries().next().value as [string, V]
  map.delete(oldest)
  return forgotten
}
