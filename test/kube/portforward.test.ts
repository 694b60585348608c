import { once } from 'node:events'
import { connect } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import { Aborted, Forbidden, Unavailable } from '../../controller/kube/errors.ts'
import { forwardPort, portForward } from '../../controller/kube/portforward.ts'
import { frame, startChannelServer, statusBody } from '../fixtures/channel-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

const pod = { name: 'pod', namespace: 'ns' }

/** A server whose pods do as `play` says with what is sent to port 8080. */
function listener(play: (socket: WebSocket) => void) {
  return startChannelServer({
    onSocket: socket => {
      for (const channel of [0, 1]) socket.send(frame(channel, Buffer.of(0x90, 0x1f)))
      play(socket)
    },
  })
}

/** What was sent to the pod, as it comes. */
function onData(socket: WebSocket, take: (data: Buffer) => void) {
  socket.on('message', (message: Buffer) => {
    expect(message[0]).toBe(0)
    take(message.subarray(1))
  })
}

const echo = (socket: WebSocket) => onData(socket, data => socket.send(frame(0, data)))

describe('a stream to a port of a pod', () => {
  it('carries bytes both ways and ends with the pod', async () => {
    await using server = await listener(socket => {
      onData(socket, data => {
        if (data.at(-1) === 0x0a) socket.close(1000)
        else socket.send(frame(0, data.toString().toUpperCase()))
      })
    })
    const stream = await portForward(server.source, pod, 8080)
    stream.write('hello ')
    await once(stream, 'readable')
    stream.write('world')
    stream.end('\n')
    expect(await text(stream)).toBe('HELLO WORLD')
    expect(server.requests[0]?.url).toBe('/api/v1/namespaces/ns/pods/pod/portforward?ports=8080')
  })

  it('fails with the words of the node where nobody listens', async () => {
    await using server = await listener(socket =>
      socket.send(frame(1, 'dial tcp4 127.0.0.1:8080: connect: connection refused\n')),
    )
    const stream = await portForward(server.source, pod, 8080)
    const error = await text(stream).catch(error => error)
    expect(error).toBeInstanceOf(Unavailable)
    expect(error.message).toBe(
      'get pods/portforward pod in namespace ns: port 8080 of the pod: dial tcp4 127.0.0.1:8080: connect: connection refused',
    )
  })

  it('fails when the connection breaks, after what came', async () => {
    await using server = await listener(socket => socket.send(frame(0, 'half'), () => socket.terminate()))
    const stream = await portForward(server.source, pod, 8080)
    const pieces: string[] = []
    const reading = (async () => {
      for await (const piece of stream) pieces.push(String(piece))
    })()
    await expect(reading).rejects.toThrow('the connection was cut')
    expect(pieces).toEqual(['half'])
  })

  it('lets what is written to a pod that has closed go nowhere, as TCP does', async () => {
    await using server = await listener(socket => {
      socket.send(frame(0, 'goodbye'))
      socket.close(1000)
    })
    const stream = await portForward(server.source, pod, 8080)
    await once(stream, 'readable')
    stream.write('too late')
    expect(await text(stream)).toBe('goodbye')
  })

  it('holds back a pod that sends faster than is read', async () => {
    const piece = Buffer.alloc(32_000)
    let handedOver = 0
    await using server = await listener(socket => {
      for (let i = 0; i < 1000; i++) socket.send(frame(0, piece), () => handedOver++)
      socket.close(1000)
    })
    const stream = await portForward(server.source, pod, 8080)
    let read = 0
    let ahead = 0
    for await (const data of stream) {
      read += data.length
      ahead = Math.max(ahead, handedOver * piece.length - read)
      await new Promise(setImmediate)
    }
    expect(read).toBe(1000 * piece.length)
    expect(ahead).toBeLessThan(16 << 20)
  })

  it('is destroyed when aborted, even if nobody reads', async () => {
    const stop = new AbortController()
    await using server = await listener(socket => {
      for (let i = 0; i < 10; i++) socket.send(frame(0, Buffer.alloc(100_000)))
    })
    const stream = await portForward(server.source, pod, 8080, { signal: stop.signal })
    await once(stream, 'readable')
    const failed = new Promise(resolve => stream.once('error', resolve))
    stop.abort('enough')
    expect(await failed).toBeInstanceOf(Aborted)
  })

  it('closes the connection when it is destroyed', async () => {
    const closed = Promise.withResolvers<number>()
    await using server = await listener(socket => socket.on('close', closed.resolve))
    const stream = await portForward(server.source, pod, 8080)
    stream.destroy()
    expect(await closed.promise).toBe(1000)
  })

  it.each([0, 65_536, 1.5, Number.NaN])('is not asked for port %d', async port => {
    await using server = await listener(() => {})
    await expect(portForward(server.source, pod, port)).rejects.toMatchObject({ code: 'Misuse' })
    expect(server.requests).toHaveLength(0)
  })

  it('is refused with the class of the reason', async () => {
    const body = statusBody(403, 'Forbidden', 'User "u" cannot get resource "pods/portforward" in API group ""')
    await using server = await startChannelServer({ refuse: () => ({ status: 403, body }) })
    await expect(portForward(server.source, pod, 8080)).rejects.toBeInstanceOf(Forbidden)
  })
})

describe('a local port', () => {
  it('forwards each connection', async () => {
    await using server = await listener(echo)
    await using local = await forwardPort(server.source, pod, 8080)
    expect(local.host).toBe('127.0.0.1')
    const answers = Array.from({ length: 20 }, async (_, i) => {
      const socket = connect(local.port, local.host)
      socket.write(`number ${i}`)
      const [answer] = await once(socket, 'data')
      socket.destroy()
      return String(answer)
    })
    expect(await Promise.all(answers)).toEqual(Array.from({ length: 20 }, (_, i) => `number ${i}`))
  })

  it('brings all that the pod sent before it closed', async () => {
    const all = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 253))
    await using server = await listener(socket => {
      for (let at = 0; at < all.length; at += 1000) socket.send(frame(0, all.subarray(at, at + 1000)))
      socket.close(1000)
    })
    await using local = await forwardPort(server.source, pod, 8080)
    expect(await buffer(connect(local.port, local.host))).toEqual(all)
  })

  it('waits for the answer to whoever has sent its last', async () => {
    await using server = await listener(socket =>
      onData(socket, data => socket.send(frame(0, data), () => socket.close(1000))),
    )
    await using local = await forwardPort(server.source, pod, 8080)
    const socket = connect({ port: local.port, host: local.host, allowHalfOpen: true })
    socket.end('last')
    expect(await text(socket)).toBe('last')
  })

  it('does not wait for ever: whoever has sent its last may be gone', async () => {
    const clock = new VirtualClock()
    const closed = Promise.withResolvers<number>()
    const answered = Promise.withResolvers<void>()
    await using server = await listener(socket => {
      socket.on('close', closed.resolve)
      onData(socket, data => socket.send(frame(0, data)))
    })
    await using local = await forwardPort(server.source, pod, 8080, { clock, linger: 30_000 })
    const socket = connect({ port: local.port, host: local.host, allowHalfOpen: true })
    const ended = once(socket, 'close')
    socket.once('data', () => answered.resolve())
    socket.end('last')
    await answered.promise
    // A ping, and the wait for the pod; the first measure of silence may still have seen the answer.
    await clock.until(() => clock.pending > 1, 1000)
    await clock.advance(60_000)
    socket.resume()
    await ended
    expect(await closed.promise).toBe(1000)
  })

  it('resets a connection that the pod does not take, and says why', async () => {
    await using server = await listener(socket => socket.send(frame(1, 'connection refused')))
    const errors: Error[] = []
    await using local = await forwardPort(server.source, pod, 8080, { onError: error => errors.push(error) })
    await expect(text(connect(local.port, local.host))).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(errors.map(error => error.message)).toEqual([expect.stringContaining('connection refused')])
  })

  it('closes with everything on it, however often it is told to', async () => {
    const closed = Promise.withResolvers<number>()
    const opened = Promise.withResolvers<void>()
    await using server = await listener(socket => {
      opened.resolve()
      socket.on('close', closed.resolve)
    })
    const local = await forwardPort(server.source, pod, 8080)
    const socket = connect(local.port, local.host).on('error', () => {})
    const ended = once(socket, 'close')
    socket.resume()
    await opened.promise
    await Promise.all([local.close(), local.close()])
    await Promise.all([ended, closed.promise, local.close()])
    await expect(text(connect(local.port, local.host))).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('closes when aborted, and does not open when it was before', async () => {
    const stop = new AbortController()
    await using server = await listener(() => {})
    const local = await forwardPort(server.source, pod, 8080, { signal: stop.signal })
    stop.abort('enough')
    await local.close()
    await expect(text(connect(local.port, local.host))).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await expect(forwardPort(server.source, pod, 8080, { signal: stop.signal })).rejects.toBeInstanceOf(Aborted)
  })

  it('that is taken is named', async () => {
    await using server = await listener(() => {})
    await using local = await forwardPort(server.source, pod, 8080)
    const again = forwardPort(server.source, pod, 8080, { localPort: local.port })
    await expect(again).rejects.toThrow(`cannot listen on 127.0.0.1:${local.port}`)
  })
})
