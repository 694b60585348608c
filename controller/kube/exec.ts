/**
 * Runs a command in a container, by the container's name.
 *
 * Guarantees: a command that ran has an exit code, whatever it is; one that could not be started is ExecFailed, with the
 * server's words; one whose end was not seen is Unavailable. Output comes in order and within bounds, input is read no
 * faster than it is taken. Leaving early (signal, deadline) ends our side at once; the command may go on, as Kubernetes
 * has no way to end it. A node may never tell the end of a command that left more input unread than a pipe holds
 * (64 KiB): where that can be, give a deadline.
 */
import { Readable } from 'node:stream'
import { type Clock, systemClock } from '../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import { authenticated } from './auth.ts'
import { abortError, type Channels } from './channels.ts'
import { Client } from './client.ts'
import { createConnection } from './connection.ts'
import { BadRequest, type KubeError, type Status, Unavailable } from './errors.ts'
import type { Ref } from './kind.ts'
import { Pod } from './kinds.ts'
import type { CredentialsSource } from './kubeconfig.ts'
import type { Target } from './transport.ts'
import { openChannels, podTarget } from './websocket.ts'

interface CommandOptions {
  /** The container's name. Required unless the pod has one container. */
  readonly container?: string | undefined
  /** The program and its arguments. No shell reads them. */
  readonly command: readonly string[]
  /** What the command reads. When it ends, the command sees the end. Default: nothing, and the end at once. */
  readonly stdin?: string | Uint8Array | AsyncIterable<Uint8Array> | undefined
  /** Gives the command a terminal; what it writes to stderr then comes on stdout. Default false. */
  readonly tty?: boolean | undefined
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for the whole of it. Default: as long as the command takes; 30,000 for it to start. */
  readonly deadline?: number | undefined
  readonly clock?: Clock | undefined
}

export interface ExecOptions extends CommandOptions {
  /** Bytes that are kept of each of stdout and stderr; what comes after is read and dropped. Default 1 MiB. */
  readonly maxOutput?: number | undefined
}

export interface ExecResult {
  /** 128 and the signal's number, where a signal ended it. */
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  /** Whether something was dropped. */
  readonly truncated: boolean
}

export interface ExecStreamOptions extends CommandOptions {
  /** Called with each piece; the next comes when its promise is done. Absent: the command's stdout goes nowhere. */
  readonly onStdout?: ((piece: Uint8Array) => unknown) | undefined
  readonly onStderr?: ((piece: Uint8Array) => unknown) | undefined
}

/** Runs a command and returns what it wrote. */
export async function exec(source: CredentialsSource, ref: Ref, options: ExecOptions): Promise<ExecResult> {
  const stdout = gather(options.maxOutput ?? 1 << 20)
  const stderr = gather(options.maxOutput ?? 1 << 20)
  const exitCode = await execStream(source, ref, { ...options, onStdout: stdout.add, onStderr: stderr.add })
  return { exitCode, stdout: stdout.text(), stderr: stderr.text(), truncated: stdout.isCut() || stderr.isCut() }
}

/** Runs a command, hands over what it writes as it comes, and returns its exit code. */
export async function execStream(source: CredentialsSource, ref: Ref, options: ExecStreamOptions): Promise<number> {
  const { signal, deadline, clock = systemClock } = options
  if (options.command.length === 0)
    throw new ShipmateError('Misuse', 'exec needs a command: the list is empty', 'never')
  const target = podTarget(ref, 'exec')
  const stop = new AbortController()
  const abort = () => stop.abort(abortError(target, signal))
  const late = () =>
    stop.abort(
      new Unavailable('DeadlineExceeded', target, `the command did not end within ${deadline} ms`, {
        mayHaveActed: true,
      }),
    )
  const timer = deadline === undefined ? undefined : clock.after(deadline, late)
  signal?.addEventListener('abort', abort, { once: true })
  if (signal?.aborted) abort()
  try {
    const channels = await start(source, ref, options, stop.signal)
    return await run(channels, options, stop)
  } finally {
    timer?.cancel()
    signal?.removeEventListener('abort', abort)
  }
}

async function start(
  source: CredentialsSource,
  ref: Ref,
  options: ExecStreamOptions,
  signal: AbortSignal,
): Promise<Channels> {
  const query = new URLSearchParams()
  for (const word of options.command) query.append('command', word)
  if (options.container !== undefined) query.set('container', options.container)
  if (options.stdin !== undefined) query.set('stdin', 'true')
  // The server refuses to run a command that is connected to nothing.
  if (options.onStdout || !options.onStderr) query.set('stdout', 'true')
  if (options.onStderr && !options.tty) query.set('stderr', 'true')
  if (options.tty) query.set('tty', 'true')
  // Only v5 can end stdin; without it a command that reads to the end would never stop. A terminal has its own way.
  const protocols =
    options.stdin === undefined || options.tty ? ['v5.channel.k8s.io', 'v4.channel.k8s.io'] : ['v5.channel.k8s.io']
  try {
    return await openChannels(source, ref, 'exec', { query, protocols, signal, clock: options.clock })
  } catch (error) {
    if (error instanceof BadRequest && options.container !== undefined)
      throw await withContainers(error, source, options.container, signal)
    throw error
  }
}

async function run(channels: Channels, options: ExecStreamOptions, stop: AbortController): Promise<number> {
  const stdin = options.stdin === undefined ? undefined : iterate(options.stdin)
  // Whoever handles a piece may take for ever: leaving early does not wait for it.
  const left = new Promise<never>((_resolve, reject) => {
    stop.signal.addEventListener('abort', () => reject(stop.signal.reason), { once: true })
  })
  try {
    if (stdin) feed(channels, stdin).catch(error => stop.abort(failedInput(error)))
    return await Promise.race([read(channels, options), left])
  } finally {
    channels.close()
    // A stream is let go at once; any other source that waits for its own next piece learns of it then, unawaited.
    if (options.stdin instanceof Readable) options.stdin.destroy()
    stdin?.return?.()?.then(undefined, () => {})
  }
}

/** Hands over output until the server says how the command ended. */
async function read(channels: Channels, options: ExecStreamOptions): Promise<number> {
  let ending = Buffer.alloc(0)
  for await (const { channel, data } of channels) {
    if (data.length === 0) continue
    if (channel === 1) await options.onStdout?.(data)
    else if (channel === 2) await options.onStderr?.(data)
    else if (channel === 3) {
      ending = Buffer.concat([ending, data])
      const status = statusIn(ending.toString())
      if (status) return exitCodeOf(channels.target, status)
      if (ending.length > 1 << 20) break
    }
  }
  const why =
    ending.length > 0
      ? `the server's word on the command's end is not JSON: ${ending.toString().slice(0, 200)}`
      : 'the connection ended before the command did'
  throw new Unavailable(ending.length > 0 ? 'Garbled' : 'Unavailable', channels.target, why, { mayHaveActed: true })
}

/** Sends stdin, then its end. Rejects only when the source does: a connection that is over is the reader's to tell. */
async function feed(channels: Channels, stdin: AsyncIterator<Uint8Array>): Promise<void> {
  for (;;) {
    const { done, value } = await stdin.next()
    try {
      if (!done) await channels.send(0, value)
      else if (channels.canEnd) await channels.end(0)
      else return
    } catch {
      return
    }
    if (done) return
  }
}

function iterate(stdin: NonNullable<CommandOptions['stdin']>): AsyncIterator<Uint8Array> {
  if (typeof stdin !== 'string' && !(stdin instanceof Uint8Array)) return stdin[Symbol.asyncIterator]()
  return (async function* () {
    yield typeof stdin === 'string' ? Buffer.from(stdin) : stdin
  })()
}

function failedInput(error: unknown): ShipmateError {
  return error instanceof ShipmateError
    ? error
    : new ShipmateError('ExecFailed', `reading the command's input failed: ${messageOf(error)}`, 'never', {
        cause: error,
      })
}

/** The exit code in the Status that the server ends with. Throws where it says that there was no command to have one. */
export function exitCodeOf(target: Target, status: Status): number {
  if (status.status === 'Success') return 0
  const code = status.details?.causes?.find(cause => cause.reason === 'ExitCode')?.message
  if (code !== undefined && /^\d+$/.test(code)) return Number(code)
  const words = status.message || status.reason || 'the server gives no reason'
  if (/error dialing backend/.test(words)) {
    throw new Unavailable('Unavailable', target, `the node cannot be reached: ${words}`, {
      status: status.code,
      mayHaveActed: false,
    })
  }
  throw new ShipmateError('ExecFailed', `the command in pod ${target.name} could not be run: ${words}`, 'never')
}

function statusIn(text: string): Status | undefined {
  try {
    return JSON.parse(text) as Status
  } catch {
    return undefined
  }
}

/** The server does not say which containers there are: adds them, if we may read the pod. */
async function withContainers(
  error: KubeError,
  source: CredentialsSource,
  asked: string,
  signal: AbortSignal,
): Promise<KubeError> {
  const connection = createConnection()
  try {
    const client = new Client(authenticated(connection, source))
    const pod = await client.get(Pod, { name: error.target.name ?? '', namespace: error.target.namespace }, { signal })
    const names = [
      ...(pod.spec?.initContainers ?? []),
      ...(pod.spec?.containers ?? []),
      ...(pod.spec?.ephemeralContainers ?? []),
    ].map(c => c.name)
    if (names.includes(asked)) return error
    return new BadRequest(
      'BadRequest',
      'never',
      error.status,
      error.target,
      error.answer,
      `${error.message}; it has: ${names.join(', ')}`,
    )
  } catch {
    return error
  } finally {
    await connection.close()
  }
}

/** Keeps the first `most` bytes, as text: a character that is cut at the end is left out. */
function gather(most: number) {
  let kept = Buffer.alloc(0)
  let length = 0
  let isCut = false
  return {
    add(piece: Uint8Array): void {
      const part = piece.subarray(0, most - length)
      isCut ||= part.length < piece.length
      if (length + part.length > kept.length) {
        // Copied, and into room for more: pieces may be many, tiny, and each a window on something large.
        const larger = Buffer.alloc(Math.min(most, Math.max(4096, 2 * kept.length, length + part.length)))
        kept.copy(larger, 0, 0, length)
        kept = larger
      }
      kept.set(part, length)
      length += part.length
    },
    text: () => new TextDecoder('utf-8', { ignoreBOM: true }).decode(kept.subarray(0, length), { stream: isCut }),
    isCut: () => isCut,
  }
}
