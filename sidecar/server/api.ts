/**
 * The API as an express application: who asks, for which pod, by which route, with what; then the agent.
 *
 * Guarantees: the first refusal in the protocol's order is the answer; nothing that a client sends is answered with a stack, a 500, or silence; a
 * WebSocket passes the same checks, and is refused by an HTTP answer like anything else.
 */
import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import type { Clock } from '../../shared/clock.ts'
import type { Logger } from '../../shared/log.ts'
import { Problem } from '../../shared/protocol/problems.ts'
import { type Route, type RouteName, routes } from '../../shared/protocol/routes.ts'
import type { Agent } from '../api.ts'
import { type Headers, problemOf, refuse, refuseRaw, reply } from './answer.ts'
import { hasBody, parseBody, readBody } from './body.ts'
import { type Call, createCalls } from './calls.ts'
import { aims, checkBody, checkId, checkQuery } from './check.ts'
import type { Gate } from './gate.ts'
import { createHolds } from './holds.ts'
import { createReaders } from './readers.ts'
import { refuseUpload } from './upload.ts'

export interface ApiOptions {
  readonly agent: Agent
  readonly gate: Gate
  readonly clock: Clock
  readonly log: Logger
  /** Called once for each answer. */
  readonly observe?: ((answer: Answered) => void) | undefined
  /** How much may wait for one reader of events, in bytes, before it is cut off. Default 1 MiB. */
  readonly longestBacklog?: number | undefined
}

export interface Answered {
  /** Undefined for what is no route. */
  readonly route: RouteName | undefined
  readonly method: string
  readonly status: number
}

export interface Api {
  /** Answers what comes to the server, upgrades and broken requests included. */
  serve(server: Server): void
  /** How many read events. */
  readonly readers: number
  /** Answers held calls, closes each connection with its next answer, sends readers away. Resolves when the readers are gone. */
  drain(): Promise<void>
}

/** Whether a request is to become a reader of events; all others are answered as if they had not asked for an upgrade. */
export const wantsEvents = ({ url = '', headers }: IncomingMessage) =>
  pathOf(url) === routes.getEvents.path && headers.upgrade?.toLowerCase() === 'websocket'

export function createApi({ agent, gate, clock, log, observe, longestBacklog }: ApiOptions): Api {
  const holds = createHolds(clock)
  const readers = createReaders({ agent, clock, log, longestBacklog })
  const upgrades = new WeakMap<IncomingMessage, { connection: Duplex; head: Buffer }>()
  /** Responses that are still to come: an upgraded connection has none. */
  const pending = new Set<ServerResponse>()
  const found = new WeakMap<IncomingMessage, RouteName>()
  let draining = false

  const calls = createCalls({
    agent,
    holds,
    async read({ request, response, query }) {
      if (query.log !== undefined) agent.run(query.log)
      const upgrade = upgrades.get(request)
      if (!upgrade || !wantsEvents(request)) {
        throw new Problem(
          'InvalidBody',
          'This is a WebSocket: ask with "Connection: Upgrade" and "Upgrade: websocket".',
        )
      }
      pending.delete(response)
      response.detachSocket(upgrade.connection as Parameters<typeof response.detachSocket>[0])
      await readers.accept(request, upgrade.connection, upgrade.head, query)
      return undefined
    },
  })

  const admit = (request: IncomingMessage) => {
    gate.admit(request)
    if (gate.namesPod) checkPod(request.headers['shipmate-pod-uid'], agent.state().pod.uid)
  }

  /** What is left to check once the route is known; then the call. */
  const perform = async <Name extends RouteName>(name: Name, request: Request, response: Response) => {
    const route: Route = routes[name]
    found.set(request, name)
    const bytes = hasBody(request) ? await readBody(request, response) : Buffer.alloc(0)
    const id = route.path.includes('{id}') ? checkId(String(request.params.id)) : ''
    const query = checkQuery(route, searchOf(request.url))
    const required = name === 'putRun' && gate.requiresAims ? aims : []
    const body = route.body && checkBody(route.body, parseBody(bytes, request.headers), required)
    const answer = await calls[name]({ id, query, body, request, response } as Call<Name>)
    if (answer) reply(response, answer)
  }

  const fail = (error: unknown, request: IncomingMessage, response: ServerResponse, headers?: Headers) => {
    if (response.destroyed || response.headersSent || (response.socket === null && upgrades.has(request))) return
    const problem = problemOf(error, unexpected => log.error({ err: unexpected, url: request.url }, 'a call failed'))
    if (problem.code === 'TooLarge') return refuseUpload(request, response, problem, clock)
    refuse(response, problem, { ...(problem.code === 'Unauthorized' ? gate.challenge : {}), ...headers })
  }

  const app = applicationOf(admit, perform, fail)

  const answer = (request: IncomingMessage, response: ServerResponse) => {
    if (draining) response.setHeader('connection', 'close')
    pending.add(response)
    response.once('close', () => pending.delete(response))
    request.url = originForm(request.url ?? '/')
    if (observe) {
      const { method = '' } = request
      response.once('finish', () => observe({ route: found.get(request), method, status: response.statusCode }))
    }
    app(request, response)
  }

  return {
    serve(server) {
      server.on('request', answer)
      server.on('checkContinue', answer)
      server.on('checkExpectation', answer)
      const detached = (request: IncomingMessage, connection: Duplex, head: Buffer) => {
        upgrades.set(request, { connection, head })
        answer(request, responseOn(request, connection))
      }
      server.on('upgrade', detached)
      server.on('connect', detached)
      server.on('clientError', refuseBroken)
    },
    get readers() {
      return readers.count
    },
    drain() {
      draining = true
      for (const response of pending) if (!response.headersSent) response.setHeader('connection', 'close')
      holds.release()
      return readers.close()
    },
  }
}

type Perform = (name: RouteName, request: Request, response: Response) => Promise<void>
type Fail = (error: unknown, request: IncomingMessage, response: ServerResponse, headers?: Headers) => void

function applicationOf(admit: (request: IncomingMessage) => void, perform: Perform, fail: Fail): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.disable('query parser')
  app.enable('case sensitive routing')
  app.enable('strict routing')
  app.use((request, _response, next) => {
    admit(request)
    next()
  })
  for (const [path, names] of byPath()) {
    const route = app.route(path.replace('{id}', ':id'))
    for (const name of names) route[routes[name].method]((request, response) => perform(name, request, response))
    const allow = allowed(names)
    route.all((request: Request, response: Response) => {
      fail(new Problem('MethodNotAllowed', `${path} has ${allow}, not ${request.method}.`), request, response, {
        allow,
      })
    })
  }
  app.use((request, response) => {
    fail(
      new Problem('NotFound', `There is no ${pathOf(request.url).slice(0, 200)}; see /openapi.json.`),
      request,
      response,
    )
  })
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => fail(error, request, response))
  return app
}

function byPath(): Map<string, RouteName[]> {
  const paths = new Map<string, RouteName[]>()
  for (const name of Object.keys(routes) as RouteName[]) {
    const { path } = routes[name]
    paths.set(path, [...(paths.get(path) ?? []), name])
  }
  return paths
}

function allowed(names: readonly RouteName[]): string {
  const methods = names.map(name => routes[name].method.toUpperCase())
  return methods.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
}

function checkPod(named: string | string[] | undefined, uid: string): void {
  if (named === undefined || named === '') {
    throw new Problem(
      'InvalidBody',
      'The header Shipmate-Pod-Uid is missing; it must be the uid of the pod that is meant.',
    )
  }
  if (named !== uid) throw new Problem('WrongPod', `This is pod ${uid}, not ${String(named).slice(0, 80)}.`)
}

const pathOf = (url: string) => url.split(/[?#]/, 1)[0] ?? ''
const searchOf = (url: string) => /\?([^#]*)/.exec(url)?.[1] ?? ''

/**
 * Only path and query, in visible ASCII, with each percent sign that begins no escape standing for itself: so every URL can be routed and
 * decoded.
 */
function originForm(url: string): string {
  const absolute = url.startsWith('/') ? null : URL.parse(url)
  const target = absolute ? absolute.pathname + absolute.search : `${url.startsWith('/') ? '' : '/'}${url}`
  const visible = target.replace(/#.*$/s, '').replace(/[^\x21-\x7e]/g, encodeURIComponent)
  const path = pathOf(visible)
  try {
    decodeURIComponent(path)
    return visible
  } catch {
    return path.replaceAll('%', '%25') + visible.slice(path.length)
  }
}

/** A response on a connection that Node has let go of, which ends with it. */
function responseOn(request: IncomingMessage, connection: Duplex): ServerResponse {
  const response = new ServerResponse(request)
  const socket = connection as Parameters<typeof response.assignSocket>[0]
  connection.on('error', () => connection.destroy())
  socket.on('timeout', () => connection.destroy())
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.on('finish', () => connection.end(() => connection.destroy()))
  return response
}

/** What Node could not read as a request, or not in time. */
function refuseBroken(error: Error & { code?: string }, connection: Duplex): void {
  if (error.code === 'ECONNRESET' || !connection.writable) return void connection.destroy()
  if (error.code === 'HPE_HEADER_OVERFLOW') return refuseRaw(connection, 431, 'Request Header Fields Too Large')
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return refuseRaw(connection, 408, 'Request Timeout')
  refuseRaw(connection, 400, 'Bad Request', new Problem('InvalidBody', 'This is no HTTP/1.1 request.'))
}
