/**
 * The command line of `exec`: `--name value` pairs, each known and each value of its kind, then `--` and the command. The same as options.c.
 */
import { constants } from 'node:os'

export interface ExecOptions {
  readonly dir: string
  readonly log: string
  readonly logOffset: number
  readonly logHead: number
  readonly logTail: number
  /** Milliseconds; none if absent. */
  readonly timeout: number | undefined
  readonly cancelSignal: NodeJS.Signals
  /** Milliseconds. */
  readonly grace: number
  readonly cwd: string | undefined
  readonly uid: number | undefined
  readonly gid: number | undefined
  readonly nice: number | undefined
  readonly command: string
  readonly args: string[]
}

const texts = ['dir', 'log', 'cwd', 'cancel-signal']
const ids: [number, number] = [0, 2 ** 32 - 2]
const sizes: [number, number] = [0, Number.MAX_SAFE_INTEGER]
const numbers: Record<string, [least: number, most: number]> = {
  'log-offset': sizes,
  'log-head': sizes,
  'log-tail': sizes,
  timeout: sizes,
  grace: sizes,
  uid: ids,
  gid: ids,
  nice: [-20, 19],
}

/** @returns the options, or what is wrong with them */
export function parseExec(argv: readonly string[]): ExecOptions | string {
  const split = argv.indexOf('--')
  const [command, ...args] = split < 0 ? [] : argv.slice(split + 1)
  const text: Record<string, string> = {}
  const number: Record<string, number> = {}
  const pairs = split < 0 ? argv : argv.slice(0, split)
  for (let i = 0; i < pairs.length; i += 2) {
    const [option = '', value] = pairs.slice(i, i + 2)
    const name = option.startsWith('--') ? option.slice(2) : ''
    const range = Object.hasOwn(numbers, name) ? numbers[name] : undefined
    if (!range && !texts.includes(name)) return `${option} is no option here`
    if (value === undefined) return `${option} needs a value`
    if (!range) text[name] = value
    else if (/^[+-]?\d+$/.test(value) && Number(value) >= range[0] && Number(value) <= range[1])
      number[name] = Number(value)
    else return `${option} is ${value}: a whole number from ${range[0]} to ${range[1]} is accepted`
  }
  const { dir, log, cwd, 'cancel-signal': signal = 'SIGTERM' } = text
  if (!isSignal(signal)) return `--cancel-signal is ${signal}: the name of a signal, such as SIGTERM, is accepted`
  if (dir === undefined || log === undefined || command === undefined) {
    return 'exec needs --dir DIR, --log DIR and, after --, a command'
  }
  return {
    dir,
    log,
    logOffset: number['log-offset'] ?? 0,
    logHead: number['log-head'] ?? 1 << 20,
    logTail: number['log-tail'] ?? 4 << 20,
    timeout: number['timeout'],
    cancelSignal: signal,
    grace: number['grace'] ?? 30_000,
    cwd,
    uid: number['uid'],
    gid: number['gid'],
    nice: number['nice'],
    command,
    args,
  }
}

function isSignal(name: string): name is NodeJS.Signals {
  return Object.hasOwn(constants.signals, name)
}
