/**
 * The ways in which other operators run an action twice, or lose it, as far as a sidecar could: each a test, named after the way.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type Sidecar, type SidecarOptions, startSidecar } from '../../fixtures/sidecar.ts'
import { initWithFaults } from '../../fixtures/sidecar-bundle.ts'
import { createEffects, type Effects, type Manners } from './actions.ts'
import { follow } from './follow.ts'

const isThere = (await initWithFaults()) !== undefined
const longest = 60_000
const folder = mkdtempSync(join(tmpdir(), 'shipmate-effects-'))
const manners: Manners = { delay: 0, cuts: false }
let effects: Effects

beforeAll(async () => {
  effects = await createEffects(folder, manners)
})
afterAll(() => {
  effects.close()
  rmSync(folder, { recursive: true, force: true })
})

async function start(options: Partial<SidecarOptions> = {}): Promise<Sidecar> {
  const sidecar = await startSidecar({ config: effects.config, ...options })
  onTestFinished(() => sidecar.stop())
  await sidecar.listening()
  return sidecar
}
const long = { action: 'exec', params: { for: '30' } }
const short = { action: 'exec', params: {} }

describe.skipIf(!isThere)('way', { timeout: longest }, () => {
  it.each(['accepted', 'spawned', 'replying'])(
    '1, a crash between the request and what is remembered of it (at %s): it is executed at most once, and said so',
    async point => {
      const sidecar = await start()
      const id = `way-1-${point}`
      sidecar.arm(point)
      await sidecar.ask('PUT', `/v1/runs/${id}`, short)
      await expect.poll(() => sidecar.isArmed(), { timeout: longest }).toBe(false)
      const run = await sidecar.ended(id)
      await sidecar.quiet()
      const isStarted = run.error?.code !== 'NotStarted'
      expect([run.phase, effects.begun(id)]).toEqual(isStarted ? ['Succeeded', 1] : ['Failed', 0])
    },
  )

  it('2, a record that is gone is taken for a job that never was: the journal is lost, and nothing is run again', async () => {
    const sidecar = await start()
    const { journalId, fence } = await sidecar.state()
    const body = { ...short, journalId, fence: fence + 1 }
    await sidecar.ask('PUT', '/v1/runs/way-2', body)
    await sidecar.ended('way-2')
    rmSync(join(sidecar.stateDir, 'journal'))
    await sidecar.kill()
    for (const id of ['way-2', 'way-2-other'])
      expect(await sidecar.ask('PUT', `/v1/runs/${id}`, body)).toMatchObject({
        status: 409,
        body: { code: 'WrongJournal' },
      })
    expect(await sidecar.run('way-2')).toMatchObject({ phase: 'Unknown', error: { code: 'RecordLost' } })
    expect((await sidecar.state()).journalId).not.toBe(journalId)
    await sidecar.quiet()
    expect(effects.begun('way-2')).toBe(1)
  })

  it('2, a record that is gone, because it was dropped: its fence keeps it from being run again', async () => {
    const sidecar = await start()
    const body = { ...short, fence: 7 }
    await sidecar.ask('PUT', '/v1/runs/way-2-dropped', body)
    await sidecar.ended('way-2-dropped')
    expect((await sidecar.ask('DELETE', '/v1/runs/way-2-dropped')).status).toBe(204)
    await sidecar.kill()
    expect(await sidecar.ask('PUT', '/v1/runs/way-2-dropped', body)).toMatchObject({
      status: 409,
      body: { code: 'Fenced', fence: 7 },
    })
    expect(effects.begun('way-2-dropped')).toBe(1)
  })

  it('3, a lost answer is followed by a second call: an http action that was cut off is Unknown, and is not sent again', async () => {
    const sidecar = await start()
    manners.cuts = true
    onTestFinished(() => {
      manners.cuts = false
    })
    const put = (id: string, action: string) => sidecar.ask('PUT', `/v1/runs/${id}`, { action, params: { id } })
    await put('way-3', 'http')
    expect(await sidecar.ended('way-3')).toMatchObject({ phase: 'Unknown' })
    await sidecar.kill()
    expect((await put('way-3', 'http')).status).toBe(200)
    expect(effects.called('way-3')).toBe(1)
    await put('way-3-verified', 'http-verified')
    expect(await sidecar.ended('way-3-verified')).toMatchObject({ phase: 'Succeeded' })
    expect(effects.called('way-3-verified')).toBe(1)
  })

  it('4, a client that gives up while the action goes on asks again: it finds the same run', async () => {
    const sidecar = await start()
    await sidecar.ask('PUT', '/v1/runs/way-4', { action: 'exec', params: { for: '3' } })
    const [host, port] = (sidecar.address ?? '').split(':')
    await new Promise<void>(resolve => {
      const held = request({ host, port, path: '/v1/runs/way-4?wait=60s', timeout: 100 }, () => {})
      held.once('timeout', () => held.destroy())
      held.once('error', () => {})
      held.once('close', resolve)
      held.end()
    })
    expect(await sidecar.ask('PUT', '/v1/runs/way-4', { action: 'exec', params: { for: '3' } })).toMatchObject({
      status: 200,
      body: { phase: expect.stringMatching(/^(Accepted|Running)$/) },
    })
    expect(await sidecar.ended('way-4')).toMatchObject({ phase: 'Succeeded' })
    expect(effects.begun('way-4')).toBe(1)
  })

  it('5, a retry deletes the output that is there: neither the same request nor the next attempt touches it', async () => {
    const sidecar = await start()
    await sidecar.ask('PUT', '/v1/runs/way-5.1', { ...short, attempt: 1 })
    const first = await sidecar.ended('way-5.1')
    const log = await sidecar.ask('GET', '/v1/runs/way-5.1/log')
    await sidecar.ask('PUT', '/v1/runs/way-5.1', { ...short, attempt: 1 })
    await sidecar.kill()
    await sidecar.ask('PUT', '/v1/runs/way-5.2', { ...short, attempt: 2 })
    await sidecar.ended('way-5.2')
    expect(await sidecar.run('way-5.1')).toEqual(first)
    expect((await sidecar.ask('GET', '/v1/runs/way-5.1/log')).text).toBe(log.text)
    expect([effects.begun('way-5.1'), effects.begun('way-5.2')]).toEqual([1, 1])
  })

  it('6, a restart leaves it running for ever: what nobody executes any more is Unknown', async () => {
    const sidecar = await start()
    await sidecar.ask('PUT', '/v1/runs/way-6', long)
    await expect.poll(() => effects.begun('way-6'), { timeout: longest }).toBe(1)
    await sidecar.killContainer()
    expect(await sidecar.ended('way-6')).toMatchObject({ phase: 'Unknown', error: { code: 'Lost' } })
  })

  it('8, an upgrade of the agent kills the backup: it goes on, and its end is seen', async () => {
    const sidecar = await start({ under: 'supervise' })
    await sidecar.ask('PUT', '/v1/runs/way-8', { action: 'exec', params: { for: '1' } })
    await expect.poll(() => effects.begun('way-8'), { timeout: longest }).toBe(1)
    sidecar.signalRoot('SIGHUP')
    await expect.poll(() => sidecar.births, { timeout: longest }).toBe(2)
    expect(await sidecar.ended('way-8')).toMatchObject({ phase: 'Succeeded' })
    expect([effects.begun('way-8'), effects.done('way-8')]).toEqual([1, 1])
  })

  it('9, a time-out is told as a failure though it had succeeded: verify decides first', async () => {
    const sidecar = await start()
    await sidecar.ask('PUT', '/v1/runs/way-9', { action: 'exec-verified', params: { for: '30' }, timeout: '1s' })
    expect(await sidecar.ended('way-9')).toMatchObject({ phase: 'Succeeded', error: null })
    expect([effects.begun('way-9'), effects.done('way-9')]).toEqual([1, 0])
  })

  it('10, a terminal phase moves back in the eyes of a stale reader: no reader, after any restart, is told another', async () => {
    const sidecar = await start()
    const told: string[] = []
    const events = follow(sidecar, run => told.push(run.phase))
    onTestFinished(() => events.stop())
    await sidecar.ask('PUT', '/v1/runs/way-10', short)
    const end = await sidecar.ended('way-10')
    for (let restart = 0; restart < 3; restart++) {
      await expect.poll(() => told.at(-1), { timeout: longest }).toBe('Succeeded')
      told.length = 0
      await sidecar.kill()
      expect(await sidecar.run('way-10')).toEqual(end)
      expect((await sidecar.ask<{ runs: unknown[] }>('GET', '/v1/runs')).body.runs).toEqual([end])
      expect((await sidecar.ask('PUT', '/v1/runs/way-10', short)).body).toEqual(end)
    }
    await expect.poll(() => told.length, { timeout: longest }).toBeGreaterThan(0)
    expect(new Set(told)).toEqual(new Set(['Succeeded']))
  })

  it('11, a stale lock blocks all later work: neither a dead run nor a dead agent leaves one', async () => {
    const sidecar = await start()
    await sidecar.ask('PUT', '/v1/runs/way-11', long)
    await expect.poll(() => effects.begun('way-11'), { timeout: longest }).toBe(1)
    expect(await sidecar.ask('PUT', '/v1/runs/way-11-next', short)).toMatchObject({
      status: 409,
      body: { code: 'Locked', run: 'way-11' },
    })
    await sidecar.killContainer()
    expect(await sidecar.ended('way-11')).toMatchObject({ phase: 'Unknown' })
    expect((await sidecar.ask('PUT', '/v1/runs/way-11-next', short)).status).toBe(201)
    expect(await sidecar.ended('way-11-next')).toMatchObject({ phase: 'Succeeded' })
  })

  it('12, a pod is deleted in mid-action and nobody notices: the run is cancelled by its contract, and that is written down', async () => {
    const sidecar = await start({ flags: ['--drain-timeout', '2s'] })
    await sidecar.ask('PUT', '/v1/runs/way-12', long)
    await expect.poll(() => effects.begun('way-12'), { timeout: longest }).toBe(1)
    sidecar.signal('SIGTERM')
    // The container is started again on the same volume, as this fixture does.
    await expect.poll(() => sidecar.births, { timeout: longest }).toBe(2)
    expect(await sidecar.run('way-12')).toMatchObject({ phase: 'Cancelled' })
    await sidecar.quiet()
    expect([effects.begun('way-12'), effects.done('way-12')]).toEqual([1, 0])
  })

  it('13, the same name and a new uid: what was meant for the other pod is refused', async () => {
    const sidecar = await start()
    expect(await sidecar.ask('PUT', '/v1/runs/way-13', { ...short, podUid: 'its-predecessor' })).toMatchObject({
      status: 409,
      body: { code: 'WrongPod' },
    })
    expect((await sidecar.ask('GET', '/v1/runs/way-13')).status).toBe(404)
    expect((await sidecar.ask('PUT', '/v1/runs/way-13', { ...short, podUid: 'pod-uid' })).status).toBe(201)
    expect(await sidecar.ask('PUT', '/v1/runs/way-13', { ...short, podUid: 'its-predecessor' })).toMatchObject({
      status: 409,
      body: { code: 'WrongPod' },
    })
    await sidecar.ended('way-13')
    expect(effects.begun('way-13')).toBe(1)
  })
})
