/**
 * Numbered streams over one WebSocket, as exec and port-forward speak them: the first byte of a frame is its channel.
 *
 * Guarantees: frames come in order, with back pressure both ways, and what waits for the reader is bounded. A peer that
 * fell silent is found by pings. A connection that breaks is an error, after what came before it; an abort is one at once.
 */
import type { WebSocket } from 'ws'
import { type Clock, systemClock, type Timer } from '../../shared/clock.ts'
import { messageOf, ShipmateError } from '../../shared/errors.ts'
import { Aborted, Unavailable } from './errors.ts'
import type { Target } from './transport.ts'

export interface Frame {
  readonly channel: number
  readonly data: Uint8Array
}

export interface ChannelsOptions {
  readonly signal?: AbortSignal | undefined
  /** Milliseconds between pings. Default 10,000. */
  readonly pingEvery?: number | undefined
  /**
   * Milliseconds without a sign of life until the peer counts as dead. Default 60,000.
   * Ten times as long while it has not confirmed what we sent: a command that does not read its input holds up its pongs too.
   */
  readonly silence?: number | undefined
  readonly clock?: Clock | undefined
}

/** Says in the `v5` protocol that nothing more will come on a channel. */
const closing = 255
/** Bytes that may wait for the reader before the socket is told to pause, and what a frame counts beside its data. */
const highWater = 1 << 20
const perFrame = 128
/** Data of ours in one frame: servers hold a frame whole. */
const largest = 32 << 10
/** Milliseconds that the peer has to close the connection when we have. */
const farewell = 1000

export class Channels implements AsyncIterable<Frame> {
  /** The subprotocol that was agreed on. */
  readonly protocol: string
  readonly target: Target
  readonly #socket: WebSocket
  readonly #clock: Clock
  readonly #options: ChannelsOptions
  #waiting: Frame[] = []
  #bytes = 0
  #paused = false
  #over: { error?: Error; atOnce?: boolean } | undefined
  #wake: (() => void) | undefined
  #timer: Timer | undefined
  #heardAt: number
  /** Frames that we sent, and how many the peer has certainly taken: a ping carries the first, its pong brings it back. */
  #sent = 0
  #taken = 0

  /** `socket` is open, and nobody else listens to it. */
  constructor(socket: WebSocket, target: Target, options: ChannelsOptions = {}) {
    this.protocol = socket.protocol
    this.target = target
    this.#socket = socket
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#heardAt = this.#clock.monotonic()
    socket.on('message', data => this.#push(data as Buffer))
    socket.on('ping', () => this.#heard())
    socket.on('pong', data => {
      this.#heard()
      this.#taken = Number(data.toString())
    })
    socket.on('error', error => this.#finish({ error: this.#broken(messageOf(error), error) }))
    socket.on('close', (code, reason) => {
      const why = reason.toString() || (code === 1006 ? 'the connection was cut' : `closed with code ${code}`)
      this.#finish(code === 1000 || code === 1005 ? {} : { error: this.#broken(why) })
    })
    options.signal?.addEventListener('abort', this.#abort, { once: true })
    if (options.signal?.aborted) this.#abort()
    else this.#watch()
  }

  /** Resolves when the bytes are on their way and more may follow. Rejects when the connection is over. */
  async send(channel: number, data: Uint8Array): Promise<void> {
    for (let from = 0; from < data.length; from += largest)
      await this.#write(encodeFrame(channel, data.subarray(from, from + largest)))
  }

  /** Whether the protocol has a way to say that a channel ends while the others go on. */
  get canEnd(): boolean {
    return this.protocol.startsWith('v5.')
  }

  /** Nothing more will come on this channel. Only where `canEnd`. */
  async end(channel: number): Promise<void> {
    await this.#write(Uint8Array.of(closing, channel))
  }

  /** Whether it is over, and in order: the peer said farewell, or we did. */
  get isClosed(): boolean {
    return this.#over !== undefined && this.#over.error === undefined
  }

  /** Ends it in order. What has not been read is lost; whoever reads sees the end. */
  close(): void {
    this.#finish({ atOnce: true })
    if (this.#socket.readyState === this.#socket.CLOSED) return
    // The peer's part of the farewell is behind what was not read.
    if (this.#paused) this.#socket.resume()
    this.#socket.close(1000)
    const timer = this.#clock.after(farewell, () => this.#socket.terminate())
    this.#socket.once('close', () => timer.cancel())
  }

  /** Ends it now, without a farewell. Whoever reads or writes gets the error. */
  fail(error: Error): void {
    this.#finish({ error, atOnce: true })
    this.#socket.terminate()
  }

  /** Leaving the loop closes the connection. For one reader. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Frame, void, undefined> {
    try {
      for (;;) {
        for (const frame of this.#take()) {
          if (this.#over?.atOnce) break
          yield frame
        }
        if (this.#waiting.length > 0 && !this.#over?.atOnce) continue
        if (this.#over?.error) throw this.#over.error
        if (this.#over) return
        await new Promise<void>(resolve => {
          this.#wake = resolve
        })
      }
    } finally {
      if (!this.#over) this.close()
    }
  }

  #push(message: Buffer): void {
    this.#heard()
    if (this.#over || message.length === 0) return
    this.#waiting.push(decodeFrame(message))
    this.#bytes += message.length + perFrame
    if (this.#bytes > highWater && !this.#paused) {
      this.#paused = true
      this.#socket.pause()
    }
    this.#wake?.()
  }

  #take(): Frame[] {
    const frames = this.#waiting
    this.#waiting = []
    this.#bytes = 0
    if (this.#paused) {
      this.#paused = false
      this.#heard()
      this.#socket.resume()
    }
    return frames
  }

  #write(frame: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      const refuse = () => reject(this.#over?.error ?? this.#broken('the connection is closed'))
      if (this.#over) return refuse()
      this.#sent++
      this.#socket.send(frame, error => {
        if (!error) resolve()
        // How it ended is told when it has: the peer may be closing in order.
        else if (this.#over) refuse()
        else this.#socket.once('close', refuse)
      })
    })
  }

  #heard(): void {
    this.#heardAt = this.#clock.monotonic()
  }

  #watch(): void {
    const { pingEvery = 10_000, silence = 60_000 } = this.#options
    this.#timer = this.#clock.after(pingEvery, () => {
      const patience = this.#taken === this.#sent ? silence : 10 * silence
      const silent = this.#clock.monotonic() - this.#heardAt
      // While paused we hear nothing because we do not listen.
      if (!this.#paused && silent >= patience) {
        return this.fail(this.#broken(`no sign of life from the server for ${Math.round(silent / 1000)} s`))
      }
      if (!this.#paused) this.#socket.ping(String(this.#sent))
      this.#watch()
    })
  }

  readonly #abort = () => this.fail(abortError(this.target, this.#options.signal))

  #finish(over: { error?: Error; atOnce?: boolean }): void {
    if (this.#over) return
    this.#over = over
    if (over.atOnce) this.#waiting = []
    this.#timer?.cancel()
    this.#options.signal?.removeEventListener('abort', this.#abort)
    this.#wake?.()
  }

  #broken(why: string, cause?: unknown): Unavailable {
    return new Unavailable('Unavailable', this.target, why, { mayHaveActed: true, cause })
  }
}

/** What a caller gets whose signal was aborted: Aborted, or the reason itself where it is an error of ours already. */
export function abortError(target: Target, signal: AbortSignal | undefined): ShipmateError {
  return signal?.reason instanceof ShipmateError ? signal.reason : new Aborted(target, signal?.reason)
}

export function encodeFrame(channel: number, data: Uint8Array): Uint8Array {
  const frame = new Uint8Array(data.length + 1)
  frame[0] = channel
  frame.set(data, 1)
  return frame
}

/** The inverse of encodeFrame. `frame` is not empty. */
export function decodeFrame(frame: Uint8Array): Frame {
  return { channel: frame[0] as number, data: frame.subarray(1) }
}
