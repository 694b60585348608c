/**
 * The sidecar's two ports and its socket, from the start of the agent to its end.
 *
 * Guarantees: the public port and the socket are open at once, the API only when it is asked for and what guards it is there; until then `waiting`
 * says what is missing. A port that the API cannot have is tried again every second, and named there. Certificates and tokens that change are used for what comes
 * next, without a restart.
 */

import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { type Clock, sleep } from '../../shared/clock.ts'
import { messageOf } from '../../shared/errors.ts'
import type { Logger } from '../../shared/log.ts'
import type { Agent } from '../api.ts'
import { type Address, formatAddress, isLoopback, parseAddress } from './address.ts'
import { type Answered, type Api, createApi, wantsEvents } from './api.ts'
import { loadCertificate, loadToken, type ServerCertificate } from './credentials.ts'
import { type AuthMode, certificateGate, type Gate, openGate, tokenGate } from './gate.ts'
import { addressOf, bound, closeAtOnce, limits, listen, placeOf, stopListening } from './listen.ts'
import { createControlServer, createPublicServer } from './public.ts'
import { listenOnSocket } from './socket.ts'
import { type Watched, watchFiles } from './watched.ts'

export interface ServersOptions {
  readonly agent: Agent
  /** HOST:PORT of the API. */
  readonly listen: string
  /** HOST:PORT of the public port. */
  readonly publicListen: string
  readonly stateDir: string
  readonly auth: AuthMode
  /** With tls.crt and tls.key and, for `mtls`, ca.crt. */
  readonly tlsDir?: string | undefined
  /** With `token`. */
  readonly tokenFile?: string | undefined
  readonly clock: Clock
  readonly log: Logger
  /** How many connections the API takes at once. Default 2,500. */
  readonly connections?: number | undefined
  /** How often files are looked at for changes, in milliseconds. Default 5,000. */
  readonly reloadEvery?: number | undefined
  /** Called once for each answer of the API. */
  readonly observe?: ((answer: Answered) => void) | undefined
}

export interface Servers {
  /** Host:port of the API; undefined while it is closed. */
  readonly api: string | undefined
  /** Host:port of the public port. */
  readonly public: string
  /** How many read events. */
  readonly readers: number
  /** Called when the API has opened; at once if it has. */
  onListening(listener: (addresses: { api: string; public: string }) => void): void
  /** Opens the API as soon as what guards it is there; resolves when it is open, or will not be any more as all is closed. */
  openApi(): Promise<void>
  /** What the API still waits for, each a sentence. */
  waiting(): string[]
  /**
   * The API takes no more connections, held calls are answered, readers of events sent away; resolves when all calls are answered. For the time when
   * the agent has nothing left to tell: the public port and the socket stay.
   */
  drain(): Promise<void>
  /** Ends everything at once. */
  close(): Promise<void>
}

/** What cannot be served as asked for: the person who started the agent must change its options. */
export class OptionsError extends Error {}

/** How long after a port could not be had it is tried again, in milliseconds. */
const retryEvery = 1_000

export async function startServers(options: ServersOptions): Promise<Servers> {
  const { agent, auth, clock, log } = options
  const place = parsed(options.listen, '--listen')
  const publicPlace = parsed(options.publicListen, '--public-listen')
  checkOptions(options, place)
  const guards = await watchGuards(options)

  const waiting = () => (api ? [] : [...guards.missing(), ...(refused === undefined ? [] : [refused])])
  const missing = () => [...new Set([...waiting(), ...agent.missing()])]
  const control = createControlServer(agent, log)
  const open = createPublicServer(agent, missing, log)
  try {
    // First, as it tells whether this folder has an agent already.
    await listenOnSocket(control, options.stateDir, { clock, log })
    await listen(open, placeOf(publicPlace), log).catch(error => {
      throw new Error(
        `--public-listen is "${options.publicListen}", and that cannot be listened on: ${reasonOf(error)}`,
      )
    })
  } catch (error) {
    guards.close()
    await Promise.all([control, open].map(closeAtOnce))
    throw error
  }

  const listeners: ((addresses: { api: string; public: string }) => void)[] = []
  const publicAddress = formatAddress(addressOf(open))
  let api: { server: Server; api: Api; address: string } | undefined
  let opening: Promise<void> | undefined
  /** Why the API could not be opened last time. */
  let refused: string | undefined
  const closing = new AbortController()

  const openApi = async () => {
    await guards.ready
    if (closing.signal.aborted) return
    const gate = gateOf(auth, clock, guards.token)
    const served = createApi({ agent, gate, clock, log, observe: options.observe })
    const server = bound(createApiServer(guards.certificate?.value), options.connections ?? 2_500)
    served.serve(server)
    if (!(await listenPatiently(server))) return closeAtOnce(server)
    guards.renewed(certificate => setCertificate(server, certificate))
    api = { server, api: served, address: formatAddress(addressOf(server)) }
    for (const listener of listeners.splice(0)) listener({ api: api.address, public: publicAddress })
  }

  /** Until it listens; false if all is closed before. */
  const listenPatiently = async (server: Server): Promise<boolean> => {
    while (!closing.signal.aborted) {
      try {
        await listen(server, placeOf(place), log)
        refused = undefined
        return !closing.signal.aborted
      } catch (error) {
        const sentence = `the API cannot listen on ${options.listen}: ${reasonOf(error)}`
        if (sentence !== refused) log.error({ err: error }, `${sentence}; it is tried again every second`)
        refused = sentence
      }
      await sleep(clock, retryEvery, closing.signal).catch(() => undefined)
    }
    return false
  }

  let drained: Promise<void> | undefined
  const drain = async () => {
    guards.close()
    if (!api) return
    const answered = stopListening(api.server)
    await api.api.drain()
    api.server.closeIdleConnections()
    await answered
  }

  return {
    get api() {
      return api?.address
    },
    public: publicAddress,
    get readers() {
      return api?.api.readers ?? 0
    },
    onListening(listener) {
      if (api) listener({ api: api.address, public: publicAddress })
      else listeners.push(listener)
    },
    openApi() {
      opening ??= openApi()
      return opening
    },
    waiting,
    drain() {
      drained ??= drain()
      return drained
    },
    async close() {
      closing.abort(new Error('the servers are closed'))
      guards.close()
      await opening?.catch(() => undefined)
      const servers = api ? [api.server, control, open] : [control, open]
      await Promise.all([...servers.map(closeAtOnce), api?.api.drain()])
    },
  }
}

const reasonOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? messageOf(error)

function parsed(text: string, option: string): Address {
  try {
    return parseAddress(text, option)
  } catch (error) {
    throw new OptionsError((error as Error).message)
  }
}

function checkOptions({ auth, tlsDir, tokenFile, listen: text }: ServersOptions, { host }: Address): void {
  const local = isLoopback(host)
  if (auth === 'none' && !local) {
    throw new OptionsError(
      `--auth none is for loopback addresses only, and --listen is "${text}"; use 127.0.0.1:PORT, or --auth mtls`,
    )
  }
  if (auth === 'mtls' && tlsDir === undefined) throw new OptionsError('--auth mtls needs --tls-dir')
  if (auth === 'token' && tokenFile === undefined) throw new OptionsError('--auth token needs --token-file')
  if (auth === 'token' && !local && tlsDir === undefined) {
    throw new OptionsError(`--auth token needs --tls-dir, as --listen "${text}" is no loopback address`)
  }
}

function gateOf(auth: AuthMode, clock: Clock, token: Watched<Buffer> | undefined): Gate {
  if (auth === 'mtls') return certificateGate(() => clock.now())
  if (auth === 'token') return tokenGate(() => token?.value)
  return openGate
}

interface Guards {
  readonly certificate: Watched<ServerCertificate> | undefined
  readonly token: Watched<Buffer> | undefined
  /** Resolves when all are there, or will not be looked for any more. */
  readonly ready: Promise<void>
  missing(): string[]
  /** Calls for each later certificate. */
  renewed(listener: (certificate: ServerCertificate) => void): void
  close(): void
}

async function watchGuards(options: ServersOptions): Promise<Guards> {
  const { auth, tlsDir, tokenFile, clock, log, reloadEvery: every } = options
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  let certificate: Watched<ServerCertificate> | undefined
  let token: Watched<Buffer> | undefined
  let renew = (_certificate: ServerCertificate) => {}
  const missing = () => [certificate, token].flatMap(watched => watched?.missing() ?? [])
  const check = () => {
    if (missing().length === 0) resolve()
  }
  const files = { clock, log, every }
  if (tlsDir !== undefined && auth !== 'none') {
    const names = auth === 'mtls' ? ['tls.crt', 'tls.key', 'ca.crt'] : ['tls.crt', 'tls.key']
    const paths = names.map(name => join(tlsDir, name))
    const changed = (value: ServerCertificate) => {
      if (certificate) log.info('the certificates have changed and are in use')
      renew(value)
      check()
    }
    certificate = await watchFiles({ ...files, paths, load: loadCertificate, changed })
  }
  if (tokenFile !== undefined && auth === 'token') {
    token = await watchFiles({ ...files, paths: [tokenFile], load: loadToken, changed: check })
  }
  check()
  return {
    certificate,
    token,
    ready,
    missing,
    renewed(listener) {
      renew = listener
      if (certificate?.value) listener(certificate.value)
    },
    close() {
      certificate?.close()
      token?.close()
      resolve()
    },
  }
}

function createApiServer(certificate: ServerCertificate | undefined): Server {
  const settings = { ...limits, shouldUpgradeCallback: wantsEvents }
  if (!certificate) return createServer(settings)
  return process.getBuiltinModule('node:https').createServer({
    ...settings,
    ...secure(certificate),
    requestCert: certificate.ca !== undefined,
    // Who shows no certificate, or a wrong one, is told so in HTTP.
    rejectUnauthorized: false,
    handshakeTimeout: 10_000,
    ALPNProtocols: ['http/1.1'],
  }) as unknown as Server
}

function setCertificate(server: Server, certificate: ServerCertificate): void {
  if ('setSecureContext' in server) {
    ;(server as unknown as import('node:tls').Server).setSecureContext(secure(certificate))
  }
}

function secure(certificate: ServerCertificate) {
  const { constants } = process.getBuiltinModule('node:crypto')
  // A resumed session would be trusted for the sake of authorities that may have been replaced since.
  return { ...certificate, minVersion: 'TLSv1.3' as const, secureOptions: constants.SSL_OP_NO_TICKET }
}
