/**
 * Tells when a kind that is not served may be served: its CRD came, or changed.
 *
 * Guarantees: while it waits there is one idle watch on that one CRD and no polling, where the CRDs may be watched; else, and as a safety
 * net for kinds that no CRD defines, it says "try again" from time to time.
 */
import { type Clock, sleep, systemClock } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Client } from './client.ts'
import { Forbidden } from './errors.ts'
import { type Kind, resourceOf } from './kind.ts'
import { CustomResourceDefinition } from './kinds.ts'

export interface PresenceOptions {
  /** Between tries where CRDs may not be watched, in milliseconds. Default 30,000. */
  readonly poll?: number | undefined
  /** Between tries all the same, in milliseconds. Default 300,000. */
  readonly safetyNet?: number | undefined
  readonly clock?: Clock | undefined
  /** Something that a person may want to know: CRDs cannot be watched. */
  readonly onNotice?: ((message: string) => void) | undefined
}

/** Resolves when it is worth asking for the kind again; rejects only when the signal is aborted. */
export type Appears = (kind: Kind, signal: AbortSignal) => Promise<void>

export function createPresence(client: Client, options: PresenceOptions = {}): Appears {
  const { poll = 30_000, safetyNet = 300_000, clock = systemClock } = options
  /** Versions of CRDs that were there when the kind was not: these have been tried. */
  const tried = new Map<string, { version: string; times: number }>()
  let mayWatch = true

  return async (kind, signal) => {
    const name = resourceOf(kind)
    if (!mayWatch) return sleep(clock, poll, signal)
    const known = tried.get(name)
    // A CRD that is there is served a moment later; its last change may already have been seen.
    const soon = known ? Math.min(100 * 2 ** known.times, safetyNet) : safetyNet
    const own = new AbortController()
    const end = () => own.abort(signal.reason)
    signal.addEventListener('abort', end, { once: true })
    const timer = clock.after(soon, () => own.abort('tried often enough'))
    try {
      const fields = `metadata.name=${name}`
      for await (const event of client.watch(CustomResourceDefinition, {
        fields,
        metadataOnly: true,
        signal: own.signal,
      })) {
        if (event.type === 'BOOKMARK') continue
        if (event.type === 'DELETED') {
          tried.delete(name)
          continue
        }
        const version = event.object.metadata.resourceVersion
        if (tried.get(name)?.version === version) continue
        tried.set(name, { version, times: 0 })
        return
      }
    } catch (error) {
      if (signal.aborted) throw error
      if (error instanceof Forbidden) {
        mayWatch = false
        options.onNotice?.(`${messageOf(error)}: absent kinds are asked for every ${poll / 1000} s instead`)
      } else if (!own.signal.aborted) await sleep(clock, 1000, signal)
    } finally {
      timer.cancel()
      signal.removeEventListener('abort', end)
    }
    if (known) known.times++
  }
}
