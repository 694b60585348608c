/**
 * Asks an application from here: by a command in its container, or over HTTP at the pod's address.
 *
 * Guarantees: it never rejects, and says what is certain: that it went well, that it was refused, that nothing was sent, or that nobody knows. Nothing is sent twice.
 */
import { connect } from 'node:net'
import type { Clock } from '../../../shared/clock.ts'
import { sleep } from '../../../shared/clock.ts'
import { parseDuration } from '../../../shared/duration.ts'
import { messageOf, ShipmateError } from '../../../shared/errors.ts'
import { compileCondition, type Answer as HttpSaid } from '../../../shared/lifecycle/guard.ts'
import { defaults, type HttpCall } from '../../../shared/lifecycle/model.ts'
import { expand, TemplateError } from '../../../shared/params/template.ts'
import { KubeError, Unavailable } from '../../kube/errors.ts'
import type { ExecOptions, ExecResult } from '../../kube/exec.ts'
import type { Ref } from '../../kube/kind.ts'
import { createHttpClient, type HttpClient } from '../../toolkit/clients/http.ts'
import { HttpError } from '../../toolkit/clients/http-error.ts'
import type { PodAddress } from '../agents/address.ts'
import type { Call, Way } from './calls.ts'

/** What became of a call. */
export type Answer =
  | { readonly is: 'done'; readonly text: string; readonly exitCode: number | null }
  | {
      readonly is: 'refused'
      readonly text: string
      readonly exitCode: number | null
      /** Of an HTTP answer. */
      readonly status: number | null
      readonly message: string
    }
  /** Nothing has happened. `isClosed`: nobody listens there. */
  | { readonly is: 'unsent'; readonly message: string; readonly isClosed: boolean }
  /** It may have happened, and may still go on. */
  | { readonly is: 'lost'; readonly message: string }

/** A command in a container: `exec` with the controller's own credentials. */
export type Exec = (pod: Ref, options: ExecOptions) => Promise<ExecResult>

export interface AskOptions {
  readonly params: Readonly<Record<string, unknown>>
  /** Milliseconds for all of it. */
  readonly timeout: number
  readonly signal: AbortSignal
}

export type Ask = (address: PodAddress, way: Way, call: Call, options: AskOptions) => Promise<Answer>

/** So much of an answer is kept, in bytes. */
const longestAnswer = 64 * 1024

export function createAsk(exec: Exec, clock: Clock): Ask {
  return async (address, way, call, options) => {
    try {
      if ('exec' in call) return await byCommand(exec, address, way, call.exec, options)
      if ('tcp' in call) return await byConnection(address.ip, call.tcp, options)
      return await byHttp(address, way, call.http, options, clock)
    } catch (error) {
      return failure(error)
    }
  }
}

async function byCommand(
  exec: Exec,
  { app, pod }: PodAddress,
  way: Way,
  command: readonly string[],
  { params, timeout, signal }: AskOptions,
): Promise<Answer> {
  const { exitCode, stdout, stderr } = await exec(
    { namespace: app.namespace, name: pod.name },
    {
      ...(way.exec?.container !== undefined && { container: way.exec.container }),
      command: command.map(one => expand(one, params, 'argument')),
      signal,
      deadline: timeout,
      maxOutput: longestAnswer,
    },
  )
  const text = exitCode === 0 ? stdout : `${stdout}${stderr}`
  return exitCode === 0
    ? { is: 'done', text, exitCode }
    : { is: 'refused', text, exitCode, status: null, message: stderr.trim().slice(-500) || `exited with ${exitCode}` }
}

async function byHttp(
  { ip }: PodAddress,
  way: Way,
  call: HttpCall,
  { params, timeout, signal }: AskOptions,
  clock: Clock,
): Promise<Answer> {
  const declared = new URL(expand(call.url, params, 'url'))
  const host = ip.includes(':') ? `[${ip}]` : ip
  const url = `${declared.protocol}//${host}:${way.http?.port}${way.http?.path ?? '/'}`
  const http = createHttpClient({
    url,
    tries: 1,
    maxBody: 8 * longestAnswer,
    clock,
    tls: { servername: declared.hostname, insecureSkipVerify: call.insecureSkipVerify },
  })
  const until = clock.monotonic() + timeout
  const left = () => Math.max(until - clock.monotonic(), 1)
  try {
    const said = await once(http, call, `${declared.pathname}${declared.search}`, params, { timeout: left(), signal })
    if (!isYes(call, said.status) || !call.poll) return answerOf(call, said)
    const place = call.poll.url === undefined ? said.headers['location'] : expand(call.poll.url, params, 'url')
    const next = new URL(place ?? declared.href, declared)
    return await poll(http, call.poll, `${next.pathname}${next.search}`, { until, signal, clock })
  } finally {
    await http.close()
  }
}

interface Said extends HttpSaid {
  readonly text: string
}

/** Any answer is one; only that none came is an error. */
async function once(
  http: HttpClient,
  { method, headers, body }: Pick<HttpCall, 'method' | 'headers' | 'body'>,
  path: string,
  params: AskOptions['params'],
  { timeout, signal }: Pick<AskOptions, 'timeout' | 'signal'>,
): Promise<Said> {
  const filled = Object.entries(headers ?? {}).map(([name, value]) => [name, expand(value, params, 'header')])
  const request = {
    method: method ?? defaults.http.method,
    path,
    headers: Object.fromEntries(filled) as Record<string, string>,
    ...(body !== undefined && { body: expand(body, params, 'body') }),
    timeout,
    signal,
  }
  try {
    const { status, headers, text } = await http.request(request)
    const plain = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])
    return { status, headers: Object.fromEntries(plain) as Record<string, string>, body: parsedOf(text), text }
  } catch (error) {
    if (!(error instanceof HttpError) || error.status === undefined) throw error
    return { status: error.status, headers: {}, body: parsedOf(error.body), text: error.body }
  }
}

async function poll(
  http: HttpClient,
  { until: done, failed, every }: NonNullable<HttpCall['poll']>,
  path: string,
  { until, signal, clock }: { until: number; signal: AbortSignal; clock: Clock },
): Promise<Answer> {
  const isDone = compileCondition(done)
  const isFailed = failed === undefined ? undefined : compileCondition(failed)
  const pause = parseDuration(every ?? defaults.poll.every) ?? 2000
  let last = 'it has not answered'
  while (clock.monotonic() < until && !signal.aborted) {
    try {
      const said = await once(http, {}, path, {}, { timeout: Math.max(until - clock.monotonic(), 1), signal })
      if (isFailed?.holds(said)) return answerOf({ status: [] }, said)
      if (isDone.holds(said)) return { is: 'done', text: said.text, exitCode: null }
      last = `status ${said.status}`
    } catch (error) {
      last = messageOf(error)
    }
    await sleep(clock, pause, signal).catch(() => undefined)
  }
  return { is: 'lost', message: `${signal.aborted ? 'it was cancelled' : 'it did not end in time'}: ${last}` }
}

function answerOf(call: Pick<HttpCall, 'status'>, { status, text }: Said): Answer {
  if (isYes(call, status)) return { is: 'done', text, exitCode: null }
  return { is: 'refused', text, exitCode: null, status, message: `status ${status}: ${text.trim().slice(0, 500)}` }
}

function isYes({ status: wanted }: Pick<HttpCall, 'status'>, status: number): boolean {
  return wanted ? wanted.includes(status) : status >= 200 && status <= 299
}

function parsedOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function byConnection(host: string, port: number, { timeout, signal }: AskOptions): Promise<Answer> {
  return new Promise(resolve => {
    const socket = connect({ host, port, timeout, signal }, () => finish({ is: 'done', text: '', exitCode: null }))
    const finish = (answer: Answer) => {
      socket.destroy()
      resolve(answer)
    }
    socket.on('timeout', () => finish({ is: 'lost', message: `no connection within ${timeout} ms` }))
    socket.on('error', error => finish(failure(error)))
  })
}

function failure(error: unknown): Answer {
  const message = messageOf(error)
  const isClosed = causes(error).some(one => (one as { code?: unknown }).code === 'ECONNREFUSED')
  const mayHaveActed =
    error instanceof HttpError || error instanceof Unavailable ? error.mayHaveActed : !isCertain(error)
  return mayHaveActed && !isClosed ? { is: 'lost', message } : { is: 'unsent', message, isClosed }
}

/** Whether it says by itself that nothing was begun: the server refused it, the command could not be run, a parameter fits nowhere. */
function isCertain(error: unknown): boolean {
  if (error instanceof KubeError || error instanceof TemplateError) return true
  return error instanceof ShipmateError && (error.code === 'ExecFailed' || error.code === 'Misuse')
}

function causes(error: unknown): unknown[] {
  const all: unknown[] = []
  for (let one = error; one instanceof Error && all.length < 8; one = one.cause) {
    all.push(one)
    if (one instanceof AggregateError) all.push(...one.errors)
  }
  return all
}
