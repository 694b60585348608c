// The command line of the bench, and what its flags mean.

import { parseArgs } from 'node:util'
import { counting } from '../count.ts'

export interface BenchOptions {
  runs: number
  creates: number
  concurrency: number
  watchers: number
  changes: number
  pace: number
  memory: number
  json: string | undefined
}

export const help = `npm run bench:devcluster -- [options]

  --runs K             trials of each server; the table has medians (default 3)
  --creates N          ConfigMaps made one after the other, and as many again at once (default 1000)
  --concurrency C      how many of these at once (default 16)
  --watchers N         watches on one namespace (default 100)
  --changes N          changes that all of them hear of (default 100)
  --pace MS            time between two changes (default 50)
  --memory N           objects whose memory is measured, in the first run (default 10000; 0: not at all)
  --json FILE          writes every trial's figures`

const defaults = {
  runs: '3',
  creates: '1000',
  concurrency: '16',
  watchers: '100',
  changes: '100',
  pace: '50',
  memory: '10000',
}

/** Undefined when only help is asked for; throws a sentence when a flag is wrong. */
export function readOptions(args: string[]): BenchOptions | undefined {
  const numbers = Object.fromEntries(
    Object.entries(defaults).map(([name, value]) => [name, { type: 'string' as const, default: value }]),
  )
  const { values } = parseArgs({
    args,
    options: { ...numbers, json: { type: 'string' }, help: { type: 'boolean', short: 'h', default: false } },
  })
  if (values.help) return undefined
  const count = counting<keyof typeof defaults>(values)
  return {
    runs: count('runs'),
    creates: count('creates'),
    concurrency: count('concurrency'),
    watchers: count('watchers'),
    changes: count('changes'),
    pace: count('pace', 0),
    memory: count('memory', 0),
    json: values.json,
  }
}
