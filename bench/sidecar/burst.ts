// Many at once: how many runs, or spawns, per second, and how many events go to how many readers meanwhile.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from './client.ts'

export interface Burst {
  /** Runs per second, or spawns. */
  runs: number
  /** Events per second that the agent told. */
  events?: number
  /** Messages per second that all readers together got. */
  messages?: number
}

/** As many as an agent runs at once. */
const lanes = 16

/** Calls it so often, 16 at once; answers how often per second. */
export async function inParallel(count: number, signal: AbortSignal, call: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  let left = count
  const lane = async () => {
    while (left-- > 0) {
      signal.throwIfAborted()
      await call()
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return (count / (performance.now() - began)) * 1_000
}

/** The burst is over when the last run has ended and every reader has what the first one has. */
export async function burstOf(client: Client, count: number, readers: number, signal: AbortSignal): Promise<Burst> {
  const others: Awaited<ReturnType<Client['addReader']>>[] = []
  while (others.length < readers - 1) others.push(await client.addReader())
  const heardByOthers = () => others.reduce((sum, reader) => sum + reader.count(), 0)
  const [eventsBefore, heardBefore] = [client.events(), heardByOthers()]
  const events = () => client.events() - eventsBefore
  const heard = () => heardByOthers() - heardBefore
  const began = performance.now()
  const runs = await inParallel(count, signal, () => client.run('beside'))
  while (heard() < events() * others.length) await sleep(1, undefined, { signal })
  const seconds = (performance.now() - began) / 1_000
  for (const reader of others) reader.stop()
  return { runs, events: events() / seconds, messages: (events() + heard()) / seconds }
}
