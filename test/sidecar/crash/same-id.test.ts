/**
 * One id, asked for many times: by many at once, by one whose answer was lost, with another body.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Sidecar, startSidecar } from '../../fixtures/sidecar.ts'
import { createEffects, type Effects } from './actions.ts'

const longest = 60_000
const folder = mkdtempSync(join(tmpdir(), 'shipmate-effects-'))
let effects: Effects
let sidecar: Sidecar

beforeAll(async () => {
  effects = await createEffects(folder, { delay: 0, cuts: false })
  sidecar = await startSidecar({ config: effects.config })
  await sidecar.listening()
}, longest)
afterAll(async () => {
  await sidecar.stop()
  effects.close()
  rmSync(folder, { recursive: true, force: true })
})

const body = { action: 'exec', params: { for: '0.1' } }

/** Sends a PUT and cuts the connection once it has gone out, or when the first byte of the answer comes. */
function cutOff(id: string, when: 'sent' | 'answered'): Promise<void> {
  const [host, port] = (sidecar.address ?? '').split(':')
  const text = JSON.stringify(body)
  const head = [
    `PUT /v1/runs/${id} HTTP/1.1`,
    `host: ${sidecar.address}`,
    'content-type: application/json',
    `content-length: ${text.length}`,
    '',
    text,
  ]
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port) })
    socket.on('error', reject)
    socket.on('close', () => resolve())
    socket.once('data', () => socket.destroy())
    socket.write(head.join('\r\n'), () => when === 'sent' && socket.destroy())
  })
}

describe('one id', () => {
  it('is executed once, of 100 clients who ask at once: one 201, and 99 times 200', { timeout: longest }, async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => sidecar.request('PUT', '/v1/runs/many', body)))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter(status => status === 201)).toHaveLength(1)
    expect(statuses.filter(status => status === 200)).toHaveLength(99)
    expect(await sidecar.ended('many')).toMatchObject({ phase: 'Succeeded' })
    await sidecar.quiet()
    expect(effects.begun('many')).toBe(1)
  })

  it('is executed once, of 100 clients whose agent is killed while it writes the run down', {
    timeout: longest,
  }, async () => {
    sidecar.arm('journal.accepted.synced')
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async () => (await sidecar.ask('PUT', '/v1/runs/killed', body)).status),
    )
    expect(sidecar.disarm()).toBe(true)
    // It was on disk before anybody was told.
    expect(new Set(statuses)).toEqual(new Set([200]))
    const { phase } = await sidecar.ended('killed')
    await sidecar.quiet()
    expect([phase, effects.begun('killed')]).toEqual(['Failed', 0])
  })

  it.each(['sent', 'answered'] as const)(
    'is executed once by a client whose connection is cut when it was %s, and who asks again',
    { timeout: longest },
    async when => {
      for (let n = 0; n < 10; n++) {
        const id = `lost-${when}-${n}`
        await cutOff(id, when)
        const { status } = await sidecar.ask('PUT', `/v1/runs/${id}`, body)
        if (when === 'answered') expect(status).toBe(200)
        expect([200, 201]).toContain(status)
        expect(await sidecar.ended(id)).toMatchObject({ phase: 'Succeeded' })
        expect(effects.begun(id)).toBe(1)
      }
    },
  )

  it('with another body is refused, and nothing happens', { timeout: longest }, async () => {
    expect((await sidecar.ask('PUT', '/v1/runs/reused', body)).status).toBe(201)
    await sidecar.ended('reused')
    for (const other of [
      { action: 'exec', params: { for: '0.2' } },
      { action: 'exec' },
      { action: 'exec-verified', params: body.params },
    ]) {
      expect(await sidecar.ask('PUT', '/v1/runs/reused', other)).toMatchObject({
        status: 409,
        body: { code: 'IdReused' },
      })
    }
    expect((await sidecar.ask('PUT', '/v1/runs/reused', { ...body, attempt: 2, timeout: '1s' })).status).toBe(200)
    await sidecar.quiet()
    expect(effects.begun('reused')).toBe(1)
  })
})
