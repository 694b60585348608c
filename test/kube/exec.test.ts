import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import { Aborted, Unavailable } from '../../controller/kube/errors.ts'
import { exec, execStream, exitCodeOf } from '../../controller/kube/exec.ts'
import { podTarget } from '../../controller/kube/websocket.ts'
import { type ChannelServerOptions, frame, startChannelServer, statusBody } from '../fixtures/channel-server.ts'
import { VirtualClock } from '../fixtures/virtual-clock.ts'

const pod = { name: 'pod', namespace: 'ns' }
const target = podTarget(pod, 'exec')
const success = JSON.stringify({ metadata: {}, status: 'Success' })
const nonZero = (code: number) =>
  JSON.stringify({
    ...{
      metadata: {},
      status: 'Failure',
      reason: 'NonZeroExitCode',
      message: `command terminated with exit code ${code}`,
    },
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  })

/** A server whose containers do as `play` says. */
function container(play: (socket: WebSocket) => void, options: ChannelServerOptions = {}) {
  return startChannelServer({
    ...options,
    onSocket: socket => {
      // As the real one, which opens each channel with nothing.
      for (const channel of [0, 1, 2, 3]) socket.send(frame(channel))
      play(socket)
    },
  })
}

describe('what the server says at the end', () => {
  it('is an exit code', () => {
    expect(exitCodeOf(target, JSON.parse(success))).toBe(0)
    expect(exitCodeOf(target, JSON.parse(nonZero(137)))).toBe(137)
  })

  it('is ExecFailed, in its words, where there was no command to end', () => {
    const message = 'Internal error occurred: exec: "nope": executable file not found in $PATH'
    const failing = () => exitCodeOf(target, { status: 'Failure', code: 500, reason: 'InternalError', message })
    expect(failing).toThrow(expect.objectContaining({ code: 'ExecFailed', retry: 'never' }))
    expect(failing).toThrow(message)
    expect(() => exitCodeOf(target, { status: 'Failure' })).toThrow('the server gives no reason')
  })

  it('is Unavailable where the node was not reached', () => {
    const message = 'error dialing backend: dial tcp 10.0.0.1:10250: connect: connection refused'
    expect(() => exitCodeOf(target, { status: 'Failure', code: 500, message })).toThrow(Unavailable)
  })
})

describe('a command', () => {
  it('gives what it wrote, each stream apart, and its exit code', async () => {
    await using server = await container(socket => {
      socket.send(frame(1, 'one '))
      socket.send(frame(2, 'oh'))
      socket.send(frame(1, 'two'))
      socket.send(frame(3, nonZero(3)))
    })
    const command = ['sh', '-c', 'echo "a b" && exit 3']
    const result = await exec(server.source, pod, { container: 'main', command })
    expect(result).toEqual({ exitCode: 3, stdout: 'one two', stderr: 'oh', truncated: false })
    const query = new URL(server.requests[0]?.url ?? '', server.url).searchParams
    expect(query.getAll('command')).toEqual(command)
    expect(Object.fromEntries(query)).toMatchObject({ container: 'main', stdout: 'true', stderr: 'true' })
    expect(query.has('stdin') || query.has('tty')).toBe(false)
  })

  it('in a terminal has no stderr of its own', async () => {
    await using server = await container(socket => socket.send(frame(3, success)))
    await exec(server.source, pod, { command: ['sh'], tty: true })
    expect(server.requests[0]?.url).toMatch(/\?command=sh&stdout=true&tty=true$/)
  })

  it('has the end of its input told, after all of it', async () => {
    const input = Buffer.from('ä'.repeat(50_000))
    await using server = await container(socket => {
      const received: Buffer[] = []
      socket.on('message', (message: Buffer) => {
        if (message[0] === 0) return received.push(message.subarray(1))
        expect(message).toEqual(Buffer.of(255, 0))
        socket.send(frame(1, Buffer.concat(received)))
        return socket.send(frame(3, success))
      })
    })
    for (const stdin of [input.toString(), input, PassThrough.from([input.subarray(0, 99), input.subarray(99)])]) {
      expect((await exec(server.source, pod, { command: ['cat'], stdin })).stdout).toBe(input.toString())
    }
  })

  it('with input is not started by a server that cannot tell its end', async () => {
    const refuse: ChannelServerOptions['refuse'] = ({ headers }) =>
      headers['sec-websocket-protocol']?.includes('v4.') ? undefined : { status: 400, body: 'unsupported protocol' }
    await using server = await container(socket => socket.send(frame(3, success)), {
      refuse,
      protocol: () => 'v4.channel.k8s.io',
    })
    await expect(exec(server.source, pod, { command: ['cat'], stdin: '' })).rejects.toThrow('unsupported protocol')
    expect(await exec(server.source, pod, { command: ['true'] })).toMatchObject({ exitCode: 0 })
  })

  it('that ends without reading its input leaves the source closed', async () => {
    await using server = await container(socket => socket.send(frame(3, success)))
    const stdin = new PassThrough()
    expect(await exec(server.source, pod, { command: ['true'], stdin })).toMatchObject({ exitCode: 0 })
    if (!stdin.closed) await once(stdin, 'close')
  })

  it('ends with an error of ours when its input cannot be read', async () => {
    await using server = await container(() => {})
    async function* stdin() {
      yield Buffer.from('x')
      throw new Error('the disk is gone')
    }
    const running = exec(server.source, pod, { command: ['cat'], stdin: stdin() })
    await expect(running).rejects.toMatchObject({
      code: 'ExecFailed',
      message: expect.stringContaining('the disk is gone'),
    })
  })

  it('that writes too much is read to its end, and cut between characters', async () => {
    await using server = await container(socket => {
      for (let i = 0; i < 1000; i++) socket.send(frame(1, 'äöü'))
      socket.send(frame(2, 'fine'))
      socket.send(frame(3, success))
    })
    const result = await exec(server.source, pod, { command: ['x'], maxOutput: 9 })
    expect(result).toEqual({ exitCode: 0, stdout: 'äöüä', stderr: 'fine', truncated: true })
    const exact = await exec(server.source, pod, { command: ['x'], maxOutput: 6000 })
    expect(exact).toMatchObject({ stdout: 'äöü'.repeat(1000), truncated: false })
  })

  it('has its end understood however it is cut', async () => {
    const end = nonZero(7)
    await using server = await container(socket => {
      for (const letter of end) socket.send(frame(3, letter))
    })
    expect(await exec(server.source, pod, { command: ['x'] })).toMatchObject({ exitCode: 7 })
  })

  it('whose end is not told may have run', async () => {
    await using server = await container(socket => {
      socket.send(frame(1, 'so far'))
      socket.close(1000)
    })
    const error = await exec(server.source, pod, { command: ['x'] }).catch(error => error)
    expect(error).toBeInstanceOf(Unavailable)
    expect(error).toMatchObject({
      mayHaveActed: true,
      message: expect.stringContaining('ended before the command did'),
    })
  })

  it('whose end makes no sense is garbled', async () => {
    await using server = await container(socket => {
      socket.send(frame(3, '<html>'))
      socket.close(1000)
    })
    await expect(exec(server.source, pod, { command: ['x'] })).rejects.toMatchObject({ code: 'Garbled' })
  })

  it('that is empty is never asked for', async () => {
    await using server = await container(() => {})
    await expect(exec(server.source, pod, { command: [] })).rejects.toMatchObject({ code: 'Misuse' })
    expect(server.requests).toHaveLength(0)
  })

  it('is left at once, even by whoever is stuck with a piece of its output', async () => {
    const stop = new AbortController()
    await using server = await container(socket => socket.send(frame(1, 'x')))
    const onStdout = () => {
      stop.abort('enough')
      return new Promise(() => {})
    }
    const running = execStream(server.source, pod, { command: ['x'], onStdout, signal: stop.signal })
    await expect(running).rejects.toBeInstanceOf(Aborted)
    await expect(exec(server.source, pod, { command: ['x'], signal: stop.signal })).rejects.toBeInstanceOf(Aborted)
    expect(server.requests).toHaveLength(1)
  })

  it('is left at its deadline', async () => {
    const clock = new VirtualClock()
    const started = Promise.withResolvers<void>()
    await using server = await container(() => started.resolve())
    const caught = exec(server.source, pod, { command: ['x'], deadline: 5000, clock }).catch(error => error)
    await started.promise
    await clock.advance(5000)
    expect(await caught).toMatchObject({ code: 'DeadlineExceeded', message: expect.stringContaining('within 5000 ms') })
  })

  it('has the handling of its output fail as its own', async () => {
    await using server = await container(socket => socket.send(frame(1, 'x')))
    const onStdout = () => {
      throw new Error('no room')
    }
    await expect(execStream(server.source, pod, { command: ['x'], onStdout })).rejects.toThrow('no room')
  })

  it('in a pod that is not there is NotFound', async () => {
    const body = statusBody(404, 'NotFound', 'pods "pod" not found')
    await using server = await container(() => {}, { refuse: () => ({ status: 404, body }) })
    await expect(exec(server.source, pod, { command: ['x'] })).rejects.toThrow('pods "pod" not found')
  })
})
