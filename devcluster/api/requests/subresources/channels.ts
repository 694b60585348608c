/**
 * The subprotocols `v4.channel.k8s.io` and `v5.channel.k8s.io`: a WebSocket whose messages begin with the number of a channel.
 */
import type { Duplex, Readable } from 'node:stream'
import type { WebSocket } from 'ws'
import { type Begun, endOf, resize } from './command.ts'
import type { Ports } from './ports.ts'

/** Says in v5 that a channel ends. */
const closing = 255

const frame = (channel: number, data: Uint8Array) => Buffer.concat([Buffer.from([channel]), data])

/** Sends what a stream gives, no faster than the caller takes it. */
async function pump(stream: Readable, websocket: WebSocket, channel: number): Promise<void> {
  for await (const piece of stream as AsyncIterable<Buffer>) {
    if (websocket.readyState !== websocket.OPEN) return
    await new Promise<void>(resolve => websocket.send(frame(channel, piece), () => resolve()))
  }
}

export async function commandOverChannels(
  websocket: WebSocket,
  protocol: string,
  { session, wants }: Begun,
): Promise<void> {
  websocket.on('message', message => {
    const data = message as Buffer
    const [channel] = data
    if (channel === 0 && session.stdin) {
      if (session.stdin.write(data.subarray(1))) return
      websocket.pause()
      session.stdin.once('drain', () => websocket.resume())
    } else if (channel === 4) resize(session, data.toString('utf8', 1))
    else if (channel === closing && data[1] === 0 && protocol.startsWith('v5.')) session.stdin?.end()
  })
  websocket.on('close', () => session.kill())
  session.stdin?.on('error', () => {})
  const output = [
    wants.stdout ? pump(session.stdout, websocket, 1) : Promise.resolve(void session.stdout.resume()),
    session.stderr && wants.stderr
      ? pump(session.stderr, websocket, 2)
      : Promise.resolve(void session.stderr?.resume()),
  ]
  const code = await session.exit.catch((error: unknown) => error as Error)
  await Promise.allSettled(output)
  if (websocket.readyState !== websocket.OPEN) return
  websocket.send(frame(3, Buffer.from(JSON.stringify(endOf(code)))), () => websocket.close(1000))
}

/** Two channels for each port: its data, and what went wrong. Each begins with the port. */
export function forwardOverChannels(websocket: WebSocket, { named, connect, problem }: Ports): void {
  const streams = new Map<number, Promise<Duplex | undefined>>()
  const fail = (channel: number, words: string) => {
    if (websocket.readyState === websocket.OPEN) websocket.send(frame(channel, Buffer.from(words)))
  }
  const join = async (channel: number, port: number): Promise<Duplex | undefined> => {
    try {
      const stream = await connect(port)
      stream.on('error', error => fail(channel + 1, problem(port, error)))
      websocket.on('close', () => stream.destroy())
      pump(stream, websocket, channel).then(
        () => named.length === 1 && websocket.close(1000),
        () => {},
      )
      return stream
    } catch (error) {
      fail(channel + 1, (error as Error).message)
      return undefined
    }
  }
  for (const [i, port] of named.entries()) {
    const bytes = Buffer.from([port & 255, port >> 8])
    websocket.send(frame(2 * i, bytes))
    websocket.send(frame(2 * i + 1, bytes))
    streams.set(2 * i, join(2 * i, port))
  }
  websocket.on('message', async message => {
    const data = message as Buffer
    const stream = await streams.get(data[0] as number)
    if (!stream || stream.write(data.subarray(1))) return
    websocket.pause()
    stream.once('drain', () => websocket.resume())
  })
}
