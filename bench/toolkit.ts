// npm run bench:toolkit: a custom resource with ten children by our toolkit and by controller-runtime's CreateOrUpdate,
// in turn, against one real API server. Says what each asks of the server and works, and whether ours meets the bar.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assetsMissing, startApiServer } from '../test/fixtures/apiserver.ts'
import { createKeeper } from '../test/fixtures/keeper.ts'
import { connect } from './api.ts'
import { type Built, buildAll, buildPackage, type Program } from './build.ts'
import { main } from './main.ts'
import { verdictTable } from './table.ts'
import { judge } from './toolkit/bar.ts'
import { type BenchOptions, help, readOptions } from './toolkit/options.ts'
import { ours, programs } from './toolkit/programs.ts'
import { figuresTable } from './toolkit/table.ts'
import { type Figures, runTrial } from './toolkit/trial.ts'
import { logFile, medians, type Trial, takeTurns, writeJson } from './turns.ts'

await main({ readOptions, help, missing: assetsMissing, bench })

async function bench(options: BenchOptions, load: number): Promise<number> {
  // The Stacks' definition and our program import it as a user does.
  await buildPackage()
  const { built, leftOut } = await buildAll(programs, options.only)
  const trials = await runTrials(built, options)
  const figures = medians(trials)
  console.log(`\n${figuresTable(figures, options)}\n`)
  const verdicts = judge(figures, options)
  console.log(figures.has(ours) ? `${verdictTable(verdicts)}\n` : `The bar is for ${ours}, which was not measured.\n`)
  for (const { name, title } of built) console.log(`${name}: ${title}`)
  const failed = trials.filter(({ failure }) => failure !== undefined)
  for (const { name, run, failure } of failed) console.log(`${name}, run ${run}: failed, ${failure}`)
  writeJson(options.json, load, { options, leftOut, trials, verdicts })
  return failed.length > 0 ? 1 : 0
}

/** Every program in turn, so many times, against one server. */
async function runTrials(built: Built<Program>[], options: BenchOptions): Promise<Trial<Figures>[]> {
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

  const trials = await takeTurns(built, options.runs, async ({ name, command }, run) => {
    const namespace = `${name}-${run}`
    const own = { name, command, namespace, logFile: logFile(`toolkit-${namespace}`) }
    return { figures: await runTrial(server, api, keeper, { ...options, ...own }), said: 'done' }
  })
  await api.close()
  await keeper.stop()
  return trials
}
