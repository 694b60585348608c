/**
 * A command that prints a great deal costs the agent and the wrapper no more memory than one that prints a little, whoever reads along.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { read } from '../../fixtures/sidecar-reader.ts'
import { type AgentProcess, hasInit, memoryOf, start } from './process.ts'

const MiB = 1024 * 1024
const config = {
  actions: [
    {
      name: 'print',
      exec: {
        command: ['sh', '-c', 'yes "a line of output, as a backup may print it" | head -c "$SHIPMATE_PARAM_BYTES"'],
      },
      params: { bytes: { type: 'integer' } },
      timeout: '5m',
    },
  ],
}

test('the agent grows by less than 20 MB while a run prints 100 MB, and its wrapper does not grow', async () => {
  const agent = await start({ config })
  await agent.put('first', 'print', { bytes: 2 * MiB })
  await agent.ended('first')
  const before = await agent.memory()

  const { agentMost, wrapper } = await printed(agent, 'long', 100 * MiB)

  const { log, phase } = await agent.ended('long')
  expect({ phase, size: log.size }).toEqual({ phase: 'Succeeded', size: 100 * MiB })
  expect((agentMost - before) / MiB).toBeLessThan(20)
  expect(((await agent.memory()) - before) / MiB).toBeLessThan(20)
  expect(wrapper.length).toBeGreaterThan(1)
  if (!hasInit) return
  expect(Math.max(...wrapper) / MiB).toBeLessThan(8)
})

test('a reader that follows the log of such a run costs no more', async () => {
  const agent = await start({ config })
  await agent.put('first', 'print', { bytes: 2 * MiB })
  await agent.ended('first')
  const before = await agent.memory()
  const asked = agent.put('long', 'print', { bytes: 100 * MiB })
  await asked
  const reader = await read(agent.port, '?log=long')
  let next = 0
  let isRising = true
  reader.socket.on('message', data => {
    const message = JSON.parse(String(data))
    reader.heard.length = 0
    if (message.type !== 'log') return
    if (message.offset < next) isRising = false
    next = message.next
  })
  const { agentMost } = await sampled(agent, 'long')
  await expect.poll(() => next, { timeout: 20_000 }).toBe(100 * MiB)
  expect(isRising).toBe(true)
  expect((agentMost - before) / MiB).toBeLessThan(64)
  // What was needed meanwhile is given back.
  await expect
    .poll(async () => ((await agent.memory()) - before) / MiB, { timeout: 20_000, interval: 500 })
    .toBeLessThan(20)
})

async function printed(agent: AgentProcess, id: string, bytes: number) {
  expect((await agent.put(id, 'print', { bytes })).status).toBe(201)
  return sampled(agent, id)
}

/** What both have at most until the run ends. */
async function sampled(agent: AgentProcess, id: string) {
  const wrapper: number[] = []
  let agentMost = 0
  let isOver = false
  const ended = agent.ended(id).then(() => {
    isOver = true
  })
  while (!isOver) {
    agentMost = Math.max(agentMost, memoryOf(agent.pid))
    const memory = memoryOf(wrapperOf(agent, id))
    if (memory > 0) wrapper.push(memory)
    // One answer of the agent is one beat: so it is also asked while it works.
    await agent.ready()
  }
  await ended
  return { agentMost, wrapper }
}

function wrapperOf(agent: AgentProcess, id: string): number {
  try {
    return JSON.parse(readFileSync(join(agent.stateDir, 'runs', id, 'claim'), 'utf8')).pid
  } catch {
    return -1
  }
}
