/**
 * Tells when a kind that is not served may be served: its CRD came, or changed; and whether its objects are gone for good.
 *
 * Guarantees: who waits for a kind has one idle watch on that one CRD and does not poll, where CRDs may be watched; else, and as a safety
 * net for kinds that no CRD defines, it says "try again" from time to time. Objects are gone for good only when their CRD is known to be:
 * a version that is no longer served, or an answer that does not come from the API server, is no reason to forget them.
 */
import { type Backoff, delay } from '../../shared/backoff.ts'
import { type Clock, sleep, systemClock } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Client } from './client.ts'
import { Forbidden, NotFound } from './errors.ts'
import { type Kind, resourceOf } from './kind.ts'
import { CustomResourceDefinition } from './kinds.ts'

export interface PresenceOptions {
  /** Between tries where CRDs may not be watched, in milliseconds. Default 30,000. */
  readonly poll?: number | undefined
  /** Between tries all the same, in milliseconds. Default 300,000. */
  readonly safetyNet?: number | undefined
  readonly clock?: Clock | undefined
  readonly random?: (() => number) | undefined
  /** Something that a person may want to know: CRDs cannot be watched. */
  readonly onNotice?: ((message: string) => void) | undefined
}

export interface Presence {
  /** Resolves when it is worth asking for the kind again; rejects only when the signal is aborted. One for each who waits. */
  waiter(): (kind: Kind, signal: AbortSignal) => Promise<void>
  /** Whether the kind's CRD does not exist, so that none of its objects can. False where that is not known. */
  isGone(kind: Kind, signal: AbortSignal): Promise<boolean>
}

/** A CRD that is there is served a moment later, and its last change may already have been seen. */
const soon: Backoff = { first: 100, longest: 300_000, jitter: 0 }
/** Where a watch brings nothing. */
const again: Backoff = { first: 1000, longest: 60_000 }

/** Whether the server's own list of what it serves has the kind; true where that is not known. */
async function isServed(client: Client, kind: Kind, signal: AbortSignal): Promise<boolean> {
  try {
    const { text } = await client.raw(`/apis/${kind.group}`, { signal })
    const { kind: answer, versions } = JSON.parse(text) as { kind?: string; versions?: { version: string }[] }
    return answer !== 'APIGroup' || (versions ?? []).some(({ version }) => version === kind.version)
  } catch (error) {
    if (signal.aborted) throw error
    return !(error instanceof NotFound)
  }
}

export function createPresence(client: Client, options: PresenceOptions = {}): Presence {
  const { poll = 30_000, safetyNet = 300_000, clock = systemClock, random = Math.random } = options
  /** Until when CRDs are not watched, since that was refused. */
  let refusedUntil = Number.NEGATIVE_INFINITY

  function refused(error: Forbidden) {
    if (refusedUntil === Number.NEGATIVE_INFINITY) {
      options.onNotice?.(`${messageOf(error)}: absent kinds are asked for every ${poll / 1000} s instead`)
    }
    refusedUntil = clock.monotonic() + safetyNet
  }

  function waiter() {
    /** The version of the CRD that was there when the kind was not: it has been tried. */
    let tried: { version: string; times: number } | undefined
    let fruitless = 0

    return async (kind: Kind, signal: AbortSignal): Promise<void> => {
      if (clock.monotonic() < refusedUntil) return sleep(clock, poll, signal)
      const before = tried
      const own = new AbortController()
      const end = () => own.abort(signal.reason)
      signal.addEventListener('abort', end, { once: true })
      const longest = before ? Math.min(delay(soon, before.times + 1, random), safetyNet) : safetyNet
      const timer = clock.after(longest, () => own.abort('tried often enough'))
      try {
        const fields = `metadata.name=${resourceOf(kind)}`
        const watch = { fields, metadataOnly: true, signal: own.signal }
        for await (const event of client.watch(CustomResourceDefinition, watch)) {
          fruitless = 0
          if (event.type === 'BOOKMARK') continue
          if (event.type === 'DELETED') {
            tried = undefined
            continue
          }
          const version = event.object.metadata.resourceVersion
          if (tried?.version === version) continue
          tried = { version, times: 0 }
          return
        }
      } catch (error) {
        if (signal.aborted) throw error
        if (error instanceof Forbidden) refused(error)
      } finally {
        timer.cancel()
        signal.removeEventListener('abort', end)
      }
      if (before && tried === before) tried = { ...before, times: before.times + 1 }
      if (own.signal.aborted) return
      fruitless++
      await sleep(clock, delay(again, fruitless, random), signal)
    }
  }

  return {
    waiter,
    async isGone(kind, signal) {
      if (kind.group === '' || clock.monotonic() < refusedUntil) return false
      try {
        await client.get(CustomResourceDefinition, { name: resourceOf(kind) }, { signal })
        return false
      } catch (error) {
        if (signal.aborted) throw error
        if (error instanceof Forbidden) refused(error)
        // A proxy's own page says nothing of what the server has.
        if (!(error instanceof NotFound) || error.answer.kind !== 'Status') return false
      }
      return !(await isServed(client, kind, signal))
    },
  }
}
