import { describe, expect, test } from 'vitest'
import { Conflict, Crash, World } from './sim.ts'

/** The scenario: a backup, then the end, then a start. */
async function scenario(world: World, go: () => Promise<void>): Promise<void> {
  world.wish({ state: 'Servicing', action: 'backup' })
  await go()
  world.wish({ state: 'End' })
  await go()
  world.wish({ state: 'Running' })
  await go()
}

async function withoutCrash(world: World): Promise<number> {
  let requests = 0
  world.request = () => void requests++
  await scenario(world, () => world.converge())
  return requests
}

describe('a controller that dies', () => {
  test('between any two requests: every action is carried out once, and all is reached', async () => {
    const requests = await withoutCrash(new World({ replicas: 2 }))
    expect(requests).toBeGreaterThan(20)
    for (let k = 1; k <= requests; k++)
      for (const isAfter of [false, true]) {
        const world = new World({ replicas: 2 })
        let count = 0
        world.request = () => {
          count++
          if (!isAfter && count === k) throw new Crash(`at ${k}`)
        }
        world.losesAnswer = () => isAfter && count === k
        const go = async () => {
          for (;;)
            try {
              return await world.converge()
            } catch (error) {
              if (!(error instanceof Crash)) throw error
            }
        }
        await scenario(world, go)
        expect(world.effects, `crash at ${k}, ${isAfter ? 'after' : 'before'}`).toHaveLength(4)
        expect(new Set(world.effects).size).toBe(4)
        expect(world.app.object.status).toMatchObject({ state: 'Running' })
      }
  })

  test('while another goes on, with reads of any age: nothing is carried out twice', { timeout: 60_000 }, async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = mulberry(seed)
      const world = new World({ replicas: 2 })
      const history = [world.read()]
      world.wish({ state: 'Servicing', action: 'backup' })
      for (let n = 0; n < 120; n++) {
        history.push(world.read())
        const old = history[Math.max(0, history.length - 1 - Math.floor(random() * 6))]
        const dies = random() < 0.2 ? Math.ceil(random() * 4) : Number.POSITIVE_INFINITY
        let count = 0
        world.request = () => {
          if (++count === dies) throw new Crash('random')
        }
        await world.reconcile(old).catch(error => {
          if (!(error instanceof Crash || error instanceof Conflict)) throw error
        })
        if (random() < 0.15)
          for (const agent of world.agents)
            for (const run of agent.runs.values()) if (random() < 0.5) agent.end(run.id, 'Succeeded')
        if (n === 60) world.wish({ state: 'End' })
        world.now += 500
      }
      world.request = () => {}
      await world.converge()
      expect(new Set(world.effects).size, `seed ${seed}`).toBe(world.effects.length)
      expect(
        world.effects.filter(id => id.startsWith('stop')),
        `seed ${seed}`,
      ).toHaveLength(2)
      const backups = world.effects.filter(id => id.startsWith('backup')).length
      expect([0, 2], `seed ${seed}: ${backups}`).toContain(backups)
      expect(world.app.object.status, `seed ${seed}`).toMatchObject({ state: 'End' })
    }
  })
})

function mulberry(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
