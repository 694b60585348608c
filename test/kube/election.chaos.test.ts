/**
 * Random schedules of two or three processes that contest one lease: slow, lossy and failing networks, stops and restarts, processes that are
 * stopped by a signal or sleep with their machine, clocks that differ, run fast or slow, and jump. All in one process, in virtual time.
 *
 * What is left out, since no process can know it: a machine that sleeps while its wall clock is set back, and a lease deleted by hand.
 */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { uniformInt } from 'pure-rand/distribution/uniformInt'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { expect, it } from 'vitest'
import { Client } from '../../controller/kube/client.ts'
import { createElection } from '../../controller/kube/election.ts'
import { ConfigMap } from '../../controller/kube/kinds.ts'
import { intercept } from '../../controller/kube/transport.ts'
import { sleep } from '../../shared/clock.ts'
import { type Fate, LeaseServer, network, refusal } from '../fixtures/lease-server.ts'
import { ProcessClock, VirtualClock } from '../fixtures/virtual-clock.ts'

const first = Number(process.env.SHIPMATE_SEED ?? 1)
const schedules = Number(process.env.SHIPMATE_SCHEDULES ?? 200)

it(
  `has one leader at most, and always another one: seeds ${first} to ${first + schedules - 1}`,
  async () => {
    const total = { terms: 0, losses: 0, writes: 0, refused: 0 }
    for (let seed = first; seed < first + schedules; seed++) {
      try {
        const done = await schedule(seed)
        for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += done[key]
      } catch (error) {
        const replay = `SHIPMATE_SEED=${seed} SHIPMATE_SCHEDULES=1 npx vitest run test/kube/election.chaos.test.ts`
        throw new Error(`seed ${seed}: ${(error as Error).message}\nreplay: ${replay}`, { cause: error })
      }
    }
    // Schedules in which nothing happens would show nothing.
    if (schedules >= 20) for (const count of Object.values(total)) expect(count).toBeGreaterThan(schedules / 4)
  },
  60_000 + schedules * 2_000,
)

async function schedule(seed: number) {
  const rng = xoroshiro128plus(seed)
  const random = () => uniformFloat64(rng)
  const below = (limit: number) => random() * limit
  const chance = (probability: number) => random() < probability
  const pick = <T>(...items: readonly [T, ...T[]]): T => items[uniformInt(rng, 0, items.length - 1)] as T

  const clock = new VirtualClock()
  const server = new LeaseServer()
  const done = { terms: 0, losses: 0, writes: 0, refused: 0 }
  /** Whose term began last. */
  let latest: object | undefined
  let calm = false
  // Either machines may sleep, or clocks may be set back: both at once cannot be told from neither.
  const sleeps = chance(0.5)

  function join(number: number) {
    const own = new ProcessClock(clock, { skew: below(7_200_000) - 3_600_000, rate: 0.97 + below(0.06) })
    const weather = { delay: 0, loss: 0, failure: 0 }
    const fate = (): Fate => {
      if (calm) return { there: below(50), back: below(50) }
      if (chance(weather.failure)) return { instead: refusal(pick(500, 503, 429, 401), 'Nope') }
      const lost = chance(weather.loss) ? pick('request', 'answer') : undefined
      return { there: below(weather.delay), back: below(weather.delay), ...(lost && { lost }) }
    }
    const send = network(clock, own, server, fate)

    const process = {
      number,
      own,
      weather,
      /** The signal of the work under way. */
      work: undefined as AbortSignal | undefined,
      term: undefined as object | undefined,
      /** Woke from a sleep of its machine, which its timers do not know of. */
      drowsy: false,
      /** When it last woke; its overdue timers run at that moment, one by one. */
      woke: -1,
      stop: new AbortController(),
      running: true,
      /** Whether it believes to lead, by its signal alone; by its clocks only where that is all it can go by. */
      claims: () => {
        if (own.isFrozen || process.woke === clock.monotonic() || !process.work || process.work.aborted) return false
        return !process.drowsy || process.election.isLeading()
      },
      election: createElection(new Client(send), { name: 'leader', identity: `process-${number}`, clock: own, random }),
      write: async () => {
        try {
          await gated.create(ConfigMap, { metadata: { name: 'x' } })
        } catch (error) {
          if ((error as { code: string }).code === 'NotLeading') done.refused++
        }
      },
    }
    const watched = intercept(send, next => request => {
      done.writes++
      if (process.term !== latest) fail(new Error(`${number} writes at ${clock.monotonic()}, though another leads`))
      return next(request)
    })
    const gated = new Client(intercept(watched, process.election.gate()))

    async function lead(signal: AbortSignal) {
      for (const other of processes) {
        if (other !== process && other.claims()) {
          throw new Error(`${number} begins to lead at ${clock.monotonic()}, though ${other.number} still does`)
        }
      }
      done.terms++
      process.term = latest = {}
      process.work = signal
      process.drowsy = false
      const leaves = chance(0.05) ? below(60_000) : Number.POSITIVE_INFINITY
      const begun = own.monotonic()
      while (!signal.aborted && (calm || own.monotonic() - begun < leaves)) {
        void process.write().catch(fail)
        await sleep(own, 200 + below(2_000), signal).catch(() => {})
      }
      if (signal.aborted) {
        if (!process.stop.signal.aborted) done.losses++
        await sleep(own, chance(0.1) ? below(20_000) : below(3_000))
      }
      process.work = undefined
    }
    process.election
      .run(lead, process.stop.signal)
      .catch(fail)
      .finally(() => {
        process.running = false
      })
    return process
  }

  let failure: unknown
  function fail(error: unknown) {
    failure ??= error
  }

  function check(): boolean {
    if (failure) throw failure
    const leaders = processes.filter(process => process.claims()).map(process => process.number)
    if (leaders.length > 1) throw new Error(`${leaders.join(' and ')} lead at once, at ${clock.monotonic()}`)
    return false
  }

  type Process = ReturnType<typeof join>
  const processes: Process[] = []
  let joined = 0
  for (const count = pick(2, 3); joined < count; ) processes.push(join(++joined))

  function disturb(process: Process) {
    const { own, weather } = process
    switch (pick('weather', 'weather', 'freeze', 'freeze', 'jump', 'stop', 'crash', 'nothing')) {
      case 'weather':
        Object.assign(weather, {
          delay: pick(5, 500, 6_000, 20_000),
          loss: pick(0, 0, 0.3, 1),
          failure: pick(0, 0, 0.3, 1),
        })
        break
      case 'freeze':
        if (own.isFrozen) thaw(process)
        else own.freeze()
        break
      case 'jump':
        own.jumpWall(sleeps ? below(20_000) : below(40_000) - 20_000)
        break
      case 'stop':
        if (!own.isFrozen) process.stop.abort()
        break
      case 'crash':
        if (!chance(0.3)) break
        own.freeze()
        processes.splice(processes.indexOf(process), 1, join(++joined))
    }
  }

  function thaw(process: Process) {
    const how = sleeps ? pick('stopped', 'suspended') : 'stopped'
    process.woke = clock.monotonic()
    if (how === 'suspended') process.drowsy = true
    // What it was about to do it does when it wakes, perhaps before any timer.
    if (process.work) process.own.deliver(() => void process.write().catch(fail))
    process.own.thaw(how, came =>
      came
        .map(run => ({ run, at: random() }))
        .sort((a, b) => a.at - b.at)
        .map(({ run }) => run),
    )
  }

  for (let step = 0; step < 30; step++) {
    await clock.until(check, pick(100, 1_000, 5_000, 12_000))
    const place = uniformInt(rng, 0, processes.length - 1)
    const process = processes[place] as Process
    if (process.running) disturb(process)
    else if (!process.own.isFrozen) processes.splice(place, 1, join(++joined))
  }

  // In calm there is a leader before long, and it stays.
  calm = true
  for (const process of processes) {
    if (process.own.isFrozen) thaw(process)
    Object.assign(process.weather, { delay: 5, loss: 0, failure: 0 })
  }
  processes.push(join(++joined))
  const leader = () => processes.find(process => process.claims())
  if (!(await clock.until(() => check() || leader() !== undefined, 60_000)))
    throw new Error('nobody leads after a minute of calm')
  // What was under way when the calm began has its time to end.
  await clock.until(check, 60_000)
  const settled = leader()?.term
  if (!settled) throw new Error('nobody leads after two minutes of calm')
  await clock.until(check, 120_000)
  if (leader()?.term !== settled) throw new Error('in calm, who leads ceased to')

  // And a stop leaves nothing behind.
  for (const process of processes) process.stop.abort()
  if (!(await clock.until(() => check() || processes.every(process => !process.running), 60_000)))
    throw new Error('a stop does not end')
  if (server.holder !== '') throw new Error(`${server.holder} holds the lease though all have stopped`)
  return done
}
