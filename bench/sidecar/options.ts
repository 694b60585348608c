// The command line of the bench, and what its flags mean.

import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'

export interface BenchOptions {
  runs: number
  actions: number
  starts: number
  settle: number
  idle: number
  burst: number
  readers: number
  flags: boolean
  dir: string
  json: string | undefined
}

export const help = `npm run bench:sidecar -- [options]

  --runs K             trials; the table has medians (default 1)
  --actions N          runs of each agent, one after the other, and as many plain spawns (default 2000)
  --starts N           starts of each program (default 10)
  --settle SECONDS     how long each is left alone before its memory is looked at (default 10)
  --idle SECONDS       how long the CPU of the idle programs is counted (default 20)
  --burst N            runs in a burst, 16 at once (default 500)
  --readers N          readers of events in the second burst (default 50)
  --flags              also measures the agent without each of the flags it is started with, and with the whole
                       of its libraries (2 minutes more)
  --dir DIR            where the agents keep their state; on disk (default ${tmpdir()})
  --json FILE          writes every trial's figures`

/** Undefined when only help is asked for; throws a sentence when a flag is wrong. */
export function readOptions(args: string[]): BenchOptions | undefined {
  const { values } = parseArgs({
    args,
    options: {
      runs: { type: 'string', default: '1' },
      actions: { type: 'string', default: '2000' },
      starts: { type: 'string', default: '10' },
      settle: { type: 'string', default: '10' },
      idle: { type: 'string', default: '20' },
      burst: { type: 'string', default: '500' },
      readers: { type: 'string', default: '50' },
      flags: { type: 'boolean', default: false },
      dir: { type: 'string', default: tmpdir() },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return undefined
  const count = (flag: 'runs' | 'actions' | 'starts' | 'settle' | 'idle' | 'burst' | 'readers') => {
    const text = values[flag]
    if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${flag} takes a number from 1, not ${text}`)
    return Number(text)
  }
  return {
    runs: count('runs'),
    actions: count('actions'),
    starts: count('starts'),
    settle: count('settle'),
    idle: count('idle'),
    burst: count('burst'),
    readers: count('readers'),
    flags: values.flags,
    dir: values.dir,
    json: values.json,
  }
}
