/**
 * What is kept of finished runs is bounded by count, age and size, survives a restart as it is, and what is dropped leaves nothing behind.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type AgentProcess, start } from '../soak/process.ts'

const KiB = 1024
const config = {
  actions: [
    {
      name: 'print',
      exec: { command: ['sh', '-c', 'yes | head -c "$SHIPMATE_PARAM_BYTES"'] },
      params: { bytes: { type: 'integer', default: 1 }, text: { type: 'string', default: '' } },
      shared: true,
    },
    { name: 'wait', exec: { command: ['sleep', '30'] }, shared: true, timeout: '1m' },
  ],
}
const wide = { count: 1000, age: 3_600_000, bytes: 1024 * 1024 * KiB, records: 1024 * 1024 * KiB }
const options = { timeout: 60_000 }

test('by count: the oldest go, and Unknown ones and those in progress stay', options, async () => {
  const agent = await start({ config, bounds: { ...wide, count: 3 } })
  await agent.put('unknown', 'wait')
  process.kill((await claimOf(agent, 'unknown')).pid, 'SIGKILL')
  expect((await agent.ended('unknown')).phase).toBe('Unknown')
  await agent.put('going', 'wait')
  for (let number = 0; number < 8; number++) await ended(agent, `run-${number}`)
  await expect.poll(() => ids(agent)).toEqual(['run-7', 'run-6', 'run-5', 'going', 'unknown'])
  await expect
    .poll(() => readdirSync(join(agent.stateDir, 'runs')).sort())
    .toEqual(['going', 'run-5', 'run-6', 'run-7', 'unknown'])
  expect((await agent.ask('GET', '/v1/runs/run-0')).json.code).toBe('UnknownRun')
})

test('by age', options, async () => {
  const agent = await start({ config, bounds: { ...wide, age: 1 } })
  await ended(agent, 'old')
  await ended(agent, 'new')
  await expect.poll(() => ids(agent)).not.toContain('old')
})

test('by size of the logs', options, async () => {
  const agent = await start({ config, bounds: { ...wide, bytes: 100 * KiB } })
  for (let number = 0; number < 6; number++) await ended(agent, `run-${number}`, { bytes: 40 * KiB })
  await expect.poll(() => ids(agent)).toEqual(['run-5', 'run-4'])
})

test('by size of what is remembered of them', options, async () => {
  const agent = await start({ config, bounds: { ...wide, records: 100 * KiB } })
  for (let number = 0; number < 6; number++) await ended(agent, `run-${number}`, { text: 'x'.repeat(40 * KiB) })
  await expect.poll(() => ids(agent)).toEqual(['run-5', 'run-4'])
})

test('many are dropped at once without a trace, and the journal is not taken for damaged', options, async () => {
  const agent = await start({ config, bounds: { ...wide, count: 40 } })
  const all = Array.from({ length: 60 }, (_, number) => `run-${number}`)
  for (let first = 0; first < all.length; first += 12)
    await Promise.all(all.slice(first, first + 12).map(id => ended(agent, id)))
  const { journalId } = (await agent.ask('GET', '/v1/state')).json
  const kept = (await ids(agent)).filter(id => id !== 'run-59')
  const statuses = await Promise.all(kept.map(async id => (await agent.ask('DELETE', `/v1/runs/${id}`)).status))
  expect(statuses.filter(status => status !== 204 && status !== 404)).toEqual([])
  expect((await agent.ask('GET', '/v1/runs')).json.runs.length).toBeLessThanOrEqual(1)
  await expect.poll(() => readdirSync(join(agent.stateDir, 'runs')).filter(id => id !== 'run-59')).toEqual([])
  await agent.kill()
  const next = await start({ config, stateDir: agent.stateDir })
  expect((await next.ask('GET', '/v1/state')).json.journalId).toBe(journalId)
  expect(readdirSync(join(next.stateDir, 'trash'))).toEqual([])
})

test(
  'a journal that was compacted tells the same after a restart, and stays small over restarts',
  options,
  async () => {
    const text = 'x'.repeat(100 * KiB)
    let agent = await start({ config, bounds: { ...wide, count: 4 } })
    const { journalId } = (await agent.ask('GET', '/v1/state')).json
    let next = 0
    for (let boot = 0; boot < 3; boot++) {
      for (const end = next + 14; next < end; next++) await ended(agent, `run-${next}`, { text })
      await expect.poll(async () => (await ids(agent)).length).toBe(4)
      const before = (await agent.ask('GET', '/v1/runs')).json
      expect(statSync(join(agent.stateDir, 'journal')).size).toBeLessThan(2.5 * 1024 * KiB)
      await agent.kill()
      agent = await start({ config, stateDir: agent.stateDir, bounds: { ...wide, count: 4 } })
      expect((await agent.ask('GET', '/v1/runs')).json).toEqual(before)
    }
    expect((await agent.ask('GET', '/v1/state')).json.journalId).toBe(journalId)
    expect(readFileSync(join(agent.stateDir, 'journal'), 'utf8')).not.toContain('"run-0"')
  },
)

async function ended(agent: AgentProcess, id: string, params?: object): Promise<void> {
  expect((await agent.put(id, 'print', params)).status).toBe(201)
  // One that is dropped at once cannot be asked for any more.
  await agent.ended(id).catch(() => undefined)
}

async function ids(agent: AgentProcess): Promise<string[]> {
  return (await agent.ask('GET', '/v1/runs')).json.runs.map(({ id }: { id: string }) => id)
}

async function claimOf(agent: AgentProcess, id: string): Promise<{ pid: number }> {
  await expect.poll(() => existsSync(join(agent.stateDir, 'runs', id, 'child')), { timeout: 10_000 }).toBe(true)
  return JSON.parse(readFileSync(join(agent.stateDir, 'runs', id, 'claim'), 'utf8'))
}
