/**
 * A thousand readers of events, one of which never reads: it is cut off, and the others notice nothing.
 */
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { type AgentProcess, memoryOf, start } from './process.ts'

const MiB = 1024 * 1024
const readers = 999

const config = {
  actions: [{ name: 'note', exec: { command: ['true'] }, params: { text: { type: 'string' } } }],
}

test('all others hear every event, in order, while the one that is stuck is there and when it is cut off', async () => {
  const agent = await start({ config })
  await agent.put('first', 'note', { text: '' })
  await agent.ended('first')
  const all = await Promise.all(Array.from({ length: readers }, () => reader(agent)))
  const stuck = await stuckReader(agent)
  await expect.poll(() => all.every(one => one.seq >= 0), { timeout: 20_000 }).toBe(true)
  const before = await agent.memory()

  await note(agent, 'small', 'x')
  await heard(agent, all)
  expect(isCutOff(agent)).toBe(false)

  let most = 0
  let sent = 0
  while (!isCutOff(agent)) {
    if (sent++ > 100) throw new Error('the one that is stuck was not cut off after 100 runs')
    await note(agent, `large-${sent}`, 'x'.repeat(64 * 1024))
    await heard(agent, all)
    most = Math.max(most, memoryOf(agent.pid))
  }
  // What waits for it is no more than 1 MiB, and what waits for the others is on its way.
  expect((most - before) / MiB).toBeLessThan(100)

  await note(agent, 'last', 'x')
  await heard(agent, all)
  for (const one of all) expect(one.faults).toEqual([])
  await expect.poll(() => stuck.hasEnded(), { timeout: 30_000 }).toBe(true)
  expect(((await agent.memory()) - before) / MiB).toBeLessThan(100)
})

const isCutOff = (agent: AgentProcess) => agent.output().includes('too slow and is cut off')

async function note(agent: AgentProcess, id: string, text: string): Promise<void> {
  expect((await agent.put(id, 'note', { text })).status).toBe(201)
  await agent.ended(id)
}

interface Reader {
  /** The number of the last message; -1 before the first. */
  seq: number
  readonly faults: string[]
}

async function heard(agent: AgentProcess, all: readonly Reader[]): Promise<void> {
  const { seq } = (await agent.ask('GET', '/v1/state')).json
  await expect.poll(() => all.filter(one => one.seq < seq).length, { timeout: 30_000, interval: 20 }).toBe(0)
}

async function reader(agent: AgentProcess): Promise<Reader> {
  const socket = new WebSocket(`ws://127.0.0.1:${agent.port}/v1/events`, { perMessageDeflate: false })
  onTestFinished(() => socket.terminate())
  const one: Reader = { seq: -1, faults: [] }
  socket.on('message', data => {
    // The number stands first, and the rest of a thousand copies need not be read.
    const seq = Number(/^\{"seq":(\d+)/.exec(String((data as Buffer).subarray(0, 40)))?.[1])
    if (one.seq >= 0 && seq !== one.seq + 1) one.faults.push(`${seq} came after ${one.seq}`)
    one.seq = seq
  })
  socket.on('close', code => one.faults.push(`closed with ${code}`))
  await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject))
  return one
}

/** Asks, reads that it was let in, and nothing more: what is sent to it stays in the buffers of the system, and then in the agent's. */
async function stuckReader(agent: AgentProcess): Promise<{ hasEnded(): boolean }> {
  const welcome = 'HTTP/1.1 101'
  const { promise, resolve } = Promise.withResolvers<string>()
  const buffer = Buffer.alloc(welcome.length)
  const callback = () => {
    resolve(buffer.toString())
    return false
  }
  const socket = connect({ port: agent.port, host: '127.0.0.1', onread: { buffer, callback } })
  onTestFinished(() => void socket.destroy())
  let hasEnded = false
  socket.on('error', () => {
    hasEnded = true
  })
  const lines = [
    'GET /v1/events HTTP/1.1',
    'Host: localhost',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`,
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  expect(await promise).toBe(welcome)
  return {
    hasEnded() {
      // One who does not read learns of the end when it writes.
      if (!hasEnded && socket.writable) socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]))
      return hasEnded || !socket.writable
    },
  }
}
