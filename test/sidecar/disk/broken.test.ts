/**
 * A disk that becomes read-only, or is taken away: what cannot be written down is not begun, what had begun is told truly, and nothing is executed twice.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type AgentProcess, start, temporary } from '../soak/process.ts'
import { breakable, noBreakable } from './volume.ts'

const mark = 'while [ ! -e "$1/go" ]; do sleep 0.05; done; echo "$SHIPMATE_RUN_ID" >> "$1/marks"'
const config = (elsewhere: string) => ({
  actions: [{ name: 'mark', exec: { command: ['sh', '-c', mark, 'mark', elsewhere] }, timeout: '1m', shared: true }],
})
const options = { timeout: 120_000 }

describe.skipIf(noBreakable)(
  `on a disk that becomes read-only${noBreakable ? ` (skipped: ${noBreakable})` : ''}`,
  () => {
    test('nothing is begun, and what had begun is not told as ended before it is known', options, async () => {
      const disk = breakable()
      const { agent, elsewhere, letGo, marks } = await begin(join(disk.path, 'state'))
      await agent.put('begun', 'mark')
      await running(agent, 'begun')
      disk.abort()

      const came = await agent.put('late', 'mark')
      expect(came).toMatchObject({ status: 507, json: { code: 'JournalFull' } })
      expect(came.json.detail).toContain('EROFS')
      expect(await agent.ready()).toMatchObject({ status: 503, text: expect.stringContaining('EROFS') })
      letGo()
      await expect.poll(marks, { timeout: 10_000 }).toEqual(['begun'])
      expect((await agent.ask('GET', '/v1/runs/begun')).json.phase).toBe('Running')
      expect((await agent.ask('GET', '/v1/state')).status).toBe(200)

      await agent.kill()
      await disk.repair()
      const next = await start({ config: config(elsewhere), stateDir: agent.stateDir })
      expect((await next.ended('begun')).phase).toMatch(/^(Succeeded|Unknown)$/)
      expect((await next.ask('GET', '/v1/runs/late')).json.code).toBe('UnknownRun')
      expect((await next.put('begun', 'mark')).status).toBe(200)
      expect((await next.put('late', 'mark')).status).toBe(201)
      expect((await next.ended('late')).phase).toBe('Succeeded')
      expect(marks()).toEqual(['begun', 'late'])
      expect((await next.ready()).status).toBe(200)
    })

    test('an agent that is started on it ends with the reason', options, async () => {
      const disk = breakable()
      const { agent } = await begin(join(disk.path, 'state'))
      await agent.kill()
      disk.abort()
      await expect(start({ config: config('/tmp'), stateDir: agent.stateDir })).rejects.toThrow('EROFS')
    })
  },
)

test(
  'a folder that is taken away is found out at the next start: nothing of it is executed again',
  options,
  async () => {
    const { agent, elsewhere, letGo, marks } = await begin(join(temporary(), 'state'))
    await agent.put('before', 'mark')
    await running(agent, 'before')
    const { journalId } = (await agent.ask('GET', '/v1/state')).json
    rmSync(agent.stateDir, { recursive: true })
    letGo()
    expect((await agent.ended('before')).phase).toMatch(/^(Succeeded|Unknown|Failed)$/)
    const second = await agent.put('after', 'mark')
    expect([201, 507]).toContain(second.status)
    if (second.status === 201) await agent.ended('after')
    const done = marks()
    expect(done.filter(id => id === 'before')).toHaveLength(1)
    await agent.kill()

    const next = await start({ config: config(elsewhere), stateDir: agent.stateDir })
    const state = (await next.ask('GET', '/v1/state')).json
    expect(state.journalId).not.toBe(journalId)
    const stale = await next.ask('PUT', '/v1/runs/before', { body: { action: 'mark', journalId } })
    expect(stale.json.code).toBe('WrongJournal')
    expect(marks()).toEqual(done)
  },
)

async function begin(stateDir: string) {
  const elsewhere = temporary()
  const agent = await start({ config: config(elsewhere), stateDir })
  const marks = () => {
    const path = join(elsewhere, 'marks')
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
  }
  return { agent, elsewhere, letGo: () => writeFileSync(join(elsewhere, 'go'), ''), marks }
}

async function running(agent: AgentProcess, id: string): Promise<void> {
  await expect.poll(() => existsSync(join(agent.stateDir, 'runs', id, 'child')), { timeout: 10_000 }).toBe(true)
}
