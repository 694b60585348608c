// npm run bench:devcluster: the embedded API server beside the real etcd and kube-apiserver, in turn: how soon it answers, how many objects it takes
// in a second, how soon 100 watchers hear of a change, what objects cost in memory. And the same server within a test's own process.

import { assetsMissing } from '../test/fixtures/apiserver.ts'
import { judge } from './devcluster/bar.ts'
import { type BenchOptions, help, readOptions } from './devcluster/options.ts'
import { buildServers } from './devcluster/servers.ts'
import { figuresTable } from './devcluster/table.ts'
import { runTrial } from './devcluster/trial.ts'
import { main } from './main.ts'
import { verdictTable } from './table.ts'
import { medians, takeTurns, writeJson } from './turns.ts'

await main({ readOptions, help, missing: assetsMissing, bench })

async function bench(options: BenchOptions, load: number): Promise<number> {
  const servers = await buildServers()
  const trials = await takeTurns(servers, options.runs, async (server, run) => {
    const figures = await runTrial(server, { ...options, memory: run === 1 ? options.memory : 0 })
    return { figures, said: `ready after ${figures.start.toFixed(0)} ms` }
  })
  const figures = medians(trials)
  const verdicts = judge(figures)
  console.log(`\n${figuresTable(figures)}\n\n${verdictTable(verdicts)}\n`)
  for (const { name, title } of servers) console.log(`${name}: ${title}`)
  writeJson(options.json, load, { options, trials, verdicts })
  return trials.some(({ failure }) => failure !== undefined) ? 1 : 0
}
