/**
 * What an operation of one pod asks for, from a wish to its end.
 */
import { describe, expect, test } from 'vitest'
import { World } from './sim.ts'

async function operation(): Promise<{ world: World; asked: string[] }> {
  const world = new World()
  world.wish({ state: 'Running' })
  await world.converge()
  const asked: string[] = []
  world.request = what => void asked.push(what)
  world.wish({ state: 'Servicing', action: 'backup', request: '1' })
  await world.converge()
  return { world, asked }
}

describe('an operation of one pod', () => {
  test('takes seven writes at most: the wish and its turn are one, the targets and the first run, the end and the state after it', async () => {
    const { asked } = await operation()
    const writes = asked.filter(what => !what.startsWith('ask'))
    const count = (what: string) => writes.filter(one => one.startsWith(what)).length
    expect(count('writeOperation')).toBeLessThanOrEqual(3)
    expect([count('createOperation'), count('releaseOperation')]).toEqual([1, 1])
    expect(writes.length, writes.join(', ')).toBeLessThanOrEqual(7)
  })

  test('leaves no run behind in its sidecar', async () => {
    const { world } = await operation()
    expect(world.effects).toHaveLength(1)
    expect(world.agents.flatMap(({ runs }) => [...runs.keys()])).toEqual([])
  })
})
