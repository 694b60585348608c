// One trial: the bare server and the agent, without and with mTLS, go through the same steps, in turn or at the same time, so that
// whatever else the machine does falls on all of them.

import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Keeper } from '../../test/fixtures/keeper.ts'
import { cpuSeconds, peakMegabytes } from '../process.ts'
import { percentile } from '../statistics.ts'
import { type Burst, burstOf, inParallel } from './burst.ts'
import { caller, connect, type Timed } from './client.ts'
import { type Memory, memoryOf } from './memory.ts'
import type { BenchOptions } from './options.ts'
import { type Heap, heapOf, type Image, type Program, startAgent, startBare } from './programs.ts'

export const names = ['bare', 'agent', 'agent-mtls'] as const
export type Name = (typeof names)[number]

interface Latency {
  p50: number
  p99: number
}

export interface Figures {
  /** Milliseconds from the start of the process to its first answer, of the agent: to /readyz 200, with every probe answered. */
  ready: number
  /** Two of the kind run beside each other, as on a node with two pods. */
  idle: Memory
  heap: Heap
  /** Resident memory of shipmate-init, MB. */
  supervisor?: number
  /** Milliseconds of CPU per second, with five probes every 2 s; of the bare server: with as many spawns. */
  cpu: number
  /** Milliseconds of one run: from PUT until its end is told; of the bare server: of a spawn, without HTTP. */
  run: Latency
  /** From PUT until the first event. */
  first?: Latency
  /** After the runs. */
  after?: Memory
  /** The most resident memory so far, MB. */
  peak?: number
  /** 16 runs at once, with one reader of events. */
  burst?: Burst
  /** The same with many. */
  crowd?: Burst
  /** Milliseconds of an fsync of a few bytes in the folder where state is kept. */
  fsync?: Latency
}

export type AllFigures = Record<Name, Figures>

export interface Surroundings {
  keeper: Keeper
  image: Image
  /** Empty, and for this trial alone. */
  folder: string
  options: BenchOptions
  signal: AbortSignal
  say(text: string): void
}

/** Everything that is started is in `running`, for who ends the trial before its time. */
export async function runTrial(around: Surroundings, running: Set<Program>): Promise<AllFigures> {
  const cast = castOf(around, running)
  const ready = await timeStarts(cast, around)
  const idle = await weighIdle(cast, around)
  const work = await watchWork(cast, around)
  return forEach(async name => ({ ready: ready[name], ...idle[name], ...work[name] }))
}

async function forEach<T>(make: (name: Name) => Promise<T>): Promise<Record<Name, T>> {
  const all = {} as Record<Name, T>
  for (const name of names) all[name] = await make(name)
  return all
}

interface Cast {
  start(name: Name, heapFile?: string): Promise<Program>
  stop(program: Program): Promise<void>
}

/** Starts each program anew, in a folder of its own. */
function castOf({ keeper, image, folder, signal }: Surroundings, running: Set<Program>): Cast {
  let started = 0
  return {
    async start(name, heapFile) {
      signal.throwIfAborted()
      const own = join(folder, String(started++))
      const auth = name === 'agent' ? 'none' : 'mtls'
      const program = await (name === 'bare'
        ? startBare(keeper, image, heapFile)
        : startAgent(keeper, image, { auth, folder: own, ...(heapFile !== undefined && { heapFile }) }))
      running.add(program)
      return program
    },
    async stop(program) {
      await program.stop()
      running.delete(program)
    },
  }
}

async function timeStarts({ start, stop }: Cast, { options, say }: Surroundings): Promise<Record<Name, number>> {
  say(`${options.starts} starts of each`)
  const times: Record<Name, number[]> = { bare: [], agent: [], 'agent-mtls': [] }
  for (let i = 0; i < options.starts; i++) {
    await forEach(async name => {
      const program = await start(name)
      times[name].push(program.ready)
      await stop(program)
    })
  }
  return forEach(async name => percentile(times[name], 50))
}

/** Two of each kind, one of which can say what V8 holds; nothing else runs the same file then. */
function weighIdle({ start, stop }: Cast, { image, folder, options, signal, say }: Surroundings) {
  return forEach(async name => {
    say(`${name}, idle`)
    const heapFile = join(folder, `${name}.heap`)
    const [program, twin] = [await start(name), await start(name, heapFile)]
    await wait(options.settle, signal)
    const { pid, root } = program
    const idle = memoryOf(pid, image.node)
    const supervisor = root === pid ? {} : { supervisor: memoryOf(root, image.node).rss }
    const heap = await heapOf(twin, heapFile)
    await stop(twin)
    await stop(program)
    return { idle, heap, ...supervisor }
  })
}

/** All three beside each other: first idle, then one run after the other, each in turn, then bursts. */
async function watchWork({ start, stop }: Cast, { image, folder, options, signal, say }: Surroundings) {
  const programs = await forEach(name => start(name))
  const bare = caller(programs.bare)
  await bare.get('/every')
  await wait(options.settle, signal)
  say(`CPU of the idle ones, ${options.idle} s`)
  const before = await forEach(async name => cpuSeconds(programs[name].root))
  await wait(options.idle, signal)
  const cpu = await forEach(async name => ((cpuSeconds(programs[name].root) - before[name]) / options.idle) * 1_000)

  say(`${options.actions} runs of each`)
  const [plain, secure] = [await connect(programs.agent), await connect(programs['agent-mtls'])]
  const times = { spawn: [] as number[], fsync: [] as number[], plain: [] as Timed[], secure: [] as Timed[] }
  for (let i = 0; i < options.actions; i++) {
    signal.throwIfAborted()
    times.spawn.push(Number(await bare.get('/spawn')))
    times.fsync.push(timeFsync(folder))
    times.plain.push(await plain.run('alone'))
    times.secure.push(await secure.run('alone'))
  }
  await wait(options.settle, signal)
  const weighed = (name: Name, runs: Timed[]) => ({
    cpu: cpu[name],
    run: latency(runs.map(({ end }) => end)),
    first: latency(runs.map(({ first }) => first)),
    after: memoryOf(programs[name].pid, image.node),
    peak: peakMegabytes(programs[name].pid),
  })
  const [agent, mtls] = [weighed('agent', times.plain), weighed('agent-mtls', times.secure)]

  say(`bursts of ${options.burst} runs, 16 at once`)
  const spawns = await inParallel(options.burst, signal, () => bare.get('/spawn'))
  const burst = await burstOf(plain, options.burst, 1, signal)
  const crowd = await burstOf(plain, options.burst, options.readers, signal)
  for (const client of [bare, plain, secure]) client.close()
  for (const program of Object.values(programs)) await stop(program)
  return {
    bare: { cpu: cpu.bare, run: latency(times.spawn), fsync: latency(times.fsync), burst: { runs: spawns } },
    agent: { ...agent, burst, crowd },
    'agent-mtls': mtls,
  }
}

const wait = (seconds: number, signal: AbortSignal) => sleep(seconds * 1_000, undefined, { signal })

const latency = (values: number[]): Latency => ({ p50: percentile(values, 50), p99: percentile(values, 99) })

/** A line more in a file, and until it is on disk. */
function timeFsync(folder: string): number {
  const file = openSync(join(folder, 'fsync'), 'a')
  try {
    writeSync(file, `${'a line about as long as one of the journal '.repeat(8)}\n`)
    const began = performance.now()
    fsyncSync(file)
    return performance.now() - began
  } finally {
    closeSync(file)
  }
}
