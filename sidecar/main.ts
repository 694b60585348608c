/**
 * `shipmate sidecar`: starts the agent, and ends it as signals say.
 *
 * Guarantees: SIGTERM and SIGINT drain, SIGHUP makes room for the next agent; both end with 0, and the process with them, whatever still hangs. SIGTERM while it
 * makes room drains after all; a second one changes nothing. Standard output has nothing but the log.
 */
import { accessSync, constants } from 'node:fs'
import { dirname, join } from 'node:path'
import { systemClock } from '../shared/clock.ts'
import { messageOf } from '../shared/errors.ts'
import { createLog, levels } from '../shared/log.ts'
import { type AgentOptions, type RunningAgent, startAgent } from './agent.ts'
import { checkConfig } from './config/check.ts'
import { aborted } from './drain.ts'
import { Misuse, parseOptions, usage } from './options.ts'
import { askPreStop } from './prestop-client.ts'
import { OptionsError } from './server/servers.ts'

/** @param argv what follows the word `sidecar`; answers the exit code, unless an agent has run: that ends the process. The rest is for tests. */
export async function sidecar(
  argv: readonly string[],
  forTests: Pick<AgentOptions, 'fault' | 'bounds'> = {},
): Promise<number> {
  try {
    const asked = parseOptions(argv, process.env)
    switch (asked.command) {
      case 'help':
        process.stdout.write(usage)
        return 0
      case 'check':
        return check(asked.file)
      case 'prestop':
        return await askPreStop(asked.stateDir)
      case 'run':
        process.exit(await run({ ...asked.options, ...forTests }))
    }
  } catch (error) {
    const isMisuse = error instanceof Misuse || error instanceof OptionsError
    process.stderr.write(`shipmate sidecar: ${messageOf(error)}${isMisuse ? seeHelp(messageOf(error)) : ''}\n`)
    return isMisuse ? 2 : 1
  }
}

const seeHelp = (sentence: string) =>
  sentence.endsWith('?') ? ' See shipmate sidecar --help.' : '; see shipmate sidecar --help'

function check(file: string): number {
  const { lines, isUsable } = checkConfig(file)
  process.stdout.write(lines.length > 0 ? `${lines.join('\n')}\n` : `${file}: no problems\n`)
  return isUsable ? 0 : 1
}

async function run(options: Omit<AgentOptions, 'init' | 'clock' | 'log'>): Promise<number> {
  const level = levels.find(one => one === process.env['LOG_LEVEL'])
  const { logger: log } = createLog({ level })
  const draining = new AbortController()
  const replacing = Promise.withResolvers<void>()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => draining.abort())
  process.on('SIGHUP', () => replacing.resolve())
  // Its successor, after one that died while it drained: shipmate-init says so.
  if (process.env['SHIPMATE_DRAIN']) draining.abort()
  process.on('unhandledRejection', error =>
    log.error({ err: error }, 'a promise was rejected, and nobody was there; this is a defect'),
  )

  if (options.pod.uid === '')
    log.warn(
      {},
      'POD_UID is empty: no call can say which pod it is meant for, and runs of preStop are named without it',
    )
  const running: RunningAgent = await startAgent({ ...options, init: wrapperCommand(), clock: systemClock, log })
  log.info({ public: running.public, auth: options.auth, pod: options.pod }, 'started')
  running.listening.then(({ api, public: open }) => log.info({ api, public: open }, 'listening'))
  await Promise.race([aborted(draining.signal), replacing.promise])
  const isReplaced = !draining.signal.aborted && (await running.replace(draining.signal))
  if (!isReplaced) await running.drain()
  log.info({}, isReplaced ? 'left to its successor' : 'drained')
  return 0
}

/** `shipmate-init` where it is: named by the environment, or beside this program; else its twin. */
function wrapperCommand(): string[] {
  const program = process.argv[1] ?? ''
  const candidates = [
    process.env['SHIPMATE_INIT'],
    join(dirname(program), 'shipmate-init'),
    join(dirname(program), '../dist/shipmate-init'),
  ]
  for (const candidate of candidates) if (candidate && isExecutable(candidate)) return [candidate, 'exec']
  return [process.execPath, twinProgram(program), 'init', 'exec']
}

/** The bundle, also when the command line has loaded it. */
function twinProgram(program: string): string {
  return typeof __filename === 'string' ? __filename : program
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
