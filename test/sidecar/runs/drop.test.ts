import { expect, test, vi } from 'vitest'
import type * as Folder from '../../../sidecar/runs/folder.ts'
import { runAgent } from '../../fixtures/running-agent.ts'

/** What each of those who take a folder away waits for, in their order. */
const gates: Promise<void>[] = []
vi.mock('../../../sidecar/runs/folder.ts', async original => {
  const folder = await original<typeof Folder>()
  const throwAway: typeof folder.throwAway = async (...run) => {
    await gates.shift()
    await folder.throwAway(...run)
  }
  return { ...folder, throwAway }
})

test('of two who drop a run, the slower one does not take a new run with the same id', async () => {
  const { agent, ended } = await runAgent({ spec: { actions: [{ name: 'a', exec: { command: ['true'] } }] } })
  await agent.put('r', { action: 'a' })
  await ended('r')
  const slow = Promise.withResolvers<void>()
  gates.push(Promise.resolve(), slow.promise)
  const [first, second] = [agent.drop('r'), agent.drop('r')]
  await first
  expect(await agent.put('r', { action: 'a' })).toMatchObject({ started: true })
  slow.resolve()
  await second
  expect(await ended('r')).toMatchObject({ phase: 'Succeeded' })
})
