import { describe, expect, test } from 'vitest'
import { runAgent } from '../../fixtures/running-agent.ts'

const spec = {
  actions: [
    { name: 'mark', exec: { command: ['sh', '-c', 'exit 3'] } },
    { name: 'long', exec: { command: ['sleep', '60'] } },
  ],
}

describe('a run that is put as cancelled', () => {
  test('is written down, never begun, and answered so to who puts it afterwards', async () => {
    const { agent } = await runAgent({ spec })
    const annulled = await agent.put('r', { action: 'mark', fence: 5, cancelled: true })
    expect(annulled).toMatchObject({ started: true, run: { phase: 'Cancelled', startedAt: null } })
    const late = await agent.put('r', { action: 'mark', fence: 5 })
    expect(late).toMatchObject({ started: false, run: { phase: 'Cancelled', error: { code: 'Cancelled' } } })
    await expect(agent.put('other', { action: 'mark', fence: 5 })).rejects.toMatchObject({ code: 'Fenced' })
  })

  test('is not held by another run, nor by another configuration', async () => {
    const { agent, ended } = await runAgent({ spec })
    await agent.put('going', { action: 'long' })
    const annulled = await agent.put('r', { action: 'mark', configHash: 'of before', cancelled: true })
    expect(annulled.run.phase).toBe('Cancelled')
    await agent.cancel('going')
    expect(await ended('going')).toMatchObject({ phase: 'Cancelled' })
  })

  test('that has begun is answered as it stands', async () => {
    const { agent, ended } = await runAgent({ spec })
    await agent.put('r', { action: 'mark' })
    await ended('r')
    expect(await agent.put('r', { action: 'mark', cancelled: true })).toMatchObject({
      started: false,
      run: { phase: 'Failed', exitCode: 3 },
    })
  })
})
