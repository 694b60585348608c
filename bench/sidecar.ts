// npm run bench:sidecar: the agent as it runs in its image beside a bare node:http server on the same Node, in one run. Says what was
// measured, of what the memory is made, and whether the agent meets the bar.

import { mkdirSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { createKeeper } from '../test/fixtures/keeper.ts'
import { main } from './main.ts'
import { judge } from './sidecar/bar.ts'
import { type FlagFigures, flagsTable, measureFlags } from './sidecar/flags.ts'
import { type BenchOptions, help, readOptions } from './sidecar/options.ts'
import { makeImage, makeWholeImage, type Program } from './sidecar/programs.ts'
import { figuresTable, memoryTable } from './sidecar/table.ts'
import { type AllFigures, runTrial, type Surroundings } from './sidecar/trial.ts'
import { medianOf } from './statistics.ts'
import { verdictTable } from './table.ts'
import { writeJson } from './turns.ts'

await main({ readOptions, help, bench })

async function bench(options: BenchOptions, load: number): Promise<number> {
  const folder = mkdtempSync(join(options.dir, 'shipmate-bench-'))
  const keeper = createKeeper(folder)
  const running = new Set<Program>()
  const interrupt = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => interrupt.abort(new Error(`interrupted by ${signal}`)))
  }
  const { signal } = interrupt

  const trials: AllFigures[] = []
  const flags: FlagFigures[] = []
  try {
    const image = await makeImage(join(folder, 'image'))
    const whole = options.flags ? await makeWholeImage(join(folder, 'whole'), image) : undefined
    const around = (name: string): Surroundings => {
      const own = join(folder, name)
      mkdirSync(own)
      return { keeper, image, folder: own, options, signal, say: text => console.log(`${name}: ${text}`) }
    }
    for (let run = 1; run <= options.runs; run++) {
      trials.push(await runTrial(around(`run ${run}`), running))
      if (whole) flags.push(await measureFlags(around(`run ${run}, flags`), whole, running))
    }
  } catch (error) {
    console.error(signal.aborted ? signal.reason.message : `failed: ${(error as Error).message}`)
    return 1
  } finally {
    await Promise.all([...running].map(program => program.stop()))
    await keeper.stop()
  }

  const figures = medianOf(trials)
  const verdicts = judge(figures, options)
  console.log(`\n${figuresTable(figures, options)}\n\n${memoryTable(figures, options)}\n`)
  if (flags.length > 0) console.log(`${flagsTable(medianOf(flags), options.actions)}\n`)
  console.log(`${verdictTable(verdicts)}\n`)
  console.log(`bare: a node:http server, CommonJS, Node's default flags; its run is a spawn of the same program, without HTTP
agent: dist/agent.cjs under shipmate-init with the flags of the image, --auth none, five exec probes every 2 s
agent-mtls: the same with mTLS, a signed configuration and a fence in each PUT`)
  writeJson(options.json, load, { options, trials, flags, verdicts })
  return 0
}
