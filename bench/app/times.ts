// How fast an event reaches the status, and a wish its run: a round of each, paced, with plain status writes in between.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Api } from '../api.ts'
import { percentile } from '../statistics.ts'
import type { Fleet } from './fleet.ts'
import type { Floor } from './floor.ts'
import { appsPath, nameOf } from './objects.ts'
import { isReady, type Observer } from './observer.ts'
import { monotonic } from './time.ts'

export interface Times {
  p50: number
  p99: number
}

const timesOf = (values: number[]): Times => ({ p50: percentile(values, 50), p99: percentile(values, 99) })
/** A minute: whatever takes longer is an error, not a figure. */
const usualLimit = 60_000

/** Its failure is told when all are looked at. */
function begun<T>(measured: Promise<T>): Promise<T> {
  measured.catch(() => {})
  return measured
}

export interface EventOptions {
  readonly fleet: Fleet
  readonly observer: Observer
  readonly floor: Floor
  /** Which of the apps. */
  readonly apps: number
  readonly count: number
  readonly pace: number
}

/** Every app is as it was before, after it. */
export async function measureEvents(options: EventOptions): Promise<{ event: Times; patch: Times }> {
  const { fleet, observer, floor, apps, count, pace } = options
  const events: Promise<number>[] = []
  const patches: Promise<number>[] = []
  const chosen = Math.min(apps, Math.ceil(count / 2))
  const sayTo = async (i: number, state: string) => {
    const name = nameOf(i)
    const seen = observer.until(name, ({ status }) => status?.state === state, usualLimit, `${name} to be ${state}`)
    const said = await fleet.say(name, state)
    return (await seen) - said
  }
  for (const state of ['Start', 'Running']) {
    for (let i = 0; i < chosen; i++) {
      events.push(begun(sayTo(Math.floor((i * apps) / chosen), state)))
      await sleep(pace / 2)
      patches.push(begun(floor.patch()))
      await sleep(pace / 2)
    }
    await Promise.all(events)
  }
  return { event: timesOf(await Promise.all(events)), patch: timesOf(await Promise.all(patches)) }
}

export interface WishOptions {
  readonly api: Api
  readonly fleet: Fleet
  readonly observer: Observer
  readonly count: number
  readonly pace: number
  /** Another one for each round. */
  readonly request: string
}

/** The first apps are wished to be Running, so that their workloads are claimed and what follows is one operation each. */
export async function wishRunning({
  api,
  observer,
  count,
  pace,
}: Omit<WishOptions, 'request' | 'fleet'>): Promise<void> {
  for (let i = 0; i < count; i++) {
    await api.request('PATCH', `${appsPath}/${nameOf(i)}`, { spec: { desired: { state: 'Running' } } })
    await sleep(pace / 2)
  }
  for (let i = 0; i < count; i++)
    await observer.until(
      nameOf(i),
      one => one.status?.observedGeneration === one.metadata.generation && isReady(one),
      usualLimit,
      `${nameOf(i)} to be Running as wished`,
    )
}

/** From a wish to its run's begin, and to its end in the status. */
export async function measureWishes(options: WishOptions): Promise<{ begin: Times; done: Times }> {
  const { count, pace } = options
  const wishes: Promise<{ begin: number; done: number }>[] = []
  for (let i = 0; i < count; i++) {
    wishes.push(begun(wish(nameOf(i), options)))
    await sleep(pace)
  }
  const all = await Promise.all(wishes)
  return { begin: timesOf(all.map(({ begin }) => begin)), done: timesOf(all.map(({ done }) => done)) }
}

/** @param limit milliseconds until it must have begun, and be met */
export async function wish(
  name: string,
  { api, fleet, observer, request, limit = usualLimit }: Omit<WishOptions, 'count' | 'pace'> & { limit?: number },
) {
  const before = observer.get(name)?.status?.wish?.serial ?? 0
  const began = monotonic()
  const run = fleet.begun(name, limit)
  const met = observer.until(
    name,
    one => (one.status?.wish?.serial ?? 0) > before && one.status?.wish?.outcome === 'Succeeded' && isReady(one),
    limit,
    `the wish of ${name} to be met`,
  )
  await api.request('PATCH', `${appsPath}/${name}`, {
    spec: { desired: { state: 'Servicing', action: 'backup', request } },
  })
  return { begin: (await run) - began, done: (await met) - began }
}
