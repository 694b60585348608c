// npm run bench:runtime: the Widget work by our runtime, Go's controller-runtime and others, in turn, against one real
// API server. Says what was measured, and whether our runtime meets the bar.

import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { assetsMissing, startApiServer } from '../test/fixtures/apiserver.ts'
import { createKeeper } from '../test/fixtures/keeper.ts'
import { connect } from './api.ts'
import { judge, ours, type Verdict } from './bar.ts'
import { main } from './main.ts'
import { type BenchOptions, help, readOptions } from './options.ts'
import { type Program, programs } from './programs.ts'
import { medianOf } from './statistics.ts'
import { figuresTable, verdictTable } from './table.ts'
import { type Figures, runTrial } from './trial.ts'
import { warmUp } from './widgets.ts'

type Built = Program & { command: [string, ...string[]] }

interface Trial {
  name: string
  n: number
  run: number
  figures?: Figures
  failure?: string
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

await main({ readOptions, help, missing: assetsMissing, bench })

async function bench(options: BenchOptions, load: number): Promise<number> {
  const { built, leftOut } = await buildAll(options.only)
  for (const { name, reason } of leftOut) console.log(`${name} is left out: ${reason}`)

  const trials: Trial[] = []
  const verdicts: Record<number, Verdict[]> = {}
  for (const n of options.ns) {
    const own = await runTrials(built, n, options)
    trials.push(...own)
    const figures = new Map<string, Figures>()
    for (const { name } of built) {
      const measured = own.flatMap(trial => (trial.name === name && trial.figures) || [])
      if (measured.length > 0) figures.set(name, medianOf(measured))
    }
    console.log(`\n${figuresTable(n, figures)}\n`)
    verdicts[n] = judge(n, figures)
    console.log(
      figures.has(ours) ? `${verdictTable(verdicts[n])}\n` : `The bar is for ${ours}, which was not measured.\n`,
    )
  }

  for (const { name, title } of built) console.log(`${name}: ${title}`)
  for (const { name, reason } of leftOut) console.log(`${name}: left out, ${reason}`)
  const failed = trials.filter(({ failure }) => failure !== undefined)
  for (const { name, n, run, failure } of failed) console.log(`${name}, ${n} Widgets, run ${run}: failed, ${failure}`)
  if (options.json !== undefined) {
    const machine = { cpu: cpus()[0]?.model, cores: availableParallelism(), load, node: process.version }
    writeFileSync(options.json, `${JSON.stringify({ machine, options, leftOut, trials, verdicts }, null, 2)}\n`)
  }
  return failed.length > 0 ? 1 : 0
}

async function buildAll(names: string[]) {
  const built: Built[] = []
  const leftOut: { name: string; reason: string }[] = []
  for (const program of programs.filter(({ name }) => names.includes(name))) {
    try {
      built.push({ ...program, command: await program.build() })
    } catch (error) {
      leftOut.push({ name: program.name, reason: (error as Error).message })
    }
  }
  return { built, leftOut }
}

/** Every program in turn, so many times, against one server. */
async function runTrials(built: Built[], n: number, options: BenchOptions): Promise<Trial[]> {
  const logs = here('../.cache/bench/logs')
  mkdirSync(logs, { recursive: true })
  const keeper = createKeeper()
  await using server = await startApiServer({ args: ['--delete-collection-workers=16'] })
  const api = connect(server.kubeconfig, 24)
  await server.kubectl('apply', '-f', here('widget/crd.yaml'))
  await server.kubectl('wait', '--for=condition=Established', 'crd/widgets.bench.example.com')
  await warmUp(api)

  const trials: Trial[] = []
  for (let run = 1; run <= options.runs; run++) {
    // Each run starts with another program, so that none always finds the server fresh.
    const shift = (run - 1) % built.length
    for (const program of [...built.slice(shift), ...built.slice(0, shift)]) {
      const { name, command, isController } = program
      const namespace = `${name}-${n}-${run}`
      process.stdout.write(`${name}, ${n} Widgets, run ${run}: `)
      const trial: Trial = { name, n, run }
      try {
        const idle = run === 1 ? options.idle : 0
        const logFile = `${logs}/${namespace}.log`
        writeFileSync(logFile, '')
        const figures = await runTrial(server, api, keeper, {
          ...options,
          name,
          command,
          isController,
          namespace,
          logFile,
          n,
          idle,
        })
        trial.figures = figures
        console.log(`converged in ${figures.cold.toFixed(2)} s`)
      } catch (error) {
        trial.failure = (error as Error).message
        console.log(`failed: ${trial.failure}`)
      }
      trials.push(trial)
    }
  }
  await api.close()
  await keeper.stop()
  return trials
}
