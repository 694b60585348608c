/**
 * Thousands of runs, one after the other and side by side, dropped by a client or by age of the oldest: what the agent holds afterwards is what it held before.
 *
 * 15 runs a schedule: 300 in `npm test`, 1,500 in CI, 15,000 at night.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type AgentProcess, start } from './process.ts'

const schedules = Number(process.env.SHIPMATE_SCHEDULES ?? 20)
const runs = Math.max(schedules * 15, 300)
const MiB = 1024 * 1024
const kept = 50
const atOnce = 8

const config = {
  states: [
    { name: 'Running', when: 'probes.there.ok', next: ['End'] },
    { name: 'End', verb: 'Delete' },
  ],
  probes: [{ name: 'there', file: { path: '/' }, every: '200ms' }],
  actions: [
    { name: 'true', exec: { command: ['true'] }, shared: true },
    { name: 'print', exec: { command: ['sh', '-c', 'echo out; echo err >&2; echo \'{"result":1}\''] }, shared: true },
    { name: 'false', exec: { command: ['false'] }, shared: true, verify: { exec: { command: ['true'] } } },
    { name: 'absent', exec: { command: ['/no/such/program'] }, shared: true },
    { name: 'slow', exec: { command: ['sleep', '60'] }, shared: true, cancel: { grace: '1s' } },
    { name: 'late', exec: { command: ['sleep', '60'] }, shared: true, timeout: '50ms' },
    {
      name: 'secret',
      exec: { command: ['sh', '-c', 'cat "$SHIPMATE_PARAM_FILE_WORD"'] },
      shared: true,
      params: { word: { type: 'string', writeOnly: true } },
    },
    { name: 'steps', steps: [{ exec: { command: ['true'] } }, { exec: { command: ['true'] } }], shared: true },
    { name: 'http', http: { url: 'http://127.0.0.1:9/' }, shared: true },
  ],
}

const phases: Record<string, string> = {
  true: 'Succeeded',
  print: 'Succeeded',
  false: 'Failed',
  absent: 'Failed',
  slow: 'Cancelled',
  late: 'TimedOut',
  secret: 'Succeeded',
  steps: 'Succeeded',
  http: 'Failed',
}
const names = Object.keys(phases)

test(`after ${runs} runs there is no more memory, descriptor, file or process than after the first ones`, async () => {
  const agent = await start({ config, bounds: { count: kept, age: 3_600_000, bytes: 64 * MiB, records: 64 * MiB } })
  const warm = Math.max(200, Math.floor(runs / 5))
  await several(agent, 0, warm)
  const before = await held(agent)
  await several(agent, warm, runs)
  const after = await held(agent)

  expect(after.children).toEqual([])
  expect(after.descriptors.length).toBeLessThanOrEqual(before.descriptors.length + 2)
  expect(after.folders.length).toBeLessThanOrEqual(kept + atOnce)
  expect(after.state).toEqual(before.state)
  expect(after.memory / MiB).toBeLessThan((before.memory / MiB) * 1.25 + 10)

  const list = async () => (await agent.ask('GET', '/v1/runs')).json
  await expect.poll(async () => (await list()).runs.length, { timeout: 10_000 }).toBeLessThanOrEqual(kept)
  const json = await list()
  expect(agent.output()).not.toContain('this is a defect')
  const { journalId } = (await agent.ask('GET', '/v1/state')).json
  expect(await agent.stop()).toBe(0)
  const next = await start({ config, stateDir: agent.stateDir })
  expect((await next.ask('GET', '/v1/state')).json.journalId).toBe(journalId)
  expect((await next.ask('GET', '/v1/runs')).json).toEqual(json)
})

async function several(agent: AgentProcess, first: number, end: number): Promise<void> {
  let next = first
  const worker = async () => {
    while (next < end) await one(agent, next++)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

async function one(agent: AgentProcess, number: number): Promise<void> {
  const id = `run-${number}`
  const action = names[number % names.length] ?? 'true'
  const came = await agent.put(id, action, action === 'secret' ? { word: `word-${number}` } : undefined)
  expect({ id, status: came.status, text: came.text }).toMatchObject({ status: 201 })
  if (action === 'slow') await agent.ask('POST', `/v1/runs/${id}/cancel`)
  const { phase, error } = await agent.ended(id)
  expect({ id, action, phase, error }).toMatchObject({ phase: phases[action] })
  if (number % 3 > 0) return
  const dropped = await agent.ask('DELETE', `/v1/runs/${id}`)
  expect({ id, status: dropped.status, text: dropped.text }).toMatchObject({ status: 204 })
}

/** What the agent has, once it is at rest. */
async function held(agent: AgentProcess) {
  await expect.poll(() => agent.children(), { timeout: 10_000 }).toEqual([])
  await expect
    .poll(() => readdirSync(join(agent.stateDir, 'runs')).length, { timeout: 10_000 })
    .toBeLessThanOrEqual(kept + atOnce)
  return {
    memory: await agent.memory(),
    descriptors: agent.descriptors(),
    children: agent.children(),
    folders: readdirSync(join(agent.stateDir, 'runs')),
    state: readdirSync(agent.stateDir)
      .filter(name => name !== 'trash' && name !== 'verify')
      .sort(),
  }
}
