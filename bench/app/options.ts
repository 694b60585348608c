// The command line of the bench, and what its flags mean.

import { parseArgs } from 'node:util'
import { counting } from '../count.ts'

export interface BenchOptions {
  apps: number
  idle: number
  rounds: number
  events: number
  pace: number
  wishes: number
  wishPace: number
  takeovers: number
  json: string | undefined
  profile: string | undefined
  program: string | undefined
}

export const help = `npm run bench:app -- [options]

  --apps N             StatefulApps of one pod each (default 1000)
  --idle SECONDS       how long the idle controller is looked at, and again with ten times the pings (default 60)
  --rounds K           how often the times below are measured; the table has medians (default 3)
  --events N           events of sidecars in a round, and as many plain status writes (default 400)
  --pace MS            time between two events (default 25)
  --wishes N           wishes for an action in a round (default 100)
  --wish-pace MS       time between two wishes (default 150)
  --takeovers K        how often the leader is killed (default 1; 0: not at all)
  --json FILE          writes every figure
  --program FILE       another build's bin/shipmate.cjs, to compare with (default: this one's, built anew)
  --profile FOLDER     lets the first controller write CPU profiles there, when it ends; its figures are then worse, and no leader is killed`

const defaults = {
  apps: '1000',
  idle: '60',
  rounds: '3',
  events: '400',
  pace: '25',
  wishes: '100',
  'wish-pace': '150',
  takeovers: '1',
}

/** Undefined when only help is asked for; throws a sentence when a flag is wrong. */
export function readOptions(args: string[]): BenchOptions | undefined {
  const numbers = Object.fromEntries(
    Object.entries(defaults).map(([name, value]) => [name, { type: 'string' as const, default: value }]),
  )
  const { values } = parseArgs({
    args,
    options: {
      ...numbers,
      json: { type: 'string' },
      profile: { type: 'string' },
      program: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return undefined
  const count = counting<keyof typeof defaults>(values)
  return {
    apps: count('apps'),
    idle: count('idle'),
    rounds: count('rounds'),
    events: count('events'),
    pace: count('pace'),
    wishes: count('wishes'),
    wishPace: count('wish-pace'),
    takeovers: values.profile === undefined ? count('takeovers', 0) : 0,
    json: values.json,
    profile: values.profile,
    program: values.program,
  }
}
