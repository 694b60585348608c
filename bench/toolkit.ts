// npm run bench:toolkit: a custom resource with ten children by our toolkit and by controller-runtime's CreateOrUpdate,
// in turn, against one real API server. Says what each asks of the server and works, and whether ours meets the bar.

import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { assetsMissing, startApiServer } from '../test/fixtures/apiserver.ts'
import { createKeeper } from '../test/fixtures/keeper.ts'
import { connect } from './api.ts'
import { main } from './main.ts'
import { medianOf } from './statistics.ts'
import { verdictTable } from './table.ts'
import { judge } from './toolkit/bar.ts'
import { type BenchOptions, help, readOptions } from './toolkit/options.ts'
import { buildPackage, type Command, ours, type Program, programs } from './toolkit/programs.ts'
import { figuresTable } from './toolkit/table.ts'
import { type Figures, runTrial } from './toolkit/trial.ts'

type Built = Program & { command: Command }

interface Trial {
  name: string
  run: number
  figures?: Figures
  failure?: string
}

await main({ readOptions, help, missing: assetsMissing, bench })

async function bench(options: BenchOptions, load: number): Promise<number> {
  await buildPackage()
  const built: Built[] = []
  const leftOut: { name: string; reason: string }[] = []
  for (const program of programs.filter(({ name }) => options.only.includes(name))) {
    try {
      built.push({ ...program, command: await program.build() })
    } catch (error) {
      leftOut.push({ name: program.name, reason: (error as Error).message })
    }
  }
  for (const { name, reason } of leftOut) console.log(`${name} is left out: ${reason}`)

  const trials = await runTrials(built, options)
  const figures = new Map<string, Figures>()
  for (const { name } of built) {
    const measured = trials.flatMap(trial => (trial.name === name && trial.figures) || [])
    if (measured.length > 0) figures.set(name, medianOf(measured))
  }
  console.log(`\n${figuresTable(figures, options)}\n`)
  const verdicts = judge(figures, options)
  console.log(figures.has(ours) ? `${verdictTable(verdicts)}\n` : `The bar is for ${ours}, which was not measured.\n`)
  for (const { name, title } of built) console.log(`${name}: ${title}`)
  const failed = trials.filter(({ failure }) => failure !== undefined)
  for (const { name, run, failure } of failed) console.log(`${name}, run ${run}: failed, ${failure}`)
  if (options.json !== undefined) {
    const machine = { cpu: cpus()[0]?.model, cores: availableParallelism(), load, node: process.version }
    writeFileSync(options.json, `${JSON.stringify({ machine, options, leftOut, trials, verdicts }, null, 2)}\n`)
  }
  return failed.length > 0 ? 1 : 0
}

/** Every program in turn, so many times, against one server. */
async function runTrials(built: Built[], options: BenchOptions): Promise<Trial[]> {
  const logs = fileURLToPath(new URL('../.cache/bench/logs', import.meta.url))
  mkdirSync(logs, { recursive: true })
  const keeper = createKeeper()
  // Two Services for each Stack, and those of a program are there until its trial is over.
  await using server = await startApiServer({ args: ['--service-cluster-ip-range=10.0.0.0/16'] })
  const api = connect(server.kubeconfig, 16)
  // Only now: it imports the package that was just built.
  const { Stack } = await import('./toolkit/stack.ts')
  const crd = join(server.dir, 'crd.yaml')
  writeFileSync(crd, Stack.crdYaml())
  await server.kubectl('apply', '-f', crd)
  await server.kubectl('wait', '--for=condition=Established', `crd/${Stack.plural}.${Stack.group}`)

  const trials: Trial[] = []
  for (let run = 1; run <= options.runs; run++) {
    // Each run starts with another program, so that none always finds the server fresh.
    const shift = (run - 1) % Math.max(1, built.length)
    for (const { name, command } of [...built.slice(shift), ...built.slice(0, shift)]) {
      const namespace = `${name}-${run}`
      process.stdout.write(`${name}, run ${run}: `)
      const trial: Trial = { name, run }
      try {
        const logFile = join(logs, `toolkit-${namespace}.log`)
        writeFileSync(logFile, '')
        trial.figures = await runTrial(server, api, keeper, { ...options, name, command, namespace, logFile })
        console.log('done')
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
