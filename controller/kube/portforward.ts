/**
 * A connection to a port of a pod, through the API server: as a stream, or as a local port that others connect to.
 *
 * Guarantees: bytes come whole and in order, with back pressure both ways. A port that nobody listens on is an error of the stream; a
 * connection that broke is one too, never a quiet end. The protocol cannot say "no more from me": ending the stream sends what was written
 * and leaves the pod's side as it is; only destroying it, or the pod, closes the connection.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type Clock, systemClock, type Timer } from '../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import { abortError, type Channels } from './channels.ts'
import { Unavailable } from './errors.ts'
import type { Ref } from './kind.ts'
import type { CredentialsSource } from './kubeconfig.ts'
import { openChannels, podTarget } from './websocket.ts'

export interface PortForwardOptions {
  /** Destroys the stream. */
  readonly signal?: AbortSignal | undefined
  readonly clock?: Clock | undefined
}

export interface ForwardPortOptions extends PortForwardOptions {
  /** Where to listen. Default 127.0.0.1: this machine alone. */
  readonly host?: string | undefined
  /** Default 0: any that is free. */
  readonly localPort?: number | undefined
  /** Told why a connection failed; whoever connected sees a reset. Default: nobody is told. */
  readonly onError?: ((error: Error) => void) | undefined
  /** Milliseconds that a connection stays open in silence after whoever connected has sent its last. Default 30,000. */
  readonly linger?: number | undefined
}

export interface ForwardedPort extends AsyncDisposable {
  readonly host: string
  readonly port: number
  /** Stops listening and ends every connection. */
  close(): Promise<void>
}

/** Opens a stream to a port of a pod. Whether anybody listens there shows when it is used. */
export async function portForward(
  source: CredentialsSource,
  ref: Ref,
  port: number,
  options: PortForwardOptions = {},
): Promise<Duplex> {
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    throw new ShipmateError('Misuse', `${port} is no port: a number from 1 to 65535 is`, 'never')
  }
  const { signal, clock } = options
  const query = new URLSearchParams({ ports: String(port) })
  const channels = await openChannels(source, ref, 'portforward', {
    query,
    protocols: ['v4.channel.k8s.io'],
    signal,
    clock,
  })
  return streamOver(channels, port, signal)
}

/** Listens on a local port and forwards each connection to the pod's. */
export async function forwardPort(
  source: CredentialsSource,
  ref: Ref,
  port: number,
  options: ForwardPortOptions = {},
): Promise<ForwardedPort> {
  const {
    host = '127.0.0.1',
    localPort = 0,
    signal,
    clock = systemClock,
    linger = 30_000,
    onError = () => {},
  } = options
  if (signal?.aborted) throw abortError(podTarget(ref, 'portforward'), signal)
  const connections = new Map<Socket, Promise<void>>()
  let closing: Promise<unknown> | undefined

  async function serve(local: Socket): Promise<void> {
    const leave = new AbortController()
    const closed = new Promise<void>(resolve => local.once('close', resolve))
    // Its errors say no more than its close.
    local.on('error', () => {}).once('close', () => leave.abort())
    try {
      await join(local, await portForward(source, ref, port, { signal: leave.signal, clock }), linger, clock)
    } catch (error) {
      if (!leave.signal.aborted) onError(error as Error)
      // A reset, so that what was cut short does not look complete.
      local.resetAndDestroy()
    }
    await closed
  }

  const server = createServer({ allowHalfOpen: true, noDelay: true }, local => {
    connections.set(
      local,
      serve(local).finally(() => connections.delete(local)),
    )
  })

  async function close(): Promise<void> {
    signal?.removeEventListener('abort', close)
    closing ??= new Promise(resolve => server.close(resolve))
    for (const local of connections.keys()) local.destroy()
    await Promise.all([closing, ...connections.values()])
  }

  server.listen(localPort, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new ShipmateError('Misuse', `cannot listen on ${host}:${localPort}: ${messageOf(error)}`, 'never', {
      cause: error,
    })
  }
  server.on('error', onError)
  signal?.addEventListener('abort', close, { once: true })
  if (signal?.aborted) {
    await close()
    throw abortError(podTarget(ref, 'portforward'), signal)
  }
  const address = server.address() as AddressInfo
  return { host: address.address, port: address.port, close, [Symbol.asyncDispose]: close }
}

/** The port's two channels as one stream. */
function streamOver(channels: Channels, port: number, signal: AbortSignal | undefined): Duplex {
  let wanted: (() => void) | undefined
  const abort = () => stream.destroy(abortError(channels.target, signal))
  const stream = new Duplex({
    // When the pod has closed its side the connection is over.
    allowHalfOpen: false,
    read: () => wanted?.(),
    write(chunk: Uint8Array, _encoding, done) {
      // What is written to a pod that has closed goes nowhere, as with TCP; the reader sees the end.
      channels.send(0, chunk).then(
        () => done(),
        error => done(channels.isClosed ? null : error),
      )
    },
    destroy(error, done) {
      signal?.removeEventListener('abort', abort)
      wanted?.()
      channels.close()
      done(error)
    },
  })

  async function receive(): Promise<void> {
    const isBegun = [false, false]
    for await (const { channel, data } of channels) {
      if (channel > 1) continue
      // The first frame of each channel repeats the port.
      const piece = isBegun[channel] ? data : data.subarray(2)
      isBegun[channel] = true
      if (piece.length === 0) continue
      if (channel === 1) {
        const why = `port ${port} of the pod: ${Buffer.from(piece).toString().trim()}`
        throw new Unavailable('Unavailable', channels.target, why, { mayHaveActed: true })
      }
      if (!stream.push(piece) && !stream.destroyed) {
        await new Promise<void>(resolve => {
          wanted = resolve
        })
        wanted = undefined
      }
    }
    stream.push(null)
  }

  signal?.addEventListener('abort', abort, { once: true })
  receive().catch(error => stream.destroy(error))
  return stream
}

/** Resolves when the pod's side is closed, rejects with its error. */
function join(local: Socket, remote: Duplex, linger: number, clock: Clock): Promise<void> {
  let timer: Timer | undefined
  /**
   * Whoever connected has sent its last, and may be gone: nothing here tells that from one that waits for an answer, and the pod cannot be
   * told at all. So the connection ends when nothing more has come from the pod for a while.
   */
  const endWhenQuiet = () => {
    const written = local.bytesWritten
    timer = clock.after(linger, () => (local.bytesWritten === written ? remote.destroy() : endWhenQuiet()))
  }
  return new Promise((resolve, reject) => {
    remote.once('error', reject)
    remote.once('close', () => {
      timer?.cancel()
      if (!remote.errored) local.destroySoon()
      resolve()
    })
    local.once('close', () => remote.destroy())
    local.once('end', endWhenQuiet)
    if (local.destroyed) remote.destroy()
    local.pipe(remote)
    remote.pipe(local)
  })
}
