import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import {
  type Channels,
  type ChannelsOptions,
  decodeFrame,
  encodeFrame,
  type Frame,
} from '../../controller/kube/channels.ts'
import { Aborted, Unavailable } from '../../controller/kube/errors.ts'
import { openChannels } from '../../controller/kube/websocket.ts'
import { type ChannelServerOptions, frame, startChannelServer } from '../fixtures/channel-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

/** Both ends of an open WebSocket. */
async function pair(ours: ChannelsOptions = {}, theirs: ChannelServerOptions = {}) {
  const opened = Promise.withResolvers<WebSocket>()
  const server = await startChannelServer({ ...theirs, onSocket: opened.resolve })
  const query = new URLSearchParams()
  const channels = await openChannels(server.source, { name: 'pod' }, 'exec', { protocols: ['v5.x'], query, ...ours })
  const peer = await opened.promise
  return { channels, peer, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** What comes until the end, and how it ended. */
async function readAll(channels: Channels): Promise<{ frames: Frame[]; error?: unknown }> {
  const frames: Frame[] = []
  try {
    for await (const one of channels) frames.push(one)
    return { frames }
  } catch (error) {
    return { frames, error }
  }
}

describe('a frame', () => {
  it('comes out as it went in', () => {
    fc.assert(
      fc.property(fc.nat(255), fc.uint8Array(), (channel, data) => {
        expect(decodeFrame(encodeFrame(channel, data))).toEqual({ channel, data })
      }),
    )
  })
})

describe('channels over a WebSocket', () => {
  it('bring what the peer sent, in order, and end when it closes', async () => {
    await using both = await pair()
    for (let i = 0; i < 100; i++) both.peer.send(frame(i % 3, `${i}`))
    both.peer.close(1000)
    const { frames, error } = await readAll(both.channels)
    expect(error).toBeUndefined()
    expect(frames.map(one => [one.channel, Buffer.from(one.data).toString()])).toEqual(
      Array.from({ length: 100 }, (_, i) => [i % 3, `${i}`]),
    )
    expect(both.channels.isClosed).toBe(true)
  })

  it('bring what came before the connection broke, then the error', async () => {
    await using both = await pair()
    both.peer.send(frame(1, 'last words'), () => both.peer.terminate())
    const { frames, error } = await readAll(both.channels)
    expect(frames).toHaveLength(1)
    expect(error).toBeInstanceOf(Unavailable)
    expect(error).toMatchObject({
      message: 'get pods/exec pod in namespace own: the connection was cut',
      mayHaveActed: true,
    })
    expect(both.channels.isClosed).toBe(false)
  })

  it('tell why the peer closed when it was not in order', async () => {
    await using both = await pair()
    both.peer.close(1011, 'out of luck')
    expect((await readAll(both.channels)).error).toMatchObject({ message: expect.stringContaining('out of luck') })
  })

  it('send large data whole, in small frames', async () => {
    await using both = await pair()
    const data = Buffer.from(Array.from({ length: 100_000 }, (_, i) => i % 251))
    const received: Buffer[] = []
    const all = new Promise<void>(resolve => {
      both.peer.on('message', (message: Buffer) => {
        received.push(message)
        if (message[0] === 255) resolve()
      })
    })
    await both.channels.send(0, data)
    await both.channels.end(0)
    await all
    expect(received.pop()).toEqual(Buffer.of(255, 0))
    expect(received.every(message => message[0] === 0 && message.length <= 32_769)).toBe(true)
    expect(Buffer.concat(received.map(message => message.subarray(1)))).toEqual(data)
  })

  it('hold back a peer that sends faster than is read', async () => {
    await using both = await pair()
    const piece = frame(1, Buffer.alloc(32_000))
    const total = 1000
    let handedOver = 0
    for (let i = 0; i < total; i++) both.peer.send(piece, () => handedOver++)
    let read = 0
    let ahead = 0
    for await (const _ of both.channels) {
      read++
      ahead = Math.max(ahead, handedOver - read)
      await new Promise(setImmediate)
      if (read === total) break
    }
    // What the kernel and we hold is some megabytes; without back pressure nearly all 32 would be under way.
    expect(ahead * piece.length).toBeLessThan(16 << 20)
  })

  it('close when the reader leaves', async () => {
    await using both = await pair()
    both.peer.send(frame(1, 'x'))
    const closed = new Promise(resolve => both.peer.once('close', resolve))
    for await (const _ of both.channels) break
    expect(await closed).toBe(1000)
    await expect(both.channels.send(0, Buffer.from('x'))).rejects.toThrow('the connection is closed')
  })

  it('end at once when aborted, whatever is still to be read', async () => {
    const stop = new AbortController()
    await using both = await pair({ signal: stop.signal })
    const closed = new Promise(resolve => both.peer.once('close', resolve))
    for (let i = 0; i < 10; i++) both.peer.send(frame(1, 'x'))
    const read: unknown[] = []
    const reading = (async () => {
      for await (const one of both.channels) {
        read.push(one)
        stop.abort('enough')
      }
    })()
    await expect(reading).rejects.toBeInstanceOf(Aborted)
    expect(read).toHaveLength(1)
    await expect(both.channels.send(0, Buffer.from('x'))).rejects.toBeInstanceOf(Aborted)
    expect(await closed).toBe(1006)
  })

  it('leave no timer behind', async () => {
    const clock = new VirtualClock()
    await using both = await pair({ clock })
    const closed = new Promise(resolve => both.peer.once('close', resolve))
    expect(clock.pending).toBe(1)
    both.channels.close()
    await closed
    await clock.until(() => clock.pending === 0, 1000)
    expect(clock.pending).toBe(0)
  })
})

describe('a peer that does not answer', () => {
  it('is dead after a minute', async () => {
    const clock = new VirtualClock()
    await using both = await pair({ clock }, { autoPong: false })
    let isOver = false
    const reading = readAll(both.channels).finally(() => {
      isOver = true
    })
    await clock.advance(59_000)
    expect(isOver).toBe(false)
    await clock.advance(1000)
    expect((await reading).error).toMatchObject({
      message: expect.stringContaining('no sign of life from the server for 60 s'),
    })
  })

  it('lives as long as it says anything', async () => {
    const clock = new VirtualClock()
    await using both = await pair({ clock }, { autoPong: false })
    const frames = both.channels[Symbol.asyncIterator]()
    for (let minute = 0; minute < 5; minute++) {
      await clock.advance(50_000)
      both.peer.send(frame(1, 'still here'))
      expect((await frames.next()).value).toMatchObject({ channel: 1 })
    }
    await clock.advance(60_000)
    await expect(frames.next()).rejects.toThrow('no sign of life')
  })

  it('has ten minutes while it has not taken what we sent', async () => {
    const clock = new VirtualClock()
    await using both = await pair({ clock }, { autoPong: false })
    await both.channels.send(0, Buffer.from('unread'))
    const reading = readAll(both.channels)
    await clock.advance(599_000)
    await both.channels.send(0, Buffer.from('more'))
    await clock.advance(1000)
    expect((await reading).error).toMatchObject({ message: expect.stringContaining('for 600 s') })
  })

  it('has a minute again when it has taken what we sent', async () => {
    const clock = new VirtualClock()
    await using both = await pair({ clock }, { autoPong: false })
    both.peer.once('ping', data => {
      both.peer.pong(data)
      both.peer.send(frame(1, 'after the pong'))
    })
    await both.channels.send(0, Buffer.from('taken'))
    const frames = both.channels[Symbol.asyncIterator]()
    await clock.advance(10_000)
    expect((await frames.next()).value).toMatchObject({ channel: 1 })
    await clock.advance(60_000)
    await expect(frames.next()).rejects.toThrow('for 60 s')
  })
})
