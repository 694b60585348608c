// npm run bench:app: the app controller as users run it, with a thousand apps on a real API server and simulated sidecars in one process
// of their own. Says what it takes when idle, how fast it reacts, what it asks of the server, and how soon another takes over.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Lifecycle, Operation, OperationSchedule, StatefulApp } from '../controller/app/kinds.ts'
import { assetsMissing, startApiServer } from '../test/fixtures/apiserver.ts'
import { createKeeper } from '../test/fixtures/keeper.ts'
import { connect } from './api.ts'
import { judge } from './app/bar.ts'
import { floorCrd } from './app/floor.ts'
import { type BenchOptions, help, readOptions } from './app/options.ts'
import { figuresTable, requestsTable } from './app/table.ts'
import { runTrial } from './app/trial.ts'
import { buildPackage } from './build.ts'
import { main } from './main.ts'
import { verdictTable } from './table.ts'
import { writeJson } from './turns.ts'

await main({ readOptions, help, missing: assetsMissing, bench })

async function bench(options: BenchOptions, load: number): Promise<number> {
  if (options.program === undefined) await buildPackage()
  const keeper = createKeeper()
  await using server = await startApiServer()
  const api = connect(server.kubeconfig, 32)
  try {
    const apply = async (crd: object) => {
      const file = join(server.dir, 'crd.json')
      writeFileSync(file, JSON.stringify(crd))
      await server.kubectl('apply', '--server-side', '-f', file)
    }
    const kinds = [Lifecycle, StatefulApp, Operation, OperationSchedule]
    for (const crd of [...kinds.map(kind => kind.crd()), floorCrd()]) await apply(crd)
    await server.kubectl('wait', '--for=condition=Established', 'crd', '--all')
    const figures = await runTrial({ ...options, server, api, keeper, say: text => console.log(text) })
    const verdicts = judge(options.apps, figures)
    console.log(`\n${figuresTable(options.apps, figures)}\n\n${requestsTable(figures)}\n`)
    console.log(verdictTable(verdicts))
    writeJson(options.json, load, { options, figures, verdicts })
    return 0
  } catch (error) {
    console.error(`failed: ${(error as Error).message}`)
    return 1
  } finally {
    await api.close()
    await keeper.stop()
  }
}
