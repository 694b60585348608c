import { connect, type Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Message } from '../../../shared/protocol/schemas.ts'
import { wholeCharacters } from '../../../sidecar/server/follow.ts'
import { createFakeAgent } from '../../fixtures/sidecar-agent.ts'
import { type Reading, read } from '../../fixtures/sidecar-reader.ts'
import { call, raw, start } from '../../fixtures/sidecar-server.ts'
import { VirtualClock } from '../../fixtures/virtual-clock.ts'

const seed = Number(process.env.SHIPMATE_SEED)
const backup = { action: 'backup' }
const kinds = ({ heard }: Reading) => heard.map(({ type, seq }) => `${type} ${seq}`)

describe('a reader of events', () => {
  it('without a cursor has a reset with a snapshot, then what follows', async () => {
    const { port, agent } = await start()
    await call(port, 'PUT', '/v1/runs/a', { body: backup })
    const reader = await read(port)
    agent.change('Servicing')
    agent.finish('a')
    await expect.poll(() => kinds(reader)).toEqual(['reset 1', 'state 2', 'run 3'])
    expect(reader.heard[0]).toMatchObject({
      cursor: 'boot-1.1',
      state: { seq: 1 },
      runs: [{ id: 'a', phase: 'Running' }],
    })
    expect(reader.wrong).toEqual([])
  })

  it('with a cursor has what came since, and no reset', async () => {
    const { port, agent } = await start()
    for (const state of ['A', 'B', 'C']) agent.change(state)
    const reader = await read(port, '?since=boot-1.1')
    agent.change('D')
    await expect.poll(() => kinds(reader)).toEqual(['state 2', 'state 3', 'state 4'])
  })

  it('with the newest cursor hears nothing until there is something', async () => {
    const { port, agent } = await start()
    agent.change('A')
    const reader = await read(port, '?since=boot-1.1')
    agent.change('B')
    await expect.poll(() => kinds(reader)).toEqual(['state 2'])
  })

  it.each(['boot-0.1', 'boot-1.9', 'nonsense', ''])('with the cursor "%s" has a reset', async cursor => {
    const { port, agent } = await start()
    agent.change('A')
    const reader = await read(port, `?since=${cursor}`)
    await expect.poll(() => kinds(reader)).toEqual(['reset 1'])
  })

  it('with a cursor that is too old has a reset', async () => {
    const { port, agent } = await start({ agent: createFakeAgent({ keep: 2 }) })
    for (const state of ['A', 'B', 'C']) agent.change(state)
    const reader = await read(port, '?since=boot-1.0')
    await expect.poll(() => kinds(reader)).toEqual(['reset 3'])
  })

  it('may say what it likes: it is ignored, unless it is long', async () => {
    const { port, agent } = await start()
    const reader = await read(port, '?since=boot-1.0')
    reader.socket.send('{"type":"reset"}')
    reader.socket.send(Buffer.alloc(100))
    agent.change('A')
    await expect.poll(() => kinds(reader)).toEqual(['state 1'])
    reader.socket.send('x'.repeat(100_000))
    await expect.poll(() => reader.code).toBe(1009)
  })

  it('is not offered compression', async () => {
    const { port } = await start()
    const reader = await read(port, '', { perMessageDeflate: true })
    expect(reader.socket.extensions).toBe('')
  })

  it('is pinged every 15 s, and cut off if it answers none', async () => {
    const clock = new VirtualClock()
    const { port, servers } = await start({ clock })
    const awake = await read(port)
    const asleep = await read(port, '', { autoPong: false })
    let pings = 0
    awake.socket.on('ping', () => pings++)
    await expect.poll(() => servers.readers).toBe(2)
    await clock.advance(15_000)
    await expect.poll(() => pings).toBe(1)
    // The pong must have arrived before time goes on.
    await call(port, 'GET', '/v1/state')
    await clock.advance(15_000)
    await expect.poll(() => asleep.code).toBe(1006)
    await expect.poll(() => pings).toBe(2)
    expect([servers.readers, awake.code]).toEqual([1, undefined])
  })

  it('is sent away when the server drains', async () => {
    const { port, servers } = await start()
    const reader = await read(port)
    await servers.drain()
    await expect.poll(() => reader.code).toBe(1001)
    expect(servers.readers).toBe(0)
  })

  it('leaves no timer behind', async () => {
    const clock = new VirtualClock()
    const { port, servers } = await start({ clock })
    const reader = await read(port)
    await expect.poll(() => clock.pending).toBe(1)
    reader.socket.close()
    await expect.poll(() => [servers.readers, clock.pending]).toEqual([0, 0])
  })
})

describe('what is no reader is refused over HTTP', () => {
  const upgrade = (
    path: string,
    headers = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n',
  ) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${headers}\r\n`

  it.each([
    ['/v1/events?log=a', 404, 'UnknownRun'],
    ['/v1/events?log=%24', 400, 'InvalidBody'],
    ['/v1/events?since=a&since=b', 400, 'InvalidBody'],
    ['/v1/events?offset=x', 400, 'InvalidBody'],
  ])('%s is %i %s', async (path, status, code) => {
    const { port } = await start()
    const answer = await raw(port, upgrade(path))
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*"code":"${code}"`))
  })

  it('without a key, or of another version', async () => {
    const { port } = await start()
    for (const headers of ['', 'Sec-WebSocket-Version: 1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n']) {
      expect(await raw(port, upgrade('/v1/events', headers))).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"InvalidBody"/)
    }
  })

  it('from a page in a browser', async () => {
    const { port } = await start()
    await expect(read(port, '', { origin: 'https://evil.example' })).rejects.toThrow('403')
  })
})

describe('a log that is followed', () => {
  const texts = ({ heard }: Reading) => heard.flatMap(message => (message.type === 'log' ? [message] : []))
  const joined = (reader: Reading) =>
    texts(reader)
      .map(({ text }) => text)
      .join('')

  it('is sent from the start and as it grows, only to who asked', async () => {
    const { port, agent } = await start()
    await call(port, 'PUT', '/v1/runs/a', { body: backup })
    agent.write('a', 'one\n')
    const reader = await read(port, '?since=boot-1.1&log=a')
    const other = await read(port, '?since=boot-1.1')
    await expect.poll(() => joined(reader)).toBe('one\n')
    agent.write('a', 'two\n')
    await expect.poll(() => joined(reader)).toBe('one\ntwo\n')
    agent.finish('a')
    await expect.poll(() => kinds(reader).at(-1)).toBe('run 2')
    expect(texts(reader)).toMatchObject([
      { id: 'a', offset: 0, next: 4, seq: 1, cursor: 'boot-1.1' },
      { id: 'a', offset: 4, next: 8 },
    ])
    await expect.poll(() => kinds(other)).toEqual(['run 2'])
    expect(reader.wrong).toEqual([])
  })

  it('begins where it is asked to, and passes over what is gone', async () => {
    const { port, agent } = await start()
    await call(port, 'PUT', '/v1/runs/a', { body: backup })
    agent.write('a', '0123456789')
    agent.cut('a', 4, 8)
    const reader = await read(port, '?since=boot-1.1&log=a&offset=2')
    await expect
      .poll(() => texts(reader))
      .toMatchObject([
        { offset: 2, next: 4, text: '23' },
        { offset: 8, next: 10, text: '89' },
      ])
  })

  it('has no character cut in two, however it is written', async () => {
    const { port, agent } = await start()
    await call(port, 'PUT', '/v1/runs/a', { body: backup })
    const text = 'aä€😀'.repeat(3)
    const reader = await read(port, '?since=boot-1.1&log=a')
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at++) {
      agent.write('a', bytes.subarray(at, at + 1))
      // Each byte is seen alone.
      await call(port, 'GET', '/v1/features')
    }
    await expect.poll(() => joined(reader)).toBe(text)
    // The end of a run ends a character, too.
    agent.write('a', bytes.subarray(1, 2))
    agent.finish('a')
    await expect.poll(() => joined(reader)).toBe(`${text}\ufffd`)
  })

  it('comes whole, though it is long', async () => {
    const { port, agent } = await start()
    await call(port, 'PUT', '/v1/runs/a', { body: backup })
    const text = '€'.repeat(1_000_000)
    agent.write('a', text)
    const reader = await read(port, '?since=boot-1.1&log=a')
    await expect.poll(() => joined(reader).length, { timeout: 5_000 }).toBe(text.length)
    expect(joined(reader)).toBe(text)
  })

  it('ends quietly when its run is dropped', async () => {
    const { port, agent } = await start()
    await call(port, 'PUT', '/v1/runs/a', { body: backup })
    const reader = await read(port, '?since=boot-1.1&log=a')
    agent.finish('a')
    await call(port, 'DELETE', '/v1/runs/a')
    agent.events.logGrown('a')
    agent.change('A')
    await expect.poll(() => kinds(reader)).toEqual(['run 2', 'state 3'])
  })

  it('is cut between characters only', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(), (text, at) => {
        const bytes = Buffer.from(text.toWellFormed())
        const head = bytes.subarray(0, bytes.length === 0 ? 0 : at % bytes.length)
        const whole = wholeCharacters(head)
        expect(head.length - whole).toBeLessThan(4)
        const both = bytes.subarray(0, whole).toString() + bytes.subarray(whole).toString()
        expect(both).toBe(bytes.toString())
      }),
      { seed },
    )
  })
})

/** A reader that takes nothing of what is sent to it. */
async function stuck(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  socket.write(
    'GET /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  await new Promise(resolve => socket.once('readable', resolve))
  return socket
}

describe('many readers', () => {
  it('one that takes nothing is cut off; the others have everything', async () => {
    const { port, agent, servers } = await start()
    const readers = await Promise.all(Array.from({ length: 20 }, () => read(port, '?since=boot-1.0')))
    await stuck(port)
    await expect.poll(() => servers.readers).toBe(21)
    const large = 'x'.repeat(50_000)
    let sent = 0
    while (servers.readers === 21 && sent < 1_000) {
      agent.change(`${large}${sent++}`)
      // The others are given the time to take it.
      await expect.poll(() => readers.every(({ heard }) => heard.length === sent), { interval: 1 }).toBe(true)
    }
    expect(servers.readers).toBe(20)
    agent.change('end')
    await expect.poll(() => readers.every(({ heard }) => heard.length === sent + 1)).toBe(true)
    for (const { heard } of readers) expect(heard.map(({ seq }) => seq)).toEqual(heard.map((_, index) => index + 1))
  })

  it('a snapshot that is larger than the backlog allowed is no reason to be cut off', async () => {
    const { port, agent, servers } = await start()
    // More than the kernel buffers for the two of them.
    const large = 'x'.repeat(250_000)
    for (let count = 0; count < 60; count++) {
      await agent.put(`r${count}`, { action: 'backup', params: { large } })
      agent.finish(`r${count}`)
    }
    const slow = await stuck(port)
    await expect.poll(() => servers.readers).toBe(1)
    for (let count = 0; count < 5; count++) agent.change(`S${count}`)
    expect(servers.readers).toBe(1)
    let last = ''
    slow.on('data', chunk => {
      last = (last + chunk.toString('latin1')).slice(-2_000)
    })
    await expect.poll(() => last, { timeout: 5_000 }).toContain('"state":"S4"')
  })

  it('1,000 idle ones all hear of a change', async () => {
    const { port, agent, servers } = await start()
    const counts = { heard: 0 }
    for (let batch = 0; batch < 10; batch++) {
      const readers = await Promise.all(Array.from({ length: 100 }, () => read(port, '?since=boot-1.0')))
      for (const { socket } of readers) socket.on('message', () => counts.heard++)
    }
    await stuck(port)
    await expect.poll(() => servers.readers).toBe(1_001)
    agent.change('A')
    await expect.poll(() => counts.heard, { timeout: 10_000 }).toBe(1_000)
  }, 30_000)
})

it('a reader that comes and goes with its cursor has each message once, resets aside', async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('publish' as const), count: fc.integer({ min: 1, max: 6 }) }),
    fc.constant({ do: 'leave' as const, count: 0 }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.integer({ min: 2, max: 10 }), async (steps, keep) => {
      const { port, agent, servers } = await start({ agent: createFakeAgent({ keep }) })
      const heard: Message[] = []
      let cursor = 'boot-1.0'
      let reader: Reading | undefined
      const gather = () => {
        for (const message of reader?.heard.splice(0) ?? []) {
          heard.push(message)
          cursor = message.cursor
        }
      }
      for (const { do: what, count } of steps) {
        if (what === 'publish') for (let n = 0; n < count; n++) agent.change(`S${n}`)
        else if (reader) {
          // Wherever it is in what it was sent.
          gather()
          reader.socket.terminate()
          reader = undefined
        } else reader = await read(port, `?since=${cursor}`)
      }
      gather()
      reader?.socket.terminate()
      reader = await read(port, `?since=${cursor}`)
      agent.change('end')
      const newest = () => {
        gather()
        return heard.at(-1)?.seq
      }
      await expect.poll(newest, { interval: 2 }).toBe(agent.events.seq)
      let last = 0
      for (const { type, seq } of heard) {
        if (type === 'reset') expect(seq).toBeGreaterThan(last)
        else expect(seq).toBe(last + 1)
        last = seq
      }
      await servers.close()
    }),
    { seed, numRuns: 30 },
  )
}, 30_000)
