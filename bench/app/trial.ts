// The whole trial against one server: apps are made, get their certificates, their pods come, are reached; then the controller is idle,
// hears events, meets wishes, and is killed.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiServer } from '../../test/fixtures/apiserver.ts'
import type { Keeper } from '../../test/fixtures/keeper.ts'
import type { Api } from '../api.ts'
import { countRequests } from '../requests.ts'
import { type Controller, startController } from './controllers.ts'
import { startFleet } from './fleet.ts'
import { createFloor } from './floor.ts'
import { appsPath, countSecrets, createApps, createPods, nameOf, publishedHash, startPods } from './objects.ts'
import { isReady, observe } from './observer.ts'
import type { BenchOptions } from './options.ts'
import { measureTakeover, type Takeover } from './takeover.ts'
import { monotonic } from './time.ts'
import { measureEvents, measureWishes, type Times, wishRunning } from './times.ts'
import { type Asked, asked } from './writes.ts'

export interface Idle {
  /** MB. */
  rss: number
  /** CPU seconds per minute. */
  cpu: number
  /** Requests per minute but for leases and watches. */
  requests: number
  /** Microseconds of CPU for a ping and its answer. */
  ping: number
  /** Pings per minute. */
  pings: number
}

export interface Round {
  event: Times
  patch: Times
  begin: Times
  done: Times
}

export interface Figures {
  /** Seconds from the start of the process until every app had its certificate, and CPU of all that per app, ms. */
  certified: number
  certifiedCpu: number
  /** Seconds from the last pod's address until every app was seen Running, and CPU of it per app, ms. */
  settled: number
  settledCpu: number
  /** KB of resident memory that a connection took. */
  connection: number
  idle: Idle
  rounds: Round[]
  asked: Asked
  takeovers: Takeover[]
  /** The most resident memory of the first controller, MB. */
  peak: number
  /** Runs that sidecars still remember after all operations have ended. */
  runsLeft: number
}

export interface TrialOptions extends BenchOptions {
  readonly server: ApiServer
  readonly api: Api
  readonly keeper: Keeper
  say(text: string): void
}

export async function runTrial(options: TrialOptions): Promise<Figures> {
  const { server, api, keeper, apps, say } = options
  // Ten minutes for what is over in seconds with a thousand apps.
  const limit = Math.max(apps, 1000) * 600
  const which = { program: options.program }
  let leader: Controller | undefined
  let standby: Controller | undefined
  try {
    const fleet = await startFleet(keeper)
    await createApps(api, apps)
    say(`${apps} apps are made`)

    const began = monotonic()
    leader = await startController({ server, keeper, name: 'controller-0', ...which, profile: options.profile })
    const hash = await until('every app has its certificate', leader, limit, async () => {
      const found = await publishedHash(api)
      return (await countSecrets(api)) === apps ? found : undefined
    })
    const certified = (monotonic() - began) / 1000
    const pods = await createPods(api, apps, fleet.port)
    await fleet.serve({ pods, hash, kubeconfig: server.kubeconfig, namespace: 'bench' })
    await leader.quiet(3_000, limit)
    const before = { rss: leader.rss(), cpu: leader.cpu() }
    say(`certificates after ${certified.toFixed(1)} s; the pods are made`)

    const up = fleet.connected(apps, limit)
    up.catch(() => {})
    await startPods(api, pods)
    const started = monotonic()
    await up
    const observer = await observe(api, appsPath)
    await until('every app is Running', leader, limit, async () =>
      observer.count(one => one.status?.state === 'Running' && isReady(one)) === apps ? true : undefined,
    )
    const settled = (monotonic() - started) / 1000
    await leader.quiet(5_000, limit)
    const settledCpu = ((leader.cpu() - before.cpu) * 1000) / apps
    const connection = ((leader.rss() - before.rss) * 1000) / apps
    say(`all are connected and Running ${settled.toFixed(1)} s later`)

    const idle = await measureIdle(leader, fleet, options.idle)
    say(`idle: ${idle.rss.toFixed(0)} MB, ${idle.cpu.toFixed(2)} s of CPU per minute`)

    const like = observer.get(nameOf(0))
    if (!like) throw new Error('there are no apps')
    const floor = await createFloor(api, like)
    const wishes = { api, fleet, observer, count: Math.min(options.wishes, apps), pace: options.wishPace }
    const rounds: Round[] = []
    let since = 0
    let operations = 0
    let entries: Asked | undefined
    for (let round = 1; round <= options.rounds; round++) {
      const times = await measureEvents({ ...options, fleet, observer, floor, count: options.events })
      if (round === 1) await wishRunning(wishes)
      await leader.quiet(2_000, limit)
      since = Date.now()
      const met = await measureWishes({ ...wishes, request: String(round) })
      await leader.quiet(2_000, limit)
      operations = wishes.count
      // Of the last round: they are the same in each.
      entries = asked(await leader.requests(since), operations)
      rounds.push({ ...times, ...met })
      const [event, patch] = [times.event, times.patch]
      say(
        `round ${round}: event to status ${event.p50.toFixed(1)} / ${event.p99.toFixed(1)} ms, a PATCH ${patch.p50.toFixed(1)} / ${patch.p99.toFixed(1)}`,
      )
    }
    const peak = leader.peak()
    const runsLeft = (await fleet.count()).runs

    const takeovers: Takeover[] = []
    for (let i = 1; i <= options.takeovers; i++) {
      standby = await startController({ server, keeper, name: `controller-${i}`, ...which })
      await sleep(3_000)
      const more = { api, fleet, observer, request: `takeover ${i}`, wisher: nameOf(0), apps, limit }
      takeovers.push(await measureTakeover({ leader, next: standby, ...more }))
      leader = standby
      standby = undefined
      say(`takeover ${i}: all connected ${((takeovers.at(-1)?.all ?? 0) / 1000).toFixed(1)} s after the kill`)
    }
    observer.stop()
    floor.stop()
    if (!entries) throw new Error('there was no round')
    return {
      ...{ certified, certifiedCpu: (before.cpu * 1000) / apps, settled, settledCpu, connection },
      ...{ idle, rounds, asked: entries, takeovers, peak, runsLeft },
    }
  } finally {
    await Promise.all([leader?.stop(), standby?.stop()])
  }
}

async function measureIdle(
  controller: Controller,
  fleet: Awaited<ReturnType<typeof startFleet>>,
  seconds: number,
): Promise<Idle> {
  const window = async () => {
    const since = Date.now()
    const before = { cpu: controller.cpu(), pings: (await fleet.count()).pings }
    await Promise.race([sleep(seconds * 1000), controller.ended])
    const { gets, writes, lists } = countRequests(await controller.requests(since))
    return {
      cpu: controller.cpu() - before.cpu,
      pings: (await fleet.count()).pings - before.pings,
      requests: gets + writes + lists,
    }
  }
  const usual = await window()
  const rss = controller.rss()
  await fleet.ping(10)
  const many = await window()
  await fleet.ping(1)
  const perMinute = 60 / seconds
  return {
    rss,
    cpu: usual.cpu * perMinute,
    requests: usual.requests * perMinute,
    ping: ((many.cpu - usual.cpu) * 1e6) / (many.pings - usual.pings),
    pings: usual.pings * perMinute,
  }
}

async function until<T>(
  what: string,
  controller: Controller,
  limit: number,
  look: () => Promise<T | undefined>,
): Promise<T> {
  for (const deadline = Date.now() + limit; ; ) {
    const began = Date.now()
    const found = await look()
    if (found !== undefined) return found
    // A look at ten thousand takes the server's time from who is measured.
    await Promise.race([sleep(Math.max(200, 4 * (Date.now() - began))), controller.ended])
    if (Date.now() > deadline) throw new Error(`not within ${limit / 1000} s: ${what}`)
  }
}
