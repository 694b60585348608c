// The command line of the bench, and what its flags mean.

import { parseArgs } from 'node:util'
import { programs } from './programs.ts'

export interface BenchOptions {
  ns: number[]
  only: string[]
  runs: number
  concurrency: number
  changes: number
  pace: number
  repairs: number
  idle: number
  json: string | undefined
}

const all = programs.map(({ name }) => name)

export const help = `npm run bench:runtime -- [options]

  --n 1000,5000        numbers of Widgets
  --only NAME,...      some of: ${all.join(', ')}
  --runs K             trials of each program; the table has medians (default 1)
  --concurrency C      reconciles at once (default 10)
  --changes C          Widgets changed to measure the time to their status (default 400)
  --pace MS            time between two changes (default 25)
  --repairs C          ConfigMaps deleted, and as many changed (default 20)
  --idle SECONDS       how long the idle program is looked at, in the first run (default 60; 0: not at all)
  --json FILE          writes every trial's figures`

/** Undefined when only help is asked for; throws a sentence when a flag is wrong. */
export function readOptions(args: string[]): BenchOptions | undefined {
  const { values } = parseArgs({
    args,
    options: {
      n: { type: 'string', default: '1000,5000' },
      only: { type: 'string', default: all.join(',') },
      runs: { type: 'string', default: '1' },
      concurrency: { type: 'string', default: '10' },
      changes: { type: 'string', default: '400' },
      pace: { type: 'string', default: '25' },
      repairs: { type: 'string', default: '20' },
      idle: { type: 'string', default: '60' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return undefined
  const count = (flag: string, text: string, least: number) => {
    if (!/^\d+$/.test(text) || Number(text) < least)
      throw new Error(`--${flag} takes a number from ${least}, not ${text}`)
    return Number(text)
  }
  const only = values.only.split(',')
  const unknown = only.find(name => !all.includes(name))
  if (unknown !== undefined) throw new Error(`--only knows ${all.join(', ')}, not ${unknown}`)
  return {
    ns: values.n.split(',').map(text => count('n', text, 1)),
    only,
    runs: count('runs', values.runs, 1),
    concurrency: count('concurrency', values.concurrency, 1),
    changes: count('changes', values.changes, 1),
    pace: count('pace', values.pace, 0),
    repairs: count('repairs', values.repairs, 1),
    idle: count('idle', values.idle, 0),
    json: values.json,
  }
}
