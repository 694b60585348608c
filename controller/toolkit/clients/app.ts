/**
 * An application as something that can be asked to act, whatever the way to it: over HTTP, or by a command in its container.
 *
 * Guarantees: only declared actions can be asked for. An action that did not succeed is an error, with the application's own words; no message has
 * parameters in it, as they may be secret. `ping` answers, and does not throw, when the application does not.
 */
import { messageOf, ShipmateError } from '../../../shared/errors.ts'
import { suggestion } from '../../../shared/nearest.ts'
import { type ExecStreamOptions, execStream } from '../../kube/exec.ts'
import type { Ref } from '../../kube/kind.ts'
import type { CredentialsSource } from '../../kube/kubeconfig.ts'
import type { HttpClient, HttpRequest } from './http.ts'
import { tail } from './tail.ts'

export interface AppClient {
  /** Carries out an action; done when it has ended well. */
  execute(action: string, params?: Params, options?: AppCallOptions): Promise<AppAnswer>
  /** Whether the application answers. Rejects only when the signal is aborted. */
  ping(options?: AppCallOptions): Promise<Ping>
}

export type Params = Readonly<Record<string, unknown>>

export interface AppCallOptions {
  readonly signal?: AbortSignal | undefined
  /** Milliseconds. Default: the client's. */
  readonly timeout?: number | undefined
}

export interface AppAnswer {
  /** What it said. */
  readonly text: string
  /** The same, where it is JSON. */
  readonly value?: unknown
}

export interface Ping {
  readonly reachable: boolean
  /** For a person. */
  readonly message: string
}

export interface HttpAppOptions {
  readonly http: HttpClient
  /** The request for each action. Its own `signal` and `timeout` are those of the call. */
  readonly actions: Readonly<Record<string, (params: Params) => HttpRequest>>
  /** Default: a GET of the client's URL. */
  readonly ping?: HttpRequest | undefined
}

/** An application that is asked over HTTP. */
export function httpAppClient({ http, actions, ping = {} }: HttpAppOptions): AppClient {
  const ask = async (request: HttpRequest, options: AppCallOptions) =>
    answerOf((await http.request({ ...request, ...given(options) })).text)
  return {
    execute: async (action, params = {}, options = {}) => ask(declared(actions, action)(params), options),
    ping: (options = {}) => pinged(() => ask(ping, options), options.signal),
  }
}

/** A program with its arguments, which no shell reads, and what it reads. */
export type Command = readonly string[] | { readonly command: readonly string[]; readonly stdin: string | Uint8Array }

export interface ExecAppOptions {
  /** As whom: `credentials` of `connect()`. */
  readonly credentials: CredentialsSource
  readonly pod: Ref
  /** The container's name. */
  readonly container: string
  /** The command for each action. */
  readonly actions: Readonly<Record<string, (params: Params) => Command>>
  /** Default: `true`, which says that the container runs. */
  readonly ping?: Command | undefined
  /** Milliseconds for a command. Default 30,000. */
  readonly timeout?: number | undefined
  /** Bytes of output that are kept; a command that writes more is an error. Default 1 MiB. */
  readonly maxOutput?: number | undefined
}

/** An application that is asked by commands in one of its containers. */
export function execAppClient(options: ExecAppOptions): AppClient {
  const { actions, ping = ['true'] } = options
  if (!options.container)
    throw new ShipmateError('Misuse', "the container's name is missing: a command runs in a container by name", 'never')
  return {
    execute: async (action, params = {}, call = {}) =>
      answerOf(await runCommand(options, action, declared(actions, action)(params), call)),
    ping: (call = {}) => pinged(() => runCommand(options, 'ping', ping, call), call.signal),
  }
}

/** A command that ran and ended with an exit code other than 0. */
export class CommandFailed extends ShipmateError {
  /** 128 and the signal's number, where a signal ended it. */
  readonly exitCode: number
  /** The end of what it wrote there. */
  readonly stderr: string

  constructor(what: string, exitCode: number, stderr: string) {
    super('ExecFailed', `${what} ended with exit code ${exitCode}${stderr ? `: ${stderr.trim()}` : ''}`, 'later')
    this.exitCode = exitCode
    this.stderr = stderr
  }
}

async function runCommand(
  options: ExecAppOptions,
  action: string,
  given: Command,
  call: AppCallOptions,
): Promise<string> {
  const { credentials, pod, container, maxOutput = 1 << 20, timeout = 30_000 } = options
  const { command, stdin } = 'command' in given ? given : { command: given, stdin: undefined }
  const stderr = tail(2048)
  const stdout: Uint8Array[] = []
  let size = 0
  const stream: ExecStreamOptions = {
    container,
    command,
    ...(stdin !== undefined && { stdin }),
    signal: call.signal,
    deadline: call.timeout ?? timeout,
    onStdout(piece) {
      size += piece.length
      // Copied: a piece may be a window on something large.
      if (size <= maxOutput) stdout.push(Uint8Array.from(piece))
    },
    onStderr: stderr.add,
  }
  const what = `${action} in container ${container} of pod ${pod.name}`
  const exitCode = await execStream(credentials, pod, stream)
  if (exitCode !== 0) throw new CommandFailed(what, exitCode, stderr.text())
  if (size > maxOutput) throw new ShipmateError('ExecFailed', `${what} wrote more than ${maxOutput} bytes`, 'never')
  return new TextDecoder().decode(Buffer.concat(stdout))
}

function declared<T>(actions: Readonly<Record<string, T>>, action: string): T {
  const found = Object.hasOwn(actions, action) ? actions[action] : undefined
  if (found !== undefined) return found
  throw new ShipmateError('Misuse', `there is no action ${action}${suggestion(action, Object.keys(actions))}`, 'never')
}

async function pinged(ask: () => Promise<unknown>, signal: AbortSignal | undefined): Promise<Ping> {
  try {
    await ask()
    return { reachable: true, message: 'it answers' }
  } catch (error) {
    if (signal?.aborted) throw error
    return { reachable: false, message: messageOf(error) }
  }
}

function answerOf(text: string): AppAnswer {
  try {
    return { text, value: JSON.parse(text) as unknown }
  } catch {
    return { text }
  }
}

function given({ signal, timeout }: AppCallOptions) {
  return { ...(signal && { signal }), ...(timeout !== undefined && { timeout }) }
}
