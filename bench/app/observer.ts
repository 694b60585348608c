// Sees what a user would see: a watch of the bench's own on objects with a status. Times are those at which an event arrived here, on
// the monotonic clock.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Api, Meta } from '../api.ts'
import { within } from './fleet.ts'
import { monotonic } from './time.ts'

export interface Status {
  state?: string
  observedGeneration?: number
  wish?: { hash: string; serial: number; outcome?: string }
  operation?: { name: string }
  conditions?: { type: string; status: string }[]
}

export interface Observed {
  metadata: Meta & { generation: number }
  status?: Status
}

export interface Observer {
  get(name: string): Observed | undefined
  /** How many are as they should be. */
  count(isRight: (object: Observed) => boolean): number
  /** Resolves with the time of the event that made it true. */
  until(name: string, isTrue: (object: Observed) => boolean, timeout: number, what: string): Promise<number>
  stop(): void
}

export async function observe(api: Api, path: string): Promise<Observer> {
  const stopped = new AbortController()
  const objects = new Map<string, Observed>()
  const waiters = new Map<string, Set<(object: Observed, at: number) => void>>()
  let failure: Error | undefined
  const see = (object: Observed) => {
    const { name } = object.metadata
    objects.set(name, object)
    const at = monotonic()
    for (const waiter of waiters.get(name) ?? []) waiter(object, at)
  }
  const list = async () => {
    const { metadata, items } = await api.request<{ metadata: Meta; items: Observed[] }>('GET', path)
    for (const item of items) see(item)
    // An hour: the server would end the watch sooner by itself.
    return `${path}?watch=1&timeoutSeconds=3600&resourceVersion=${metadata.resourceVersion}`
  }
  const follow = async (from: string) => {
    for (let next = from; !stopped.signal.aborted; next = await list())
      // The server ends a watch when it likes.
      await api.watch<Observed>(next, ({ object }) => see(object), stopped.signal).catch(() => sleep(50))
  }
  follow(await list()).catch((error: Error) => {
    failure = error
  })

  return {
    get: name => objects.get(name),
    count(isRight) {
      if (failure) throw failure
      return [...objects.values()].filter(isRight).length
    },
    until(name, isTrue, timeout, what) {
      const own = waiters.get(name) ?? new Set()
      waiters.set(name, own)
      let waiter: ((object: Observed, at: number) => void) | undefined
      const come = new Promise<number>(resolve => {
        waiter = (object, at) => {
          if (isTrue(object)) resolve(at)
        }
        own.add(waiter)
        const now = objects.get(name)
        if (now && isTrue(now)) resolve(monotonic())
      })
      const seen = within(come, timeout, what).finally(() => waiter && own.delete(waiter))
      // Whoever waits may look later.
      seen.catch(() => {})
      return seen
    },
    stop: () => stopped.abort(),
  }
}

export const isReady = ({ status }: Observed): boolean =>
  status?.conditions?.some(one => one.type === 'Ready' && one.status === 'True') ?? false
