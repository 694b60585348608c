/**
 * One leader among several processes, by a Lease.
 *
 * Guarantees: who leads stops before anyone else can begin: its signal is aborted and its gate shuts `renewDeadline` after the start of its
 * last successful renewal, and the others wait `leaseDuration` from when they saw that one. Clocks may differ and jump; a process that was
 * stopped or suspended knows when it wakes, before its timers do. Losing the lease is no end: it is contested again. Every write is by
 * version, and a stop hands the lease over at once.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { BaseLogger } from 'pino'
import { type Clock, sleep, systemClock, type Timer } from '../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import type { CallOptions, Client } from './client.ts'
import { AlreadyExists, Conflict, NotFound } from './errors.ts'
import { createGate, NotLeading } from './gate.ts'
import { keyOf } from './kind.ts'
import { Lease } from './kinds.ts'
import { claimed, decide, type Observation, observe, released, unseen } from './lease.ts'
import type { Interceptor } from './transport.ts'

export interface ElectionOptions {
  /** The Lease's name: who contests the same one are one another's rivals. */
  readonly name: string
  /** Default: the client's. */
  readonly namespace?: string | undefined
  /** Who we are; no two processes may be the same. Default: the host's name and a random part. */
  readonly identity?: string | undefined
  /** How long the others wait after a renewal that was the last, in milliseconds. Default 15,000. */
  readonly leaseDuration?: number | undefined
  /** How long we lead after the start of a renewal, in milliseconds. The rest of `leaseDuration` is for the work to stop. Default 10,000. */
  readonly renewDeadline?: number | undefined
  /** Between renewals, and between looks at another's lease, in milliseconds; up to a fifth is added at random. Default 2,000. */
  readonly retryPeriod?: number | undefined
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
  readonly log?: Pick<BaseLogger, 'debug' | 'info' | 'warn'> | undefined
  /** Called when we begin or cease to lead, and when another holder is seen. */
  readonly onChange?: ((now: Standing) => void) | undefined
}

export interface Standing {
  /** Whether we lead. */
  readonly leading: boolean
  /** Who holds the lease, as last seen. */
  readonly leader: string | undefined
}

/** What is done by who leads. */
export type Lead = (signal: AbortSignal) => Promise<void>

export interface Election {
  readonly identity: string
  /**
   * Contests the lease and calls `lead` each time it is ours, until `signal` is aborted, or `lead` ends by itself (what it throws is thrown).
   * The signal that `lead` gets is aborted with NotLeading when the lease is lost, with the reason of `signal` on a stop. Either way it is
   * waited for; on a stop the lease is kept until then, and then released.
   */
  run(lead: Lead, signal: AbortSignal): Promise<void>
  /** Whether we lead at this very moment, by the clocks and not by a timer. A lease that turns out to have run out is lost at once. */
  isLeading(): boolean
  /**
   * Refuses every write (all but GET) while we do not lead, with NotLeading, and abandons those under way when the lease is lost. Its place is
   * inside of `retry`, so that every try is checked. What any replica may write (reviews, events) needs a client without it.
   */
  gate(): Interceptor
  /** Who holds the lease, as last seen. */
  leader(): string | undefined
  /** Since when we contest the lease in vain, in milliseconds since the epoch; undefined while we lead or do not run. */
  waitingSince(): number | undefined
}

/** Both clocks at one moment. The monotonic one may stand still while a machine sleeps, the other may jump: the larger difference counts. */
interface Moment {
  readonly monotonic: number
  readonly wall: number
}

/** What the calls of one try have in common. */
interface Try extends CallOptions {
  readonly signal: AbortSignal
  /** Ends the try, but never a write: whether that one was done would be unknown. */
  readonly stop: AbortSignal | undefined
  /** A write is under way. */
  writing: boolean
}

type Draft = ReturnType<typeof claimed>

/** Codes with which work that was told to stop may end. */
const endings = { Aborted: true, NotLeading: true }

/** The client may retry and have deadlines as it likes: a try is given up in time for another one, whatever the client does. */
export function createElection(client: Client, options: ElectionOptions): Election {
  const { leaseDuration = 15_000, renewDeadline = 10_000, retryPeriod = 2_000 } = options
  const { clock = systemClock, random = Math.random, log, onChange } = options
  const identity = options.identity ?? `${hostname()}_${randomUUID()}`
  const place = { name: options.name, namespace: options.namespace ?? client.namespace }
  const title = `lease ${keyOf(place)}`
  if (identity === '') throw new ShipmateError('Misuse', 'the identity in an election must not be empty', 'never')
  if (!(leaseDuration > renewDeadline && renewDeadline > 1.2 * retryPeriod && retryPeriod > 0)) {
    const given = `${leaseDuration}, ${renewDeadline} and ${retryPeriod}`
    throw new ShipmateError(
      'Misuse',
      `leaseDuration > renewDeadline > 1.2 × retryPeriod > 0 must hold, not ${given}`,
      'never',
    )
  }
  /** A try takes half of the time at most, so that a dead connection leaves time for another. */
  const patience = renewDeadline / 2

  let seen = unseen
  /** Whether the lease may be other than `seen`. */
  let stale = true
  /** Whether this run has written, so that the lease may be ours whatever we have seen. */
  let wrote = false
  let running = false
  let waiting: number | undefined
  /** The start of the last successful renewal; undefined while we do not lead. */
  let held: Moment | undefined
  let expiry: Timer | undefined
  /** Ends the work of this term. */
  let endTerm: ((why: NotLeading) => void) | undefined
  let told: Standing = { leading: false, leader: undefined }
  let complaint: string | undefined

  const leader = () => seen.holder || undefined
  const period = () => retryPeriod * (1 + 0.2 * random())
  const gate = createGate({
    isLeading,
    passes: to =>
      to.group === Lease.group && to.resource === Lease.plural && keyOf(place) === `${to.namespace}/${to.name}`,
    why: () => `${leader() ?? 'nobody'} holds ${title}`,
  })

  function remaining(): number {
    if (!held) return 0
    return renewDeadline - Math.max(clock.monotonic() - held.monotonic, clock.now() - held.wall)
  }

  function isLeading(): boolean {
    if (!held) return false
    if (remaining() > 0) return true
    lose(`it was not renewed within ${renewDeadline} ms`)
    return false
  }

  function lose(words: string) {
    if (!held) return
    const why = new NotLeading(`${title} is lost: ${words}`)
    log?.warn({ identity }, why.message)
    shut(why)
    endTerm?.(why)
    tell()
  }

  /** From here on nothing is written any more. */
  function shut(why: NotLeading) {
    held = undefined
    expiry?.cancel()
    gate.abandon(why)
  }

  function tell() {
    const now = { leading: held !== undefined, leader: leader() }
    if (now.leading === told.leading && now.leader === told.leader) return
    told = now
    try {
      onChange?.(now)
    } catch (error) {
      log?.warn({ error: messageOf(error) }, `${title}: onChange failed`)
    }
  }

  /** Says an error once, not with every try. */
  function complain(error: unknown) {
    const words = messageOf(error)
    log?.[words === complaint ? 'debug' : 'warn']({ error: words }, `${title} could not be read or written`)
    complaint = words
  }

  function take(lease: Observation['lease']) {
    if (lease && !(lease.metadata?.uid && lease.metadata.resourceVersion)) {
      throw new ShipmateError('Garbled', `${title}: the answer is no Lease`, 'later')
    }
    seen = observe(seen, lease, clock.monotonic(), leaseDuration)
    stale = false
    complaint = undefined
    tell()
  }

  async function read(call: Try) {
    const lease = await client.find(Lease, place, call)
    call.signal.throwIfAborted()
    take(lease)
  }

  async function write(lease: Draft, call: Try) {
    stale = true
    wrote = true
    call.writing = true
    try {
      const answer = seen.lease ? await client.update(Lease, lease, call) : await client.create(Lease, lease, call)
      call.signal.throwIfAborted()
      take(answer)
    } finally {
      call.writing = false
    }
  }

  /** Writes what `change` makes of the lease, made anew when somebody else was faster. When the write was begun; undefined: no change. */
  async function settle(change: (now: Moment) => Draft | undefined, call: Try): Promise<Moment | undefined> {
    for (let round = 1; ; round++) {
      call.stop?.throwIfAborted()
      if (stale) await read(call)
      const now = { monotonic: clock.monotonic(), wall: clock.now() }
      const lease = change(now)
      if (!lease) return undefined
      try {
        await write(lease, call)
        return now
      } catch (error) {
        const isOutdated = error instanceof Conflict || error instanceof AlreadyExists
        const isGone = error instanceof NotFound && seen.lease
        if (!(isOutdated || isGone) || round === 3) throw error
        call.signal.throwIfAborted()
      }
    }
  }

  /** Takes or keeps the lease if we may. When the write that did it was begun; undefined if somebody else has it. */
  function claim(call: Try): Promise<Moment | undefined> {
    return settle(now => {
      if (decide(seen, identity, now.monotonic).do === 'wait') return undefined
      return claimed(seen, identity, place, leaseDuration, now.wall)
    }, call)
  }

  /** Gives `run` up after `ms`, whatever the client does. */
  async function bounded<T>(ms: number, run: (call: Try) => Promise<T>, stop?: AbortSignal): Promise<T> {
    const control = new AbortController()
    const call: Try = { signal: control.signal, deadline: ms, stop, writing: false }
    const ended = new Promise<never>((_, reject) => {
      control.signal.addEventListener('abort', () => reject(control.signal.reason), { once: true })
    })
    const timer = clock.after(ms, () => {
      control.abort(new ShipmateError('DeadlineExceeded', `${title}: no complete answer within ${ms} ms`, 'later'))
    })
    const onStop = () => call.writing || control.abort(stop?.reason)
    stop?.addEventListener('abort', onStop, { once: true })
    try {
      return await Promise.race([ended, run(call)])
    } finally {
      timer.cancel()
      stop?.removeEventListener('abort', onStop)
    }
  }

  /** Until we lead, or are to stop. */
  async function contest(stop: AbortSignal) {
    waiting = clock.now()
    while (!stop.aborted) {
      stale = true
      try {
        held = await bounded(patience, claim, stop)
        // An answer that took too long is a lease that may be gone.
        if (remaining() > 0) break
        held = undefined
      } catch (error) {
        if (!stop.aborted) complain(error)
      }
      const free = seen.freeAt - clock.monotonic()
      await sleep(clock, free > 0 ? Math.min(period(), free) : period(), stop).catch(() => {})
    }
    waiting = undefined
  }

  function arm() {
    expiry?.cancel()
    expiry = clock.after(Math.ceil(Math.max(remaining(), 0)), () => {
      if (isLeading()) arm()
    })
  }

  /** Keeps the lease until `over` is aborted or it is lost. */
  async function renew(over: AbortSignal) {
    for (let last = clock.monotonic(); ; ) {
      // From try to try, not from answer to try: the longer one was in vain, the sooner the next is due.
      await sleep(clock, Math.max(last + period() - clock.monotonic(), retryPeriod / 4), over).catch(() => {})
      if (over.aborted || !isLeading()) return
      last = clock.monotonic()
      try {
        const renewed = await bounded(Math.min(patience, Math.max(remaining() - 1, 0)), claim)
        if (!held) return
        if (!renewed) return lose(`${leader()} holds it`)
        held = renewed
        arm()
      } catch (error) {
        complain(error)
      }
    }
  }

  /** One term. Whether `lead` ended by itself. */
  async function term(lead: Lead, stop: AbortSignal): Promise<boolean> {
    const work = new AbortController()
    const over = new AbortController()
    endTerm = why => {
      over.abort()
      work.abort(why)
    }
    const onStop = () => work.abort(stop.reason)
    stop.addEventListener('abort', onStop, { once: true })
    arm()
    log?.info({ identity }, `${title} is ours`)
    tell()
    const renewing = renew(over.signal)
    try {
      await lead(work.signal)
    } catch (error) {
      if (!work.signal.aborted) throw error
      if (error !== work.signal.reason && !(error instanceof ShipmateError && error.code in endings)) {
        log?.warn({ error: messageOf(error) }, `${title}: the work that was to stop ended with an error`)
      }
    } finally {
      stop.removeEventListener('abort', onStop)
      endTerm = undefined
      over.abort()
      await renewing
    }
    return !work.signal.aborted
  }

  async function release() {
    shut(new NotLeading(`${title} is being released`))
    const mayBeOurs = wrote && (stale || seen.holder === identity)
    wrote = false
    if (mayBeOurs) {
      const ours = () => (seen.holder === identity ? seen.lease : undefined)
      try {
        const done = await bounded(patience, call => settle(now => released(ours(), now.wall), call))
        if (done) log?.info({ identity }, `${title} is released`)
      } catch (error) {
        log?.warn({ error: messageOf(error) }, `${title} could not be released: a successor waits until it runs out`)
      }
    }
    tell()
  }

  return {
    identity,
    async run(lead, signal) {
      if (running) throw new ShipmateError('Misuse', `the election by ${title} runs already`, 'never')
      running = true
      try {
        while (!signal.aborted) {
          await contest(signal)
          if (held && !signal.aborted && (await term(lead, signal))) return
        }
      } finally {
        await release()
        running = false
      }
    },
    isLeading,
    gate: () => gate.interceptor,
    leader,
    waitingSince: () => waiting,
  }
}
