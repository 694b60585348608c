// One program's trial on N Widgets in a namespace of its own: from cold to converged, then changes, repairs and quiet
// with the warm process, then a restart. Every program goes through the same steps, observed in the same way.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiServer } from '../test/fixtures/apiserver.ts'
import type { AuditEntry } from '../test/fixtures/audit.ts'
import type { Keeper } from '../test/fixtures/keeper.ts'
import { type Api, configMapsPath, widgetsPath } from './api.ts'
import { type Observer, observe } from './observer.ts'
import { countRequests, type RequestCount } from './requests.ts'
import { type ProgramOptions, type Running, start } from './running.ts'
import { percentile } from './statistics.ts'
import { createWidgets, deleteAll, widgetName } from './widgets.ts'

export interface TrialOptions extends Omit<ProgramOptions, 'user' | 'kubeconfig'> {
  isController: boolean
  n: number
  /** How many Widgets are changed, one after the other. */
  changes: number
  /** Time between two changes, in ms. */
  pace: number
  /** How many ConfigMaps are deleted, and how many changed, one after the other. */
  repairs: number
  /** How long to look at the idle program, in seconds; 0 leaves it out. */
  idle: number
}

export interface Figures {
  /** Seconds from the start of the process until every ConfigMap and status was right. */
  cold: number
  /** CPU seconds until it had converged and was quiet. */
  cpu: number
  /** The most resident memory of the process in any step, MB. */
  rss: number
  /** What it asked of the server until it had converged and was quiet. */
  requests: RequestCount
  /** Milliseconds from sending a change until its status was seen. */
  change?: { p50: number; p99: number; max: number }
  /** Milliseconds from sending the deletion, or the change, of a ConfigMap until it was seen right again. */
  repair?: { deleted: number; changed: number }
  /** What the idle program asked of the server, per minute. */
  idle?: RequestCount
  /** What it asked after a restart with nothing to do, and the CPU seconds that took. */
  restart?: RequestCount & { cpu: number }
}

export async function runTrial(server: ApiServer, api: Api, keeper: Keeper, options: TrialOptions): Promise<Figures> {
  const { name, namespace, n } = options
  const user = `bench-${namespace}`
  const kubeconfig = await server.kubeconfigFor({ name: user, group: 'system:masters' })
  await createWidgets(api, namespace, n)
  await using observer = await observe(api, namespace)
  const startProgram = () => start(server, keeper, { ...options, user, kubeconfig })
  const limit = 60_000 + n * 50
  let running: Running | undefined

  try {
    const spawned = performance.now()
    running = startProgram()
    const converged = await race(
      running,
      observer.until(() => observer.right === n, limit, `${name} converges`),
    )
    await settled(running)
    const figures: Figures = {
      cold: (converged - spawned) / 1_000,
      cpu: running.cpu(),
      rss: running.peak(),
      requests: countRequests(await server.requests({ user })),
    }
    if (!options.isController) return figures

    const changed = await race(running, changeWidgets(api, observer, options))
    figures.change = { p50: percentile(changed, 50), p99: percentile(changed, 99), max: percentile(changed, 100) }
    figures.repair = await race(running, damageChildren(api, observer, options))
    await settled(running)
    if (options.idle > 0) figures.idle = await race(running, watchIdle(server, user, options.idle))
    figures.rss = Math.max(figures.rss, running.peak())
    await running.stop()

    const restarted = Date.now()
    running = startProgram()
    await settled(running, restarted)
    figures.restart = {
      ...countRequests(await server.requests({ user, since: restarted })),
      cpu: running.cpu(),
    }
    figures.rss = Math.max(figures.rss, running.peak())
    return figures
  } finally {
    await running?.stop()
    await deleteAll(api, namespace)
  }
}

const race = <T>(program: Running, work: Promise<T>): Promise<T> => Promise.race([work, program.ended])

/** So many names, spread evenly over all. */
const sample = (n: number, count: number) =>
  Array.from({ length: Math.min(n, count) }, (_, i) => widgetName(Math.floor((i * n) / Math.min(n, count))))

/** Waits until the program watches both kinds (if asked to since a time) and has neither asked nor worked for 2 s. */
function settled(program: Running, watchesSince = 0): Promise<void> {
  const isWatching = (entries: AuditEntry[]) =>
    watchesSince === 0 ||
    new Set(entries.filter(({ verb, at }) => verb === 'watch' && at >= watchesSince).map(({ resource }) => resource))
      .size >= 2
  return program.quiet({ time: 2_000, slack: 0.05, limit: 120_000, holds: isWatching })
}

async function changeWidgets(api: Api, observer: Observer, options: TrialOptions): Promise<number[]> {
  const { n, changes, pace, namespace } = options
  const first = performance.now()
  const waits = sample(n, changes).map(async (name, i) => {
    await sleep(Math.max(0, first + i * pace - performance.now()))
    const value = `${name} changed`
    const sent = performance.now()
    const seen = observer.until(() => observer.widget(name)?.status?.observedValue === value, 60_000, `${name} changes`)
    await api.request('PATCH', `${widgetsPath(namespace)}/${name}`, { spec: { value } })
    return (await seen) - sent
  })
  return Promise.all(waits)
}

async function damageChildren(api: Api, observer: Observer, options: TrialOptions) {
  const { n, repairs, namespace } = options
  const deleted: number[] = []
  const changed: number[] = []
  for (const name of sample(n, repairs)) {
    const path = `${configMapsPath(namespace)}/${name}`
    const isRepaired = () => observer.configMap(name)?.data?.value === observer.widget(name)?.spec.value

    const uid = observer.configMap(name)?.metadata.uid
    const sent = performance.now()
    const isBack = () => observer.configMap(name)?.metadata.uid !== uid && isRepaired()
    const back = observer.until(isBack, 60_000, `${name} comes back`)
    await api.request('DELETE', path)
    deleted.push((await back) - sent)

    const damaged = performance.now()
    const { metadata } = await api.request<{ metadata: { resourceVersion: string } }>('PATCH', path, {
      data: { value: 'damaged' },
    })
    const isNewer = () => Number(observer.configMap(name)?.metadata.resourceVersion) > Number(metadata.resourceVersion)
    changed.push((await observer.until(() => isNewer() && isRepaired(), 60_000, `${name} is repaired`)) - damaged)
  }
  return { deleted: percentile(deleted, 50), changed: percentile(changed, 50) }
}

async function watchIdle(server: ApiServer, user: string, seconds: number): Promise<RequestCount> {
  const since = Date.now()
  await sleep(seconds * 1_000)
  const count = countRequests(await server.requests({ user, since }))
  for (const key of Object.keys(count) as (keyof RequestCount)[]) count[key] *= 60 / seconds
  return count
}
