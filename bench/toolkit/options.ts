// The command line of the bench, and what its flags mean.

import { parseArgs } from 'node:util'
import { programs } from './programs.ts'

export interface BenchOptions {
  n: number
  only: string[]
  runs: number
  concurrency: number
  touches: number
  changes: number
  json: string | undefined
}

const all = programs.map(({ name }) => name)

export const help = `npm run bench:toolkit -- [options]

  --n N                number of Stacks, each with ten children (default 100)
  --only NAME,...      some of: ${all.join(', ')}
  --runs K             trials of each program; the table has medians (default 1)
  --concurrency C      reconciliations at once (default 10)
  --touches K          how often each Stack is touched, with nothing to do (default 10)
  --changes K          how often each Stack's message changes, and with it one child (default 5)
  --json FILE          writes every trial's figures`

/** Undefined when only help is asked for; throws a sentence when a flag is wrong. */
export function readOptions(args: string[]): BenchOptions | undefined {
  const { values } = parseArgs({
    args,
    options: {
      n: { type: 'string', default: '100' },
      only: { type: 'string', default: all.join(',') },
      runs: { type: 'string', default: '1' },
      concurrency: { type: 'string', default: '10' },
      touches: { type: 'string', default: '10' },
      changes: { type: 'string', default: '5' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return undefined
  const count = (flag: 'n' | 'runs' | 'concurrency' | 'touches' | 'changes') => {
    const text = values[flag]
    if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${flag} takes a number from 1, not ${text}`)
    return Number(text)
  }
  const only = values.only.split(',')
  const unknown = only.find(name => !all.includes(name))
  if (unknown !== undefined) throw new Error(`--only knows ${all.join(', ')}, not ${unknown}`)
  return {
    n: count('n'),
    only,
    runs: count('runs'),
    concurrency: count('concurrency'),
    touches: count('touches'),
    changes: count('changes'),
    json: values.json,
  }
}
