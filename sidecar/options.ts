/**
 * The sidecar's command line. Pure, but for the folder in which it was called.
 *
 * Guarantees: what cannot work is refused with one sentence that names the flag, its value and what would be accepted. Every path is absolute, as what it names is
 * also used from other folders.
 */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parseDuration } from '../shared/duration.ts'
import { suggestion } from '../shared/nearest.ts'
import type { AgentOptions } from './agent.ts'

export const usage = `Usage: shipmate sidecar --config FILE --state-dir DIR [options]
       shipmate sidecar --check-config FILE
       shipmate sidecar prestop --state-dir DIR

The agent beside an application: observes its state, and runs declared actions.

Options:
  --config FILE               states, probes, actions and preStop of a Lifecycle, or all of it, as YAML or JSON; reloaded when it changes
  --state-dir DIR             where runs are written down; on disk, and the agent's own
  --listen HOST:PORT          the API (default :7443; with --auth none 127.0.0.1:7443)
  --public-listen HOST:PORT   /livez, /readyz, /metrics and /prestop (default :7080; with --auth none 127.0.0.1:7080)
  --auth mtls|token|none      who may ask (default mtls; none on loopback addresses only)
  --tls-dir DIR               tls.crt, tls.key, ca.crt and lifecycle.pub
  --token-file FILE           the bearer token
  --drain-timeout DURATION    how long runs may go on after SIGTERM, the cancel grace included (default 30s)
  --check-config FILE         say what is wrong with a configuration, and nothing else
  -h, --help                  print this help

Environment: POD_NAME, POD_NAMESPACE, POD_UID (needed but with --auth none), SHIPMATE_LIFECYCLE, LOG_LEVEL.
Exit codes: 0 drained, 1 failed, 2 called the wrong way.

Example:
  shipmate sidecar --config lifecycle.yaml --state-dir /tmp/shipmate --auth none
`

const flags = {
  config: { type: 'string' },
  'state-dir': { type: 'string' },
  listen: { type: 'string' },
  'public-listen': { type: 'string' },
  auth: { type: 'string' },
  'tls-dir': { type: 'string' },
  'token-file': { type: 'string' },
  'drain-timeout': { type: 'string' },
  'check-config': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

const modes = ['mtls', 'token', 'none'] as const

/** What was asked for on the command line. */
export type Asked =
  | { readonly command: 'help' }
  | { readonly command: 'check'; readonly file: string }
  | { readonly command: 'prestop'; readonly stateDir: string }
  | { readonly command: 'run'; readonly options: Omit<AgentOptions, 'init' | 'clock' | 'log' | 'fault' | 'bounds'> }

/** It was called the wrong way. */
export class Misuse extends Error {}

export function parseOptions(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Asked {
  const { values, positionals } = parsed(argv)
  const stateDir = absolute('state-dir', values['state-dir'])
  if (values.help) return { command: 'help' }
  if (positionals.length > 0) {
    if (positionals.length > 1 || positionals[0] !== 'prestop')
      throw new Misuse(`unknown command "${positionals.join(' ')}"; there is prestop`)
    if (stateDir === undefined) throw new Misuse('prestop needs --state-dir')
    return { command: 'prestop', stateDir }
  }
  if (values['check-config'] !== undefined) return { command: 'check', file: values['check-config'] }
  const config = absolute('config', values.config)
  if (config === undefined) throw new Misuse('--config is missing')
  if (stateDir === undefined) throw new Misuse('--state-dir is missing')
  const auth = modes.find(mode => mode === (values.auth ?? 'mtls'))
  if (!auth) throw new Misuse(`--auth is "${values.auth}"; it must be one of ${modes.join(', ')}`)
  const uid = env['POD_UID'] ?? ''
  if (uid === '' && auth !== 'none')
    throw new Misuse(`--auth ${auth} needs the variable POD_UID: every call names the pod that it is meant for`)
  const drain = values['drain-timeout'] ?? '30s'
  const drainTimeoutMs = parseDuration(drain)
  if (drainTimeoutMs === undefined)
    throw new Misuse(`--drain-timeout is "${drain}"; it must be a duration, as 30s or 1m30s`)
  return {
    command: 'run',
    options: {
      config,
      stateDir,
      listen: values.listen ?? (auth === 'none' ? '127.0.0.1:7443' : ':7443'),
      publicListen: values['public-listen'] ?? (auth === 'none' ? '127.0.0.1:7080' : ':7080'),
      auth,
      tlsDir: absolute('tls-dir', values['tls-dir']),
      tokenFile: absolute('token-file', values['token-file']),
      drainTimeoutMs,
      pod: { name: env['POD_NAME'] ?? '', namespace: env['POD_NAMESPACE'] ?? '', uid },
      lifecycle: env['SHIPMATE_LIFECYCLE'] ?? '',
    },
  }
}

/** An empty one, as of a variable that is not set, would be the folder in which it was called. */
function absolute(option: string, path: string | undefined): string | undefined {
  if (path === '') throw new Misuse(`--${option} is empty`)
  return path === undefined ? undefined : resolve(path)
}

function parsed(argv: readonly string[]) {
  const { tokens } = parseArgs({ args: [...argv], options: flags, strict: false, allowPositionals: true, tokens: true })
  const names = Object.keys(flags).map(name => `--${name}`)
  for (const token of tokens) {
    if (token.kind === 'option' && !Object.hasOwn(flags, token.name))
      throw new Misuse(`unknown option "${token.rawName}"${suggestion(token.rawName, names)}`)
  }
  try {
    return parseArgs({ args: [...argv], options: flags, allowPositionals: true })
  } catch (error) {
    throw new Misuse(error instanceof Error ? error.message : String(error))
  }
}
