// npm run bench:runtime: the Widget work by our runtime, Go's controller-runtime and others, in turn, against one real
// API server. Says what was measured, and whether our runtime meets the bar.

import { fileURLToPath } from 'node:url'
import { assetsMissing, startApiServer } from '../test/fixtures/apiserver.ts'
import { createKeeper } from '../test/fixtures/keeper.ts'
import { connect } from './api.ts'
import { judge, ours, type Verdict } from './bar.ts'
import { type Built, buildAll } from './build.ts'
import { main } from './main.ts'
import { type BenchOptions, help, readOptions } from './options.ts'
import { programs, type WidgetProgram } from './programs.ts'
import { figuresTable, verdictTable } from './table.ts'
import { type Figures, runTrial } from './trial.ts'
import { logFile, medians, type Trial, takeTurns, writeJson } from './turns.ts'
import { warmUp } from './widgets.ts'

type WidgetTrial = Trial<Figures> & { n: number }

await main({ readOptions, help, missing: assetsMissing, bench })

async function bench(options: BenchOptions, load: number): Promise<number> {
  const { built, leftOut } = await buildAll(programs, options.only)
  const trials: WidgetTrial[] = []
  const verdicts: Record<number, Verdict[]> = {}
  for (const n of options.ns) {
    const own = await runTrials(built, n, options)
    trials.push(...own)
    const figures = medians(own)
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
  writeJson(options.json, load, { options, leftOut, trials, verdicts })
  return failed.length > 0 ? 1 : 0
}

/** Every program in turn, so many times, against one server. */
async function runTrials(built: Built<WidgetProgram>[], n: number, options: BenchOptions): Promise<WidgetTrial[]> {
  const keeper = createKeeper()
  await using server = await startApiServer({ args: ['--delete-collection-workers=16'] })
  const api = connect(server.kubeconfig, 24)
  await server.kubectl('apply', '-f', fileURLToPath(new URL('widget/crd.yaml', import.meta.url)))
  await server.kubectl('wait', '--for=condition=Established', 'crd/widgets.bench.example.com')
  await warmUp(api)

  console.log(`${n} Widgets`)
  const trials = await takeTurns(built, options.runs, async ({ name, command, isController }, run) => {
    const namespace = `${name}-${n}-${run}`
    const figures = await runTrial(server, api, keeper, {
      ...options,
      ...{ name, command, isController, namespace, n },
      logFile: logFile(namespace),
      idle: run === 1 ? options.idle : 0,
    })
    return { figures, said: `converged in ${figures.cold.toFixed(2)} s` }
  })
  await api.close()
  await keeper.stop()
  return trials.map(trial => ({ ...trial, n }))
}
